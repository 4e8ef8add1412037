package ringfence

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// RequestID is the id of a change. Make it once per event, and keep it with the event: a repeat with the same id has no
// second effect, and gets the first answer.
type RequestID struct {
	// CreatedAt is the time of the event. Digits below 1 ms are ignored.
	CreatedAt time.Time
	// Name is one that no other request of the account has at that time: 1 to 128 bytes.
	Name string
	// Reference is not part of the id: the log of the account keeps it with the effect of a deposit, deduction, reservation
	// or transfer. Zero: none. Any other is refused if the account has no log.
	Reference [16]byte
}

// NewRequestID returns an id of now. An empty name is replaced by a random one.
func NewRequestID(name string) RequestID {
	if name == "" {
		name = rand.Text()
	}
	return RequestID{CreatedAt: time.Now().Truncate(time.Millisecond), Name: name}
}

func (id RequestID) reference() []byte {
	if id.Reference == [16]byte{} {
		return nil
	}
	return id.Reference[:]
}

func (id RequestID) message() *pb.RequestId {
	return &pb.RequestId{CreatedAt: timestamppb.New(id.CreatedAt), Name: id.Name}
}

// Durability is what an acknowledged change of an account or a latch survives. It has no default.
type Durability struct {
	kind     pb.Durability
	replicas uint32
}

var (
	// InMemory survives nothing: a shard that restarts may have lost the last changes, and says so.
	InMemory = Durability{kind: pb.Durability_DURABILITY_MEMORY}
	// OnDisk survives a restart of the shard.
	OnDisk = Durability{kind: pb.Durability_DURABILITY_DISK}
)

// OnReplicas survives the loss of the shard: 1 to 8 replicas have the change.
func OnReplicas(count uint32) Durability {
	return Durability{kind: pb.Durability_DURABILITY_REPLICAS, replicas: count}
}

// Account returns the account of that name, 1 to 255 bytes, in the namespace "default". Nothing is sent.
func (c *Client) Account(name string) *Account { return c.AccountIn("", name) }

// AccountIn returns an account of another namespace.
func (c *Client) AccountIn(namespace, name string) *Account {
	return &Account{client: c, name: &pb.Account{Namespace: namespace, Name: name}}
}

// Account is a counter of money, coins or stock. Amounts are in the smallest unit, and at least 1. A change returns the
// balance after it.
//
// Each call repeats itself after a failure, for the time of [WithTimeout]. If it then fails with MayHaveTakenEffect, make
// it again with the same id.
type Account struct {
	client *Client
	name   *pb.Account
}

// Limits are the unit and the limits of an account.
type Limits struct {
	// Unit is its code, at most 16 characters. There are no transfers between accounts of different units.
	Unit string
	// Floor is the least ledger balance: 0, or below 0 by a credit line, which can be spent.
	Floor int64
	// Ceiling is the greatest ledger balance, only with one segment. Nil: none. Deposits beyond are refused, and transfers
	// return.
	Ceiling *int64
}

// Create creates the account, empty, with 1 to 1024 segments; 0: the default, 1. More segments take more changes per
// second. An account that exists stays as it is; if it has another durability, the error is ErrAccountExists.
func (a *Account) Create(ctx context.Context, durability Durability, segments uint32) error {
	return a.CreateWithin(ctx, durability, segments, Limits{})
}

// CreateWithin creates the account with a unit and limits.
func (a *Account) CreateWithin(ctx context.Context, durability Durability, segments uint32, limits Limits) error {
	_, err := repeat(ctx, a.client, 0, service.CreateAccount, &pb.CreateAccountRequest{
		Account: a.name, Segments: segments, Durability: durability.kind, Replicas: durability.replicas,
		Unit: limits.Unit, Floor: limits.Floor, Ceiling: limits.Ceiling,
	})
	return err
}

// Label sets labels of the account. The others stay.
func (a *Account) Label(ctx context.Context, labels map[string]string) error {
	request := &pb.LabelAccountRequest{Account: a.name, Set: labels}
	_, err := repeat(ctx, a.client, 0, service.LabelAccount, request)
	return err
}

// RemoveLabels removes labels of the account, if it has them.
func (a *Account) RemoveLabels(ctx context.Context, names ...string) error {
	request := &pb.LabelAccountRequest{Account: a.name, Remove: names}
	_, err := repeat(ctx, a.client, 0, service.LabelAccount, request)
	return err
}

// BalanceAfter is the balance of an account just after a request, or at a repeat of it.
type BalanceAfter struct {
	// Ledger is what the account has: Available and Held, without its credit line.
	Ledger int64
	// Available can be spent, with the credit line.
	Available int64
	// Held is set aside in addition.
	Held int64
}

