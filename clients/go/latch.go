package ringfence

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// latchWait is one wait for a latch, of many.
const latchWait = 10 * time.Second

// Latch returns the countdown latch of that name, 1 to 255 bytes. Nothing is sent.
func (c *Client) Latch(name string) *Latch { return &Latch{client: c, name: name} }

// Latch is closed until as many distinct requests as were set have counted it down. It is used once: it never closes
// again. Calls repeat themselves as those of [Account] do.
type Latch struct {
	client *Client
	name   string
}

// Set sets the latch, closed, to a count of 1 to 10,000,000. To set it again to the same count and durability has no
// effect; otherwise the error is ErrAccountExists.
func (l *Latch) Set(ctx context.Context, count uint64, durability Durability) error {
	_, err := repeat(ctx, l.client, 0, service.SetLatch, &pb.SetLatchRequest{
		Name: l.name, Count: count, Durability: durability.kind, Replicas: durability.replicas,
	})
	return err
}

// CountDown counts down by one. A repeat of the id within 24 hours has no second effect. The error is ErrNoAccount if
// the latch is not set.
func (l *Latch) CountDown(ctx context.Context, id RequestID) error {
	request := &pb.CountDownLatchRequest{Name: l.name, Id: id.message()}
	_, err := repeat(ctx, l.client, 0, service.CountDownLatch, request)
	return err
}

// Remaining returns how often the latch is still to be counted down. 0: it is open.
func (l *Latch) Remaining(ctx context.Context) (uint64, error) {
	answer, err := repeat(ctx, l.client, 0, service.GetLatch, &pb.GetLatchRequest{Name: l.name})
	return answer.GetRemaining(), err
}

// Wait waits until the latch is open, or ctx ends. It may be set meanwhile.
func (l *Latch) Wait(ctx context.Context) error {
	request := &pb.WaitLatchRequest{Name: l.name, Wait: durationpb.New(latchWait)}
	for {
		_, err := repeat(ctx, l.client, latchWait, service.WaitLatch, request)
		if !errors.Is(err, ErrTimedOut) || ctx.Err() != nil {
			return err
		}
	}
}
