package ringfence_test

import (
	"context"
	"time"

	ringfence "github.com/ringfence/ringfence/clients/go"
)

func charge(context.Context, uint64) error { return nil }

func Example() {
	order42 := func(ctx context.Context) error {
		client, err := ringfence.Dial([]string{"10.0.0.1:7420", "10.0.0.2:7420"})
		if err != nil {
			return err
		}
		defer client.Close()
		lock, err := client.Lock(ctx, "order/42", ringfence.WithLease(10*time.Second))
		if err != nil {
			return err
		}
		defer lock.Unlock()
		return charge(lock.Context(), lock.Token()) // the resource refuses a token smaller than one it has seen
	}
	_ = order42(context.Background())
}

func ExampleAccount() {
	pay := func(ctx context.Context, client *ringfence.Client, order ringfence.RequestID) error {
		coins := client.Account("coins/42")
		if err := coins.Create(ctx, ringfence.OnDisk, 4); err != nil {
			return err
		}
		_, err := coins.Deduct(ctx, order, 30) // a repeat with the same id has no second effect
		return err
	}
	_ = pay
}
