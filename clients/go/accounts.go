package ringfence

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// AccountFilter chooses accounts of a namespace. InDoubt, Lost, Held, Unfinished: those that have any of these; none of them set: all.
type AccountFilter struct {
	// Namespace is "default" if it is empty.
	Namespace string
	// Prefix is the beginning of their names.
	Prefix string
	// InDoubt: a segment is in doubt, and moves no amount until it is accepted.
	InDoubt bool
	// Lost: a segment is lost with its shard.
	Lost bool
	// Held: an amount is set aside, by a reservation or by a transfer on its way.
	Held bool
	// Unfinished: a transfer from or to it is not finished.
	Unfinished bool
}

func (f AccountFilter) message() *pb.ListAccountsRequest {
	request := &pb.ListAccountsRequest{Namespace: f.Namespace, Prefix: f.Prefix}
	for condition, wanted := range map[pb.AccountCondition]bool{
		pb.AccountCondition_ACCOUNT_CONDITION_IN_DOUBT:   f.InDoubt,
		pb.AccountCondition_ACCOUNT_CONDITION_LOST:       f.Lost,
		pb.AccountCondition_ACCOUNT_CONDITION_HELD:       f.Held,
		pb.AccountCondition_ACCOUNT_CONDITION_UNFINISHED: f.Unfinished,
	} {
		if wanted {
			request.Conditions = append(request.Conditions, condition)
		}
	}
	return request
}

// Segment is a segment of an account.
type Segment struct {
	// Index is its number, from 0.
	Index uint32
	// Available can be spent, Held is set aside in addition.
	Available, Held int64
	// InDoubt tells whether it may have lost its last changes: it moves no amount until it is accepted.
	InDoubt bool
	// Losses is how often it may have lost its last changes and went on.
	Losses uint64
	// Unfinished is the number of transfers from or to it that are not finished.
	Unfinished uint64
}

// LostSegment is a segment that is lost with its shard.
type LostSegment struct {
	// Index is its number, from 0.
	Index uint32
	// SeenAt is the time of the last sweep that saw it. Zero: none did.
	SeenAt time.Time
	// Amount was in it at that time, with what was set aside.
	Amount int64
}

// ListedAccount is an account of a list. Its segments are not read at one instant.
type ListedAccount struct {
	Name     string
	Segments []Segment
	Lost     []LostSegment
	// Limits are its unit and its limits.
	Limits Limits
	Labels map[string]string
	// Err is why the segments could not be read.
	Err error
}

// Accounts lists accounts, in no order. It is not a snapshot: an account that exists all the time comes at least once.
// An account that could not be read comes with its Err, whatever the filter. If a shard could not be read to its end, the
// list ends with an error. It needs the role `read` of the whole namespace.
func (c *Client) Accounts(ctx context.Context, filter AccountFilter) iter.Seq2[ListedAccount, error] {
	return func(yield func(ListedAccount, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		service, number := c.pick()
		pages, err := service.ListAccounts(ctx, filter.message(), c.calls...)
		var incomplete error
		for err == nil {
			var page *pb.ListAccountsResponse
			if page, err = pages.Recv(); err != nil {
				break
			}
			if page.Error != "" {
				message := page.Shard + ": " + page.Error
				incomplete = &Error{Reason: "SHARD_UNAVAILABLE", Message: message, Retryable: true}
			}
			for _, account := range page.Accounts {
				if !yield(listed(account), nil) {
					return
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			failure := failed(ctx, err)
			if failure.elsewhere {
				c.moveOn(number)
			}
			incomplete = failure
		}
		if incomplete != nil {
			yield(ListedAccount{}, incomplete)
		}
	}
}

func listed(account *pb.ListedAccount) ListedAccount {
	found := ListedAccount{Name: account.Name}
	if failure := account.Failure; failure != nil {
		e := &Error{Reason: "UNSPECIFIED", Message: failure.Message}
		e.describe(failure.Error)
		found.Err = e
	}
	if of := account.Segments; of != nil {
		found.Limits, found.Labels = Limits{of.Unit, of.Floor, of.Ceiling}, of.Labels
	}
	for _, one := range account.GetSegments().GetPresent() {
		segment := Segment{one.Index, one.Available, one.Held, one.InDoubt, one.Losses, one.Unfinished}
		found.Segments = append(found.Segments, segment)
	}
	for _, one := range account.GetSegments().GetLost() {
		lost := LostSegment{Index: one.Index}
		if seen := one.LastSeen; seen != nil {
			lost.SeenAt, lost.Amount = seen.At.AsTime(), seen.Amount
		}
		found.Lost = append(found.Lost, lost)
	}
	return found
}
