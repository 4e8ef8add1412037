package ringfence

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// Changes in one call, and their bytes, at most: a coordinator takes 1,000, and 64 KiB.
const changesMax, changesBytes = 1000, 60_000

// Change is a change of an account, for [Client.Change].
type Change struct{ message *pb.Change }

// ToDeposit is the change that [Account.Deposit] makes.
func (a *Account) ToDeposit(id RequestID, amount int64) Change {
	return Change{&pb.Change{Request: &pb.Change_Deposit{Deposit: a.deposit(id, amount)}}}
}

func (a *Account) deposit(id RequestID, amount int64) *pb.DepositRequest {
	return &pb.DepositRequest{Account: a.name, Id: id.message(), Amount: amount, Reference: id.reference()}
}

// ToDeduct is the change that [Account.Deduct] makes.
func (a *Account) ToDeduct(id RequestID, amount int64) Change {
	return Change{&pb.Change{Request: &pb.Change_Deduct{Deduct: a.deduct(id, amount)}}}
}

func (a *Account) deduct(id RequestID, amount int64) *pb.DeductRequest {
	return &pb.DeductRequest{Account: a.name, Id: id.message(), Amount: amount, Reference: id.reference()}
}

// ToReserve is the change that [Account.Reserve] makes.
func (a *Account) ToReserve(id RequestID, amount int64, deadline time.Time) Change {
	return Change{&pb.Change{Request: &pb.Change_Reserve{Reserve: a.reserve(id, amount, deadline)}}}
}

func (a *Account) reserve(id RequestID, amount int64, deadline time.Time) *pb.ReserveRequest {
	return &pb.ReserveRequest{
		Account: a.name, Id: id.message(), Amount: amount, Deadline: timestamppb.New(deadline), Reference: id.reference(),
	}
}

// ToConfirm is the change that [Account.Confirm] makes.
func (a *Account) ToConfirm(id RequestID) Change {
	request := &pb.ConfirmRequest{Account: a.name, Id: id.message()}
	return Change{&pb.Change{Request: &pb.Change_Confirm{Confirm: request}}}
}

// ToCancel is the change that [Account.Cancel] makes.
func (a *Account) ToCancel(id RequestID) Change {
	request := &pb.CancelRequest{Account: a.name, Id: id.message()}
	return Change{&pb.Change{Request: &pb.Change_Cancel{Cancel: request}}}
}

// ToTransfer is the change that [Account.Transfer] makes.
func (a *Account) ToTransfer(id RequestID, amount int64, to string) Change {
	return Change{&pb.Change{Request: &pb.Change_Transfer{Transfer: a.transfer(id, amount, to)}}}
}

func (a *Account) transfer(id RequestID, amount int64, to string) *pb.TransferRequest {
	return &pb.TransferRequest{Account: a.name, Id: id.message(), Amount: amount, To: to, Reference: id.reference()}
}

// legsOf are legs in a message. Without any, a request would be another one.
func legsOf(legs map[string]int64) ([]*pb.Leg, error) {
	if len(legs) == 0 {
		return nil, &Error{Reason: ErrInvalidInput, Message: "there are 0 legs, must be 1 to 16"}
	}
	var messages []*pb.Leg
	for to, amount := range legs {
		messages = append(messages, &pb.Leg{To: to, Amount: amount})
	}
	return messages, nil
}

func (a *Account) capture(id, capture RequestID, legs map[string]int64) (*pb.ConfirmRequest, error) {
	messages, err := legsOf(legs)
	request := &pb.ConfirmRequest{
		Account: a.name, Id: id.message(), Legs: messages, CaptureId: capture.message(),
	}
	return request, err
}

func (a *Account) transferLegs(id RequestID, legs map[string]int64) (*pb.TransferRequest, error) {
	messages, err := legsOf(legs)
	return &pb.TransferRequest{Account: a.name, Id: id.message(), Legs: messages, Reference: id.reference()}, err
}

// Changed is the answer to a change.
type Changed struct {
	// Err is an *Error, or nil: the change took effect, now or by an earlier call with the same id.
	Err error
	// Reservation is the state of the reservation, of a change that is about one.
	Reservation Reservation
	// Balance is the balance after it. Nil: the account has several segments, or the change failed.
	Balance *BalanceAfter
}

// Change makes changes of any accounts, and returns an answer for each, in the same order.
//
// They are made at the same time, in no order, and one that fails fails alone. A call to the coordinator has up to 1,000
// of them. Those that a repeat may help are repeated for the time of [WithTimeout].
func (c *Client) Change(ctx context.Context, changes []Change) []Changed {
	answers := make([]Changed, len(changes))
	for first := 0; first < len(changes); {
		size, next := 0, first
		for next < len(changes) && next-first < changesMax {
			size += proto.Size(changes[next].message) + 4
			if next > first && size > changesBytes {
				break
			}
			next++
		}
		c.change(ctx, changes[first:next], answers[first:next])
		first = next
	}
	return answers
}

// change makes the changes of one call, and repeats those that failed for a while.
func (c *Client) change(ctx context.Context, changes []Change, answers []Changed) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	left, unknown := make([]int, len(changes)), make([]bool, len(changes))
	for at := range left {
		left[at] = at
	}
	for failures := 1; ; failures++ {
		request := &pb.BatchChangeRequest{}
		for _, at := range left {
			request.Changes = append(request.Changes, changes[at].message)
		}
		limit := c.timeout / time.Duration(c.coordinators())
		made, number, failure := once(limited, c, limit, service.BatchChange, request)
		if failure != nil && failure.Retryable && ctx.Err() == nil {
			c.moveOn(number)
		}
		var again []int
		var longest *Error
		for nth, at := range left {
			answers[at] = changedOf(made, nth, failure)
			failure, failed := answers[at].Err.(*Error)
			if !failed {
				continue
			}
			unknown[at] = failure.after(unknown[at])
			if failure.Retryable {
				again = append(again, at)
				if longest == nil || failure.RetryAfter > longest.RetryAfter {
					longest = failure
				}
			}
		}
		if longest == nil {
			return
		}
		if cause := pause(limited, longest, failures); cause != nil {
			for _, at := range again {
				answers[at].Err.(*Error).cause = cause
			}
			return
		}
		left = again
	}
}

// changedOf is one of the answers of a call, or the failure of the call.
func changedOf(made *pb.BatchChangeResponse, nth int, failure *Error) Changed {
	if failure != nil {
		its := *failure
		return Changed{Err: &its}
	}
	if nth >= len(made.GetAnswers()) {
		return Changed{Err: &Error{Reason: "UNSPECIFIED", Message: "no answer to the change", MayHaveTakenEffect: true}}
	}
	answer := made.Answers[nth]
	if answer.Failure != nil {
		its := &Error{Reason: "UNSPECIFIED", Message: answer.Failure.Message, MayHaveTakenEffect: true}
		its.describe(answer.Failure.Error)
		return Changed{Err: its}
	}
	its := Changed{Balance: after(answer.Balance)}
	if answer.State != pb.ReservationState_RESERVATION_STATE_UNSPECIFIED {
		its.Reservation = reservationOf(answer.State)
	}
	return its
}
