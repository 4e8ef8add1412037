// Package ringfence holds locks of a Ringfence coordinator: an example of a client, to be copied.
package ringfence

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ErrLost is the cause of the end of a Lock's context.
var ErrLost = errors.New("the lock is lost")

// Keepalive is an option of the connections: one that went silent is replaced, and a wait for a lock on it ends.
var Keepalive = grpc.WithKeepaliveParams(keepalive.ClientParameters{
	Time:                10 * time.Second, // gRPC for Go asks no more often
	Timeout:             5 * time.Second,
	PermitWithoutStream: true,
})

// Client acquires locks through one of several coordinators, and moves on to the next if that one fails. With the
// same handle_secret at each of them, held locks go on at the next.
type Client struct {
	services []pb.LockServiceClient
	current  atomic.Uint64
}

// New uses the connections to the coordinators, at least one, made with Keepalive. They stay the caller's.
func New(connections ...grpc.ClientConnInterface) *Client {
	c := &Client{}
	for _, connection := range connections {
		c.services = append(c.services, pb.NewLockServiceClient(connection))
	}
	return c
}

// Lock is a held lock: renewed in the background until it is unlocked or lost.
type Lock struct {
	// Context ends when the lock is released or lost (context.Cause: ErrLost): give it to the work.
	Context  context.Context
	Token    uint64 // for the resource: it refuses a token smaller than one it has seen
	client   *Client
	end      context.CancelCauseFunc
	handle   []byte
	lease    time.Duration // the longest that an answer told so far
	renewAt  time.Duration // on the clock of now
	deadline atomic.Int64  // on the clock of now
}

// Lock waits for the lock until ctx ends, and holds it under ctx: then it is not renewed any more. The lease is
// the time until it is free if this process disappears; so long, too, stays a grant that is on its way when ctx ends.
func (c *Client) Lock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, &pb.AcquireRequest{Key: []byte(key), Lease: durationpb.New(lease)})
}

// TryLock asks once. If another holder has the lock, the status of the error is codes.Aborted.
func (c *Client) TryLock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, &pb.AcquireRequest{Key: []byte(key), Lease: durationpb.New(lease), Wait: durationpb.New(0)})
}

// acquire repeats a request without an answer, first at the same coordinator: that one has one lock for all with a nonce.
func (c *Client) acquire(ctx context.Context, request *pb.AcquireRequest) (*Lock, error) {
	request.Nonce = make([]byte, 16)
	_, _ = rand.Read(request.Nonce) // does not fail
	for pause, stay := 20*time.Millisecond, true; ; pause, stay = min(2*pause, time.Second), false {
		index, sent := c.current.Load(), now()
		answer, err := c.at(index).Acquire(ctx, request)
		if err == nil {
			l := &Lock{Token: answer.Token, client: c, handle: answer.Handle, lease: answer.ValidFor.AsDuration()}
			l.deadline.Store(int64(sent + l.lease))
			l.Context, l.end = context.WithCancelCause(ctx)
			l.renewAt = sent + l.lease/3 // if there was a wait, that is over: the lease counts from a renewal
			if now() < l.renewAt || l.renew(l.lease/3) == nil {
				go l.keep()
				return l, nil
			}
			_ = l.Unlock()
		} else if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			return nil, err
		}
		if !stay {
			c.current.CompareAndSwap(index, index+1)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// keep renews the lock after a third of its time. It wakes more often: timers stop while the machine is suspended.
func (l *Lock) keep() {
	for l.Held() {
		if left := l.left(); now() >= l.renewAt {
			_ = l.renew(min(l.lease/6, left))
		} else {
			select {
			case <-l.Context.Done():
			case <-time.After(min(left, l.renewAt-now(), l.lease/24)):
			}
		}
	}
	l.end(ErrLost) // unless it has ended before
}

func (l *Lock) renew(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(l.Context, timeout)
	defer cancel()
	index, sent := l.client.current.Load(), now()
	answer, err := l.client.at(index).Renew(ctx, &pb.RenewRequest{Handle: l.handle})
	l.renewAt = now() + l.lease/24
	if lasts := answer.GetValidFor().AsDuration(); err == nil {
		l.deadline.Store(max(l.deadline.Load(), int64(sent+lasts)))
		l.lease = max(l.lease, lasts) // it lasts less where the coordinator's view of the topology ends before
		l.renewAt = sent + max(lasts/3, l.lease/24)
	} else if status.Code(err) == codes.FailedPrecondition { // LOCK_LOST
		l.end(ErrLost)
	} else {
		l.client.current.CompareAndSwap(index, index+1)
	}
	return err
}

// Held tells whether the lock is held now, by the clock.
func (l *Lock) Held() bool          { return l.Context.Err() == nil && l.left() > 0 }
func (l *Lock) left() time.Duration { return time.Duration(l.deadline.Load()) - now() }

// Unlock releases the lock. ErrLost: it was not held any more. Another error: it is free when its lease ends.
func (l *Lock) Unlock() error {
	left := l.left()
	if l.end(context.Canceled); context.Cause(l.Context) == ErrLost || left <= 0 {
		return ErrLost
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	answer, err := l.client.at(l.client.current.Load()).Release(ctx, &pb.ReleaseRequest{Handle: l.handle})
	if err == nil && answer.Outcome == pb.ReleaseOutcome_RELEASE_OUTCOME_LOST {
		return ErrLost
	}
	return err
}

func (c *Client) at(n uint64) pb.LockServiceClient { return c.services[n%uint64(len(c.services))] }

// now is a clock that goes on while the machine is suspended.
func now() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(sinceBoot, &at) // every Linux and macOS has it
	return time.Duration(at.Nano())
}
