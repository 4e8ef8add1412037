package ringfence_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"

	ringfence "github.com/ringfence/ringfence/clients/go"
	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// refused checks that a request is refused for a reason.
func refused(t *testing.T, reason ringfence.Reason) func(*ringfence.Lock, error) {
	return func(_ *ringfence.Lock, err error) {
		t.Helper()
		if !errors.Is(err, reason) {
			t.Errorf("%v, not %v", err, reason)
		}
	}
}

func TestASemaphoreGrantsItsPermitsAndNoMore(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	three := client.Semaphore(t.Name(), 3)
	two := must[*ringfence.Lock](t)(three.Acquire(ctx, 2))
	one := must[*ringfence.Lock](t)(three.TryAcquire(ctx, 1))
	refused(t, ringfence.ErrHeld)(three.TryAcquire(ctx, 1))
	refused(t, ringfence.ErrInvalidInput)(three.TryAcquire(ctx, 4))
	refused(t, ringfence.ErrOtherKind)(client.TryLock(ctx, t.Name()))
	if one.Token() <= two.Token() {
		t.Errorf("token %d after %d", one.Token(), two.Token())
	}
	check(t, two.Unlock())
	must[*ringfence.Lock](t)(three.TryAcquire(ctx, 2))
}

func TestReadersShareALockAndAWriterHasItAlone(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	prices := dial(t, shared.coordinator).RWLock(t.Name())
	readers := []*ringfence.Lock{
		must[*ringfence.Lock](t)(prices.RLock(ctx)), must[*ringfence.Lock](t)(prices.TryRLock(ctx)),
	}
	refused(t, ringfence.ErrHeld)(prices.TryLock(ctx))
	for _, reader := range readers {
		check(t, reader.Unlock())
	}
	must[*ringfence.Lock](t)(prices.Lock(ctx))
	refused(t, ringfence.ErrHeld)(prices.TryLock(ctx))
	refused(t, ringfence.ErrHeld)(prices.TryRLock(ctx))
}

func TestAPreferredReaderGoesBeforeAWriterThatWaits(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	prices := dial(t, shared.coordinator).RWLock(t.Name())
	reader := must[*ringfence.Lock](t)(prices.RLock(ctx))
	waited := make(chan error, 1)
	go func() {
		_, err := prices.Lock(ctx)
		waited <- err
	}()
	eventually(t, func() bool { // the writer waits
		other, err := prices.TryRLock(ctx)
		if err == nil {
			check(t, other.Unlock())
		}
		return errors.Is(err, ringfence.ErrHeld)
	})
	preferred := must[*ringfence.Lock](t)(prices.TryRLock(ctx, ringfence.WithPreference()))
	check(t, reader.Unlock())
	check(t, preferred.Unlock())
	check(t, receive(t, waited))
}

func TestADowngradedWriterIsAReaderAlsoAtAnotherCoordinator(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	killed, one := serve(t, shared.redis, secret)
	writer := must[*ringfence.Lock](t)(dial(t, one, shared.coordinator).RWLock(t.Name()).Lock(ctx, leased))
	token := writer.Token()
	check(t, writer.Downgrade())
	check(t, writer.Downgrade()) // has no effect
	if writer.Token() != token {
		t.Errorf("token %d after %d", writer.Token(), token)
	}
	check(t, killed.Kill())
	prices := dial(t, shared.coordinator).RWLock(t.Name())
	must[*ringfence.Lock](t)(prices.TryRLock(ctx))
	for ends := time.Now().Add(2 * lease); time.Now().Before(ends); time.Sleep(lease / 20) {
		if _, err := prices.TryLock(ctx); !errors.Is(err, ringfence.ErrHeld) || !writer.Held() {
			t.Fatalf("not held any more: %v", err)
		}
	}
	check(t, writer.Unlock())
}

// records is a connection that keeps the handle of a downgrade's answer, and that of a release.
type records struct {
	grpc.ClientConnInterface
	downgraded, released []byte
}

func (r *records) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	err := r.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	if release, is := request.(*pb.ReleaseRequest); is {
		r.released = release.Handle
	} else if downgrade, is := answer.(*pb.DowngradeResponse); is {
		r.downgraded = downgrade.Handle
	}
	return err
}

func TestADowngradedLockGoesByItsNewHandle(t *testing.T) {
	t.Parallel()
	connection := &records{ClientConnInterface: connect(t, shared.coordinator)}
	client := ringfence.New([]grpc.ClientConnInterface{connection})
	writer := must[*ringfence.Lock](t)(client.RWLock(t.Name()).Lock(within(t)))
	check(t, writer.Downgrade())
	check(t, writer.Unlock())
	if len(connection.released) == 0 || !bytes.Equal(connection.released, connection.downgraded) {
		t.Errorf("%x, not %x", connection.released, connection.downgraded)
	}
}

func TestALockThatIsNotHeldOrNotAWritersCannotBeDowngraded(t *testing.T) {
	t.Parallel()
	lock := must[*ringfence.Lock](t)(dial(t, shared.coordinator).Lock(within(t), t.Name()))
	if err := lock.Downgrade(); !errors.Is(err, ringfence.ErrInvalidInput) {
		t.Error(err)
	}
	check(t, lock.Unlock())
	if err := lock.Downgrade(); !errors.Is(err, ringfence.ErrLost) {
		t.Error(err)
	}
}
