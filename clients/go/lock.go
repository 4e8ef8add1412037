package ringfence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// Lock is a held lock, share of a read-write lock, or set of permits: renewed in the background until it is unlocked or
// lost. Any number of goroutines may use it.
type Lock struct {
	client   *Client
	key      string
	token    uint64
	onDanger func(Danger)
	ctx      context.Context
	end      context.CancelCauseFunc
	deadline atomic.Int64 // on the clock of now
	unlocked atomic.Bool

	calls   sync.Mutex // renewals and downgrades: one at a time
	handle  []byte
	lease   time.Duration // the longest that an answer told so far
	renewAt time.Duration // on the clock of now
	err     *Error        // of the last renewal
}

// Context is for the work under the lock. It ends when the lock is lost (context.Cause: ErrLost) or unlocked, and with
// the context of the acquisition.
func (l *Lock) Context() context.Context { return l.ctx }

// Token is the fencing token: the resource refuses a token smaller than one it has seen.
func (l *Lock) Token() uint64 { return l.token }

// Held tells whether the lock is held now, by the clock. The lease counts from before the request was sent.
func (l *Lock) Held() bool { return l.Remaining() > 0 }

// Remaining is the rest of the lease, unless it is renewed. 0: the lock is not held.
func (l *Lock) Remaining() time.Duration {
	if l.ctx.Err() != nil {
		return 0
	}
	return max(0, l.left())
}

func (l *Lock) left() time.Duration { return time.Duration(l.deadline.Load()) - now() }

// keep renews the lock after a third of the time that it lasts. It wakes more often: timers stop while the machine is
// suspended.
func (l *Lock) keep() {
	for warned := false; l.Held(); {
		left := l.left()
		l.calls.Lock()
		untilRenewal, lease, failure := l.renewAt-now(), l.lease, l.err
		l.calls.Unlock()
		warned = warned && left <= lease/3 // not any more, after a renewal
		untilEnd := left
		if !warned {
			untilEnd -= lease / 3
		}
		switch {
		case untilEnd <= 0:
			warned = true
			l.tell(failure)
		case untilRenewal <= 0:
			_ = l.renew(untilEnd)
		default:
			select {
			case <-l.ctx.Done():
			case <-time.After(min(untilEnd, untilRenewal, lease/24)):
			}
		}
	}
	l.end(ErrLost) // unless it has ended before
	if !l.unlocked.Load() {
		time.AfterFunc(l.left(), l.forget) // until then, Close releases it
	}
}

// tell warns the holder. It may be nil, the error of the last renewal.
func (l *Lock) tell(failure *Error) {
	if l.onDanger == nil {
		return
	}
	danger := Danger{Key: l.key, Token: l.token}
	if failure != nil {
		danger.Err = failure
	}
	go l.onDanger(danger)
}

func (l *Lock) forget() {
	l.client.mutex.Lock()
	defer l.client.mutex.Unlock()
	delete(l.client.held, l)
}

func (l *Lock) renew(limit time.Duration) *Error {
	l.calls.Lock()
	defer l.calls.Unlock()
	answer, number, failure := extend(l, limit, service.Renew, &pb.RenewRequest{Handle: l.handle})
	if failure == nil && answer.Stopping {
		l.client.moveOn(number)
	}
	return failure
}

// extend makes a call that extends the lease. The caller has l.calls.
func extend[Q any, A interface{ GetValidFor() *durationpb.Duration }](
	l *Lock, limit time.Duration, call rpc[Q, A], request Q,
) (A, uint64, *Error) {
	if l.client.coordinators() > 1 {
		limit = min(limit, l.lease/6) // early enough to ask another coordinator
	}
	sent := now()
	answer, number, failure := once(l.ctx, l.client, limit, call, request)
	if l.err = failure; failure == nil {
		lasts := answer.GetValidFor().AsDuration()
		l.deadline.Store(max(l.deadline.Load(), int64(sent+lasts)))
		l.lease = max(l.lease, lasts) // it lasts less where the coordinator's view of the topology ends before
		l.renewAt = sent + max(lasts/3, l.lease/24)
		return answer, number, nil
	}
	l.renewAt = now() + l.lease/24
	if failure.Reason == ErrLost {
		l.end(ErrLost)
	} else if l.ctx.Err() == nil {
		l.client.moveOn(number)
	}
	return answer, number, failure
}

// Downgrade makes a writer of a read-write lock a reader: stop writing before. The token stays. It repeats itself until
// the lock is a reader's. The error is ErrLost if the lock ends before, and ErrInvalidInput if it is of another kind.
func (l *Lock) Downgrade() error {
	for failures := 1; ; failures++ {
		failure := l.downgrade()
		if failure == nil {
			return nil
		}
		if l.Held() && !failure.Retryable {
			return failure
		}
		if !l.Held() || pause(l.ctx, failure, failures) != nil {
			return lost()
		}
	}
}

func (l *Lock) downgrade() *Error {
	l.calls.Lock()
	defer l.calls.Unlock()
	limit := min(l.left(), l.client.timeout)
	answer, _, failure := extend(l, max(limit, 1), service.Downgrade, &pb.DowngradeRequest{Handle: l.handle})
	if failure == nil {
		l.handle = answer.Handle
	}
	return failure
}

func lost() *Error { return &Error{Reason: ErrLost, Message: "the lock is not held any more"} }

// Unlock releases the lock: end the work under it before. The error is ErrLost if the lock was not held any more, or
// unlocked before. After another error, the lock is free when its lease ends, at the latest.
func (l *Lock) Unlock() error {
	l.end(context.Canceled)
	if l.unlocked.Swap(true) || context.Cause(l.ctx) == ErrLost {
		return lost()
	}
	defer l.forget()
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.left() <= 0 {
		return lost()
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(l.client.timeout, l.left()))
	defer cancel()
	request, coordinators := &pb.ReleaseRequest{Handle: l.handle}, l.client.coordinators()
	var unanswered *Error
	for attempt := 0; attempt <= coordinators; attempt++ {
		limit, patience := l.client.timeout/time.Duration(coordinators), grpc.WaitForReady(attempt == coordinators)
		answer, number, failure := once(ctx, l.client, limit, service.Release, request, patience)
		if failure != nil {
			unanswered = failure
			l.client.moveOn(number)
			continue
		}
		if answer.Outcome == pb.ReleaseOutcome_RELEASE_OUTCOME_HELD {
			return nil
		}
		if answer.Outcome == pb.ReleaseOutcome_RELEASE_OUTCOME_LOST && unanswered == nil {
			return lost()
		}
		break // perhaps an attempt without an answer has released it
	}
	if unanswered == nil {
		unanswered = &Error{Reason: ErrUnavailable, Message: "the shard gave no answer", MayHaveTakenEffect: true}
	}
	return unanswered
}
