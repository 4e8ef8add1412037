package ringfence

import (
	"context"
	"crypto/rand"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// LockOption is one of the terms of an acquisition.
type LockOption func(*terms)

type terms struct {
	request  *pb.AcquireRequest
	onDanger func(Danger)
}

// WithLease sets the time until the lock is free if this process disappears, at least 100 ms. The lock is renewed after
// every third of it. Default: the longest that the coordinators allow, 30 s unless they are configured otherwise.
func WithLease(lease time.Duration) LockOption {
	return func(t *terms) { t.request.Lease = durationpb.New(lease) }
}

// WithWait sets the longest time to wait for the lock. 0: asks once. Default: until the context ends.
func WithWait(wait time.Duration) LockOption {
	return func(t *terms) { t.request.Wait = durationpb.New(wait) }
}

// WithHoldFor sets the longest time to hold the lock, at least 100 ms: renewals do not extend it. Default: no limit.
func WithHoldFor(length time.Duration) LockOption {
	return func(t *terms) { t.request.HoldFor = durationpb.New(length) }
}

// WithNamespace sets the namespace of the key. Default: "default".
func WithNamespace(namespace string) LockOption {
	return func(t *terms) { t.request.Namespace = namespace }
}

// WithPreference goes before waiters without it, for [RWLock] alone. All users of a key should prefer the same side:
// the other one may wait for as long as preferred requests keep coming.
func WithPreference() LockOption { return func(t *terms) { t.request.Preferred = true } }

// WithOnDanger sets a function that is called, in a goroutine of its own, when a third of the lease is left: renewals
// fail, or the time of [WithHoldFor] ends.
func WithOnDanger(tell func(Danger)) LockOption { return func(t *terms) { t.onDanger = tell } }

// Danger tells that a lock is about to be lost.
type Danger struct {
	Key   string
	Token uint64
	// Err is why the last renewal failed. Nil: none has, but the longest time of the lock ends, or the coordinator
	// cannot reach the home of the topology.
	Err error
}

// Lock waits for the lock of key, 1 to 512 bytes, and holds it under ctx: after the end of ctx it is not renewed any
// more. For a limit of the wait alone use [WithWait].
//
// The error is ErrTimedOut or ErrHeld at the end of the wait. It is ErrUnavailable if no coordinator has served for
// twice the time of [WithTimeout]. A grant that is on its way when ctx ends stays until its lease ends.
func (c *Client) Lock(ctx context.Context, key string, options ...LockOption) (*Lock, error) {
	return c.acquire(ctx, key, options)
}

// TryLock is Lock with WithWait(0). The error is ErrHeld if another holder has the lock.
func (c *Client) TryLock(ctx context.Context, key string, options ...LockOption) (*Lock, error) {
	return c.acquire(ctx, key, options, WithWait(0))
}

// Semaphore returns the semaphore of key, with this many permits in all: the same number at each user of the key.
func (c *Client) Semaphore(key string, capacity uint32) *Semaphore {
	return &Semaphore{client: c, key: key, capacity: capacity}
}

// Semaphore is a number of permits. Waiters are served in the order of arrival.
type Semaphore struct {
	client   *Client
	key      string
	capacity uint32
}

// Acquire waits for permits, all or none, and holds them as [Client.Lock] holds a lock: with a lease and a token of
// their own.
func (s *Semaphore) Acquire(ctx context.Context, permits uint32, options ...LockOption) (*Lock, error) {
	return s.client.acquire(ctx, s.key, options, s.take(permits))
}

// TryAcquire is Acquire with WithWait(0). The error is ErrHeld if too few permits are free.
func (s *Semaphore) TryAcquire(ctx context.Context, permits uint32, options ...LockOption) (*Lock, error) {
	return s.client.acquire(ctx, s.key, options, s.take(permits), WithWait(0))
}

func (s *Semaphore) take(permits uint32) LockOption {
	return func(t *terms) {
		t.request.Mode, t.request.Permits, t.request.Capacity = pb.LockMode_LOCK_MODE_PERMITS, permits, s.capacity
	}
}

// RWLock returns the read-write lock of key.
func (c *Client) RWLock(key string) *RWLock { return &RWLock{client: c, key: key} }

// RWLock is held by many readers, or by one writer. Waiters are served in the order of arrival, but for
// [WithPreference].
type RWLock struct {
	client *Client
	key    string
}

// RLock waits for a reader's share, as [Client.Lock] does.
func (l *RWLock) RLock(ctx context.Context, options ...LockOption) (*Lock, error) {
	return l.client.acquire(ctx, l.key, options, inMode(pb.LockMode_LOCK_MODE_READ))
}

// TryRLock is RLock with WithWait(0). The error is ErrHeld if there is a writer, or one waits.
func (l *RWLock) TryRLock(ctx context.Context, options ...LockOption) (*Lock, error) {
	return l.client.acquire(ctx, l.key, options, inMode(pb.LockMode_LOCK_MODE_READ), WithWait(0))
}

// Lock waits for the writer's lock, as [Client.Lock] does. [Lock.Downgrade] makes it a reader's. A reader cannot become
// a writer.
func (l *RWLock) Lock(ctx context.Context, options ...LockOption) (*Lock, error) {
	return l.client.acquire(ctx, l.key, options, inMode(pb.LockMode_LOCK_MODE_WRITE))
}

// TryLock is Lock with WithWait(0). The error is ErrHeld if there are other holders.
func (l *RWLock) TryLock(ctx context.Context, options ...LockOption) (*Lock, error) {
	return l.client.acquire(ctx, l.key, options, inMode(pb.LockMode_LOCK_MODE_WRITE), WithWait(0))
}

func inMode(mode pb.LockMode) LockOption { return func(t *terms) { t.request.Mode = mode } }

// acquire asks until the lock is granted, or the wait is over. A request without an answer is repeated for the timeout
// of the client, first at the same coordinator: that one has one lock for all requests with a nonce.
func (c *Client) acquire(ctx context.Context, key string, options []LockOption, more ...LockOption) (*Lock, error) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // does not fail
	t := &terms{request: &pb.AcquireRequest{Key: []byte(key), Label: c.label, Nonce: nonce}}
	for _, option := range options {
		option(t)
	}
	for _, option := range more {
		option(t)
	}
	wait, ends := t.request.Wait, now()+t.request.Wait.AsDuration()
	unknown, failures, downSince := false, 0, time.Duration(0) // failures: since a coordinator has served
	for attempts := 1; ; attempts++ {
		limit := time.Duration(0)
		if wait != nil {
			left := max(0, ends-now())
			t.request.Wait, limit = durationpb.New(left), left+c.timeout
		}
		sent := now()
		lock, number, failure := c.ask(ctx, t, limit)
		if failure == nil {
			return lock, nil
		}
		unknown = unknown || failure.MayHaveTakenEffect
		failure.MayHaveTakenEffect = unknown
		if !failure.Retryable || failure.Reason == ErrHeld || failure.Reason == ErrTimedOut || ctx.Err() != nil {
			return nil, failure
		}
		if !failure.elsewhere || now()-sent > 10*c.timeout {
			failures = 0
		}
		if failures++; failures == 1 {
			downSince = now()
		}
		if failure.elsewhere && (failures > 1 || !unknown) {
			c.moveOn(number)
		}
		if failure.elsewhere && failures <= c.coordinators() {
			continue
		}
		over := failures > 2*c.coordinators() && now()-downSince > 2*c.timeout
		if wait != nil {
			more := time.Duration(0)
			if unknown {
				more = c.timeout
			}
			over = now()+pauseAfter(failure, attempts) >= ends+more
		}
		if over {
			return nil, failure
		}
		if failure.cause = pause(ctx, failure, attempts); failure.cause != nil {
			return nil, failure
		}
	}
}