func after(balance *pb.BalanceAfter) *BalanceAfter {
	if balance == nil {
		return nil
	}
	return &BalanceAfter{balance.Ledger, balance.Available, balance.Held}
}

func changed(answer interface{ GetBalance() *pb.BalanceAfter }, err error) (Changed, error) {
	if err != nil {
		return Changed{Err: err}, err
	}
	made := Changed{Balance: after(answer.GetBalance())}
	if of, is := answer.(interface{ GetState() pb.ReservationState }); is {
		made.Reservation = reservationOf(of.GetState())
	}
	return made, nil
}

// Deposit adds an amount.
func (a *Account) Deposit(ctx context.Context, id RequestID, amount int64) (Changed, error) {
	return changed(repeat(ctx, a.client, 0, service.Deposit, a.deposit(id, amount)))
}

// Deduct takes an amount. The error is ErrInsufficient if the whole account has less.
func (a *Account) Deduct(ctx context.Context, id RequestID, amount int64) (Changed, error) {
	return changed(repeat(ctx, a.client, 0, service.Deduct, a.deduct(id, amount)))
}

// Balance is the balance of an account.
type Balance struct {
	// Ledger is what the account has: Available and Held, without its credit line.
	Ledger int64
	// Available can be spent. It includes the part that moves between segments, and the credit line.
	Available int64
	// Held is set aside in addition, by reservations and transfers.
	Held int64
	// Losses is how often a shard may have lost its last changes, and the account went on.
	Losses uint64
	// LostSegments is the number of segments that are lost. Their amounts do not count.
	LostSegments uint32
	// CountsTwice tells whether an amount that moved during the call counts twice. Never in an exact balance.
	CountsTwice bool
}

// Balance returns the balance. Changes during the call may count or not.
func (a *Account) Balance(ctx context.Context) (Balance, error) { return a.balance(ctx, false) }

// ExactBalance returns the balance of one instant during the call. It costs more: an account in heavy use waits for a
// moment.
func (a *Account) ExactBalance(ctx context.Context) (Balance, error) { return a.balance(ctx, true) }

func (a *Account) balance(ctx context.Context, exact bool) (Balance, error) {
	request := &pb.GetBalanceRequest{Account: a.name, Exact: exact}
	answer, err := repeat(ctx, a.client, 0, service.GetBalance, request)
	if err != nil {
		return Balance{}, err
	}
	return Balance{
		Ledger:       answer.Ledger,
		Available:    answer.Available,
		Held:         answer.Held,
		Losses:       answer.Losses,
		LostSegments: answer.LostSegments,
		CountsTwice:  answer.CountsTwice,
	}, nil
}

// Reservation is the state of a reservation.
type Reservation string

// The states of a reservation.
const (
	ReservationHeld      Reservation = "HELD"      // the amount is set aside
	ReservationConfirmed Reservation = "CONFIRMED" // the amount was spent
	ReservationCancelled Reservation = "CANCELLED" // the amount was given back
	ReservationExpired   Reservation = "EXPIRED"   // the amount came back at the deadline
)

func reservationOf(state pb.ReservationState) Reservation {
	return Reservation(strings.TrimPrefix(state.String(), "RESERVATION_STATE_"))
}

// Reserve sets an amount aside until it is confirmed or cancelled, or until the deadline, by the shard's clock: the same
// deadline in each repeat. The id identifies the reservation. The error is ErrInsufficient if the account has less.
func (a *Account) Reserve(ctx context.Context, id RequestID, amount int64, deadline time.Time) (Changed, error) {
	return changed(repeat(ctx, a.client, 0, service.Reserve, a.reserve(id, amount, deadline)))
}

// Confirm spends what was reserved with that id. It is spent only if the state is ReservationConfirmed: the reservation
// may have ended before, which is no error.
func (a *Account) Confirm(ctx context.Context, id RequestID) (Changed, error) {
	request := &pb.ConfirmRequest{Account: a.name, Id: id.message()}
	return changed(repeat(ctx, a.client, 0, service.Confirm, request))
}

// ConfirmPart spends a part of what was reserved with that id, and the rest comes back. A repeat tells how the reservation
// ended, whatever the amount.
func (a *Account) ConfirmPart(ctx context.Context, id RequestID, amount int64) (Changed, error) {
	request := &pb.ConfirmRequest{Account: a.name, Id: id.message(), Amount: amount}
	if amount < 1 {
		err := &Error{Reason: ErrInvalidInput, Message: fmt.Sprintf("amount is %d, must be at least 1", amount)}
		return Changed{Err: err}, err
	}
	return changed(repeat(ctx, a.client, 0, service.Confirm, request))
}

