package ringfence

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// Reason is why a call failed: the name of an ErrorReason of the API, without its prefix. It is an error, for errors.Is.
// Reasons without a constant work too: errors.Is(err, Reason("MOVING")).
type Reason string

// Reasons that a caller may want to tell apart.
const (
	ErrHeld               Reason = "HELD"                // another holder has the lock
	ErrTimedOut           Reason = "TIMED_OUT"           // the wait has ended without the lock
	ErrLost               Reason = "LOCK_LOST"           // the lease has ended, or the lock was released
	ErrOtherKind          Reason = "OTHER_KIND"          // the key is in use as a lock of another kind
	ErrInsufficient       Reason = "INSUFFICIENT"        // the whole account has less than the amount
	ErrNoAccount          Reason = "NO_ACCOUNT"          // the account, or the latch, does not exist
	ErrAccountExists      Reason = "ACCOUNT_EXISTS"      // it exists with other terms
	ErrAccountClosed      Reason = "ACCOUNT_CLOSED"      // the account takes no new money
	ErrUnknownReservation Reason = "UNKNOWN_RESERVATION" // no reservation with that id is known
	ErrCancelled          Reason = "CANCELLED"           // the request was cancelled before
	ErrTransferRefused    Reason = "TRANSFER_REFUSED"    // the amount is back in the source account
	ErrOtherUnit          Reason = "OTHER_UNIT"          // the destination has another unit; nothing was taken
	ErrNotDeletable       Reason = "NOT_DELETABLE"       // the account is open, or not empty
	ErrTransferUnfinished Reason = "TRANSFER_UNFINISHED" // the amount is on its way: repeat with the same id
	ErrSegmentLost        Reason = "SEGMENT_LOST"        // a part of the account is lost, or in doubt
	ErrIDConflict         Reason = "ID_CONFLICT"         // the id was used before, for another request
	ErrIDTooOld           Reason = "ID_TOO_OLD"          // the first answer to the id may be forgotten
	ErrInvalidInput       Reason = "INVALID_INPUT"       // the message has the field, its value and the limit
	ErrUnauthenticated    Reason = "UNAUTHENTICATED"     // no token or certificate of a known caller
	ErrNotAllowed         Reason = "NOT_ALLOWED"         // the roles of the caller do not allow the call
	ErrDeadline           Reason = "DEADLINE"            // the deadline of the call has passed
	ErrUnavailable        Reason = "UNAVAILABLE"         // no coordinator answered in time; not in the API
)

func (r Reason) Error() string { return strings.ReplaceAll(strings.ToLower(string(r)), "_", " ") }

// Error is a call that failed. All calls of this package fail with an *Error.
//
// errors.Is finds its Reason; context.Canceled, if the context of the call was cancelled; and
// context.DeadlineExceeded, if a deadline has passed or a wait has ended.
type Error struct {
	// Reason is UNSPECIFIED if it is of a later release.
	Reason Reason
	// Message is for people.
	Message string
	// Retryable tells whether the same call may succeed if it is repeated.
	Retryable bool
	// MayHaveTakenEffect tells whether the call may have taken effect, or may yet: repeat it with the same id.
	MayHaveTakenEffect bool
	// RetryAfter is the earliest time to repeat the call, counted from the answer. 0: not known.
	RetryAfter time.Duration

	status    *status.Status
	cause     error // of the context's end
	elsewhere bool  // this coordinator cannot serve, but another one may
}

func (e *Error) Error() string { return fmt.Sprintf("ringfence: %v: %s", e.Reason, e.Message) }

// GRPCStatus returns the status of the call, for package status. Nil: the error is not a coordinator's.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Unwrap is for errors.Is.
func (e *Error) Unwrap() []error {
	switch {
	case e.cause != nil:
		return []error{e.Reason, e.cause}
	case e.status.Code() == codes.DeadlineExceeded:
		return []error{e.Reason, context.DeadlineExceeded}
	}
	return []error{e.Reason}
}

// ofAccount tells whether an account or a latch has decided, which looks up the id of the request before.
func (e *Error) ofAccount() bool {
	return pb.ErrorReason_value["ERROR_REASON_"+string(e.Reason)] >= int32(pb.ErrorReason_ERROR_REASON_INSUFFICIENT)
}

// after notes what an earlier attempt of the request may have done. It returns what both may have done. The account's own
// answers tell about earlier attempts, too.
func (e *Error) after(unknown bool) bool {
	if e.Retryable || !e.ofAccount() {
		e.MayHaveTakenEffect = e.MayHaveTakenEffect || unknown
	}
	return e.MayHaveTakenEffect
}

// describe takes over what a coordinator says of the error.
func (e *Error) describe(detail *pb.ErrorDetail) {
	if name, known := pb.ErrorReason_name[int32(detail.GetReason())]; known {
		e.Reason = Reason(strings.TrimPrefix(name, "ERROR_REASON_"))
	}
	e.Retryable = detail.GetRetryable()
	e.MayHaveTakenEffect = detail.GetEffect() != pb.Effect_EFFECT_NONE
	e.RetryAfter = detail.GetRetryAfter().AsDuration()
	e.elsewhere = detail.GetReason() == pb.ErrorReason_ERROR_REASON_STOPPING
}

// failed describes the error of a call with ctx.
func failed(ctx context.Context, err error) *Error {
	s := status.Convert(err)
	e := &Error{Reason: "UNSPECIFIED", Message: s.Message(), MayHaveTakenEffect: true, status: s, cause: ctx.Err()}
	for _, detail := range s.Details() {
		if detail, ok := detail.(*pb.ErrorDetail); ok {
			e.describe(detail)
			return e
		}
	}
	// The status is of gRPC or of a proxy.
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled: // cancelled by the other side, unless ctx has ended
		e.Reason, e.Retryable, e.elsewhere = ErrUnavailable, true, true
		if e.cause == context.DeadlineExceeded {
			e.Reason = ErrDeadline
		} else if e.cause != nil {
			e.Reason = "UNSPECIFIED"
		}
	}
	return e
}