// ask makes one attempt, and returns the number of the coordinator that it was made at.
func (c *Client) ask(ctx context.Context, t *terms, limit time.Duration) (*Lock, uint64, *Error) {
	sent := now()
	answer, number, failure := once(ctx, c, limit, service.Acquire, t.request)
	if failure != nil {
		return nil, number, failure
	}
	l := &Lock{
		client: c, key: string(t.request.Key), onDanger: t.onDanger,
		handle: answer.Handle, token: answer.Token, lease: answer.ValidFor.AsDuration(),
	}
	l.renewAt = sent + l.lease/3
	l.deadline.Store(int64(sent + l.lease))
	l.ctx, l.end = context.WithCancelCause(ctx)
	if now() >= l.renewAt { // there was a wait: the lease counts from a renewal
		failure = l.renew(l.lease / 3)
	}
	if !l.Held() {
		_ = l.Unlock() // too late, or ctx has ended
		if failure == nil {
			failure = &Error{Reason: ErrLost, Message: "the grant came too late", Retryable: true}
		}
		failure.MayHaveTakenEffect, failure.cause = true, ctx.Err()
		return nil, number, failure
	}
	c.mutex.Lock()
	c.held[l] = struct{}{}
	c.mutex.Unlock()
	go l.keep()
	return l, number, nil
}