// Capture pays other accounts of the same namespace and unit from what was reserved with that id: each its amount, or none
// any. The rest comes back. They know their legs by the id capture. The error is ErrTransferRefused if one of them does
// not take its leg: the reservation is still held, and another capture has another id.
func (a *Account) Capture(ctx context.Context, id, capture RequestID, legs map[string]int64) (Changed, error) {
	request, err := a.capture(id, capture, legs)
	if err != nil {
		return Changed{Err: err}, err
	}
	return changed(repeat(ctx, a.client, 0, service.Confirm, request))
}

// Cancel gives back what was reserved with that id, or tells how the reservation ended before. A reservation that
// arrives later gets nothing.
func (a *Account) Cancel(ctx context.Context, id RequestID) (Changed, error) {
	request := &pb.CancelRequest{Account: a.name, Id: id.message()}
	return changed(repeat(ctx, a.client, 0, service.Cancel, request))
}

// Decision is what was decided on a request.
type Decision string

// The decisions on a request.
const (
	DecisionDone         Decision = "DONE"         // applied: the deposit or the deduction took effect
	DecisionInsufficient Decision = "INSUFFICIENT" // refused: the whole account had too little
	DecisionHeld         Decision = "HELD"         // open: the amount is set aside
	DecisionConfirmed    Decision = "CONFIRMED"    // applied: the reserved amount was spent
	DecisionCancelled    Decision = "CANCELLED"    // refused: the reservation was cancelled
	DecisionExpired      Decision = "EXPIRED"      // refused: the reservation came back at its deadline
	DecisionSent         Decision = "SENT"         // open: the transfer has left and has not arrived; a repeat finishes it
	DecisionDelivered    Decision = "DELIVERED"    // applied: the transfer arrived
	DecisionReturned     Decision = "RETURNED"     // refused: the destination refused the transfer, and the amount is back
	DecisionCommitted    Decision = "COMMITTED"    // open: several accounts are being paid; a repeat finishes it
	// DecisionNeverSeen: the request may be on its way. Repeat it, or cancel it, so that it is refused when it arrives.
	DecisionNeverSeen Decision = "NEVER_SEEN"
	// DecisionForgotten: the id is older than what the account remembers. The request was applied, refused, or never seen.
	DecisionForgotten Decision = "FORGOTTEN"
)

// Found is what was decided on a request.
type Found struct {
	Decision Decision
	// Amount is that of DecisionHeld and DecisionSent.
	Amount int64
	// Deadline is that of DecisionHeld: the time at which the amount comes back by itself.
	Deadline time.Time
	// To is the destination of DecisionSent.
	To string
	// Legs are those of DecisionCommitted: the amount for each account.
	Legs map[string]int64
	// ForgottenUntil is for DecisionForgotten: requests created at this time or before may be forgotten.
	ForgottenUntil time.Time
}

// Find returns what was decided on the request with that id, of whatever kind. It decides nothing.
func (a *Account) Find(ctx context.Context, id RequestID) (Found, error) {
	request := &pb.FindRequest{Account: a.name, Id: id.message()}
	answer, err := repeat(ctx, a.client, 0, service.Find, request)
	if err != nil {
		return Found{}, err
	}
	found := Found{
		Decision: Decision(strings.TrimPrefix(answer.Decision.String(), "DECISION_")),
		Amount:   answer.Amount,
		To:       answer.To,
	}
	for _, leg := range answer.Legs {
		if found.Legs == nil {
			found.Legs = map[string]int64{}
		}
		found.Legs[leg.To] = leg.Amount
	}
	if answer.Deadline != nil {
		found.Deadline = answer.Deadline.AsTime()
	}
	if answer.ForgottenUntil != nil {
		found.ForgottenUntil = answer.ForgottenUntil.AsTime()
	}
	return found, nil
}

// EffectKind is what an effect changed.
type EffectKind string

// The kinds of effects.
const (
	EffectDeposited EffectKind = "DEPOSITED" // available + amount: a deposit
	EffectDeducted  EffectKind = "DEDUCTED"  // available - amount: a deduction
	EffectReserved  EffectKind = "RESERVED"  // available - amount, held + amount: a reservation
	EffectConfirmed EffectKind = "CONFIRMED" // held - amount: a reservation was spent
	EffectCancelled EffectKind = "CANCELLED" // held - amount, available + amount: a reservation was cancelled
	EffectExpired   EffectKind = "EXPIRED"   // held - amount, available + amount: a reservation came back at its deadline
	EffectSent      EffectKind = "SENT"      // available - amount, held + amount: a transfer has left
	EffectDelivered EffectKind = "DELIVERED" // held - amount: the other account has the amount
	EffectReturned  EffectKind = "RETURNED"  // held - amount, available + amount: the other account refused the amount
	EffectReceived  EffectKind = "RECEIVED"  // available + amount: a transfer from the other account
	EffectLent      EffectKind = "LENT"      // available - amount: it went to another segment of the account
	EffectLanded    EffectKind = "LANDED"    // available + amount: it came from another segment of the account
)

// Effect is a change of the amounts in a segment of an account.
type Effect struct {
	// Segment is the number of the segment, from 0.
	Segment uint32
	// Number is that of the effect in the segment.
	Number uint64
	// At is when it was made, by the clock of the shard.
	At     time.Time
	Kind   EffectKind
	Amount int64
	// Available is the amount in the segment that can be spent, after the effect; Held what is set aside.
	Available, Held int64
	// Request is the id of the request. EffectLent and EffectLanded have none.
	Request RequestID
	// Counterpart is the other account of a transfer.
	Counterpart string
	// OtherSegment and Loan are for EffectLent and EffectLanded: the other segment, and the number of the loan, the same
	// at both.
	OtherSegment uint32
	Loan         uint64
	// FollowsGap tells whether effects of the segment are missing before it: dropped because of their age or number, or
	// lost by the server.
	FollowsGap bool
	// Reference is that of the request.
	Reference [16]byte
}

// History is a part of the log of an account.
type History struct {
	// Effects of one segment are in their order, and all are in the order of their times.
	Effects []Effect
	// Next is the cursor for the next part. At the end of the log, ask again later for new effects.
	Next string
	// End tells whether there were no more effects.
	End bool
	// LostSegments are the numbers of segments that are lost, with their logs.
	LostSegments []uint32
}

// History returns the log of the account behind the cursor, oldest effects first, about 1,000 of them: every change of
// its amounts, once. An empty cursor: from the oldest effect on.
func (a *Account) History(ctx context.Context, cursor string) (History, error) {
	return a.history(ctx, &pb.GetHistoryRequest{Account: a.name, Cursor: cursor})
}

// HistorySince returns effects of that time or later. The next part: [Account.History].
func (a *Account) HistorySince(ctx context.Context, since time.Time) (History, error) {
	return a.history(ctx, &pb.GetHistoryRequest{Account: a.name, Since: timestamppb.New(since)})
}

func (a *Account) history(ctx context.Context, request *pb.GetHistoryRequest) (History, error) {
	answer, err := repeat(ctx, a.client, 0, service.GetHistory, request)
	if err != nil {
		return History{}, err
	}
	effects := make([]Effect, len(answer.Effects))
	for nth, effect := range answer.Effects {
		effects[nth] = Effect{
			Segment:      effect.Segment,
			Number:       effect.Number,
			At:           effect.At.AsTime(),
			Kind:         EffectKind(strings.TrimPrefix(effect.Kind.String(), "EFFECT_KIND_")),
			Amount:       effect.Amount,
			Available:    effect.Available,
			Held:         effect.Held,
			Counterpart:  effect.Counterpart,
			OtherSegment: effect.OtherSegment,
			Loan:         effect.Loan,
			FollowsGap:   effect.FollowsGap,
		}
		if id := effect.Id; id != nil {
			effects[nth].Request = RequestID{CreatedAt: id.CreatedAt.AsTime(), Name: id.Name}
		}
		copy(effects[nth].Reference[:], effect.Reference)
	}
	return History{effects, answer.Next, answer.End, answer.LostSegments}, nil
}

// Transfer moves an amount to another account of the same namespace and unit. The error is ErrTransferRefused if that
// one does not take it: then the amount is back.
func (a *Account) Transfer(ctx context.Context, id RequestID, amount int64, to string) (Changed, error) {
	return changed(repeat(ctx, a.client, 0, service.Transfer, a.transfer(id, amount, to)))
}

// TransferLegs moves amounts to other accounts of the same namespace and unit: each gets its own, or none gets any. The
// error is ErrTransferRefused if one of them does not take its leg.
func (a *Account) TransferLegs(ctx context.Context, id RequestID, legs map[string]int64) (Changed, error) {
	request, err := a.transferLegs(id, legs)
	if err != nil {
		return Changed{Err: err}, err
	}
	return changed(repeat(ctx, a.client, 0, service.Transfer, request))
}
