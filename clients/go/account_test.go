package ringfence_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ringfence "github.com/ringfence/ringfence/clients/go"
)

// created returns an account of the test's own, with this amount.
func created(t *testing.T, client *ringfence.Client, name string, amount int64) *ringfence.Account {
	t.Helper()
	account := client.Account(t.Name() + name)
	check(t, account.Create(within(t), ringfence.InMemory, 2))
	if amount > 0 {
		must[ringfence.Changed](t)(account.Deposit(within(t), ringfence.NewRequestID(""), amount))
	}
	return account
}

// has checks what can be spent, and what is set aside.
func has(t *testing.T, account *ringfence.Account, available, held int64) {
	t.Helper()
	for _, read := range []func(context.Context) (ringfence.Balance, error){account.Balance, account.ExactBalance} {
		if balance := must[ringfence.Balance](t)(read(within(t))); balance.Available != available || balance.Held != held {
			t.Errorf("%+v, not %d and %d", balance, available, held)
		}
	}
}

// fails checks the reason of an error.
func fails(t *testing.T, err error, reason ringfence.Reason) *ringfence.Error {
	t.Helper()
	var failure *ringfence.Error
	if !errors.As(err, &failure) || !errors.Is(err, reason) {
		t.Fatalf("%#v, not %v", err, reason)
	}
	return failure
}

// errorOf is the error of a change.
func errorOf(_ ringfence.Changed, err error) error { return err }

func TestAnAccountIsCreatedWithADurabilityOnly(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	account := dial(t, shared.coordinator).Account(t.Name())
	fails(t, account.Create(ctx, ringfence.Durability{}, 2), ringfence.ErrInvalidInput)
	fails(t, errorOf(account.Deposit(ctx, ringfence.NewRequestID(""), 1)), ringfence.ErrNoAccount)
	check(t, account.Create(ctx, ringfence.InMemory, 2))
	check(t, account.Create(ctx, ringfence.InMemory, 2)) // has no effect
	fails(t, account.Create(ctx, ringfence.OnReplicas(1), 2), ringfence.ErrAccountExists)
	has(t, account, 0, 0)
}

func TestARepeatedChangeHasOneEffect(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	coins := created(t, dial(t, shared.coordinator), "", 0)
	gift, order := ringfence.NewRequestID("gift"), ringfence.NewRequestID("order")
	for range 2 {
		must[ringfence.Changed](t)(coins.Deposit(ctx, gift, 100))
		must[ringfence.Changed](t)(coins.Deduct(ctx, order, 30))
	}
	fails(t, errorOf(coins.Deduct(ctx, order, 31)), ringfence.ErrIDConflict)
	failure := fails(t, errorOf(coins.Deduct(ctx, ringfence.NewRequestID(""), 71)), ringfence.ErrInsufficient)
	if failure.MayHaveTakenEffect || failure.Retryable {
		t.Errorf("%#v", failure)
	}
	fails(t, errorOf(coins.Deduct(ctx, ringfence.RequestID{CreatedAt: time.Unix(0, 0), Name: "old"}, 1)), ringfence.ErrIDTooOld)
	has(t, coins, 70, 0)
}

func TestAReservationIsConfirmedOrCancelledOrExpires(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	coins := created(t, dial(t, shared.coordinator), "", 100)
	later := time.Now().Add(time.Hour)
	state := func(got ringfence.Changed, err error) func(ringfence.Reservation) {
		t.Helper()
		check(t, err)
		return func(want ringfence.Reservation) {
			t.Helper()
			if got.Reservation != want {
				t.Errorf("%s, not %s", got.Reservation, want)
			}
		}
	}
	spent, returned, forgotten := ringfence.NewRequestID("1"), ringfence.NewRequestID("2"), ringfence.NewRequestID("3")
	state(coins.Reserve(ctx, spent, 30, later))(ringfence.ReservationHeld)
	state(coins.Reserve(ctx, returned, 20, later))(ringfence.ReservationHeld)
	has(t, coins, 50, 50)
	state(coins.Confirm(ctx, spent))(ringfence.ReservationConfirmed)
	state(coins.Cancel(ctx, returned))(ringfence.ReservationCancelled)
	state(coins.Cancel(ctx, spent))(ringfence.ReservationConfirmed)
	state(coins.Confirm(ctx, returned))(ringfence.ReservationCancelled)
	soon := time.Now().Add(50 * time.Millisecond)
	_, err := coins.Reserve(ctx, forgotten, 10, soon)
	check(t, err)
	eventually(t, func() bool {
		got := must[ringfence.Changed](t)(coins.Reserve(ctx, forgotten, 10, soon))
		return got.Reservation == ringfence.ReservationExpired
	})
	state(coins.Confirm(ctx, forgotten))(ringfence.ReservationExpired)
	_, err = coins.Confirm(ctx, ringfence.NewRequestID("unknown"))
	fails(t, err, ringfence.ErrUnknownReservation)
	has(t, coins, 70, 0)
}

func TestATransferMovesAnAmountOnce(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	from, to := created(t, client, "/from", 100), created(t, client, "/to", 0)
	id := ringfence.NewRequestID("")
	for range 2 {
		must[ringfence.Changed](t)(from.Transfer(ctx, id, 40, t.Name()+"/to"))
	}
	fails(t, errorOf(from.Transfer(ctx, ringfence.NewRequestID(""), 61, t.Name()+"/to")), ringfence.ErrInsufficient)
	has(t, from, 60, 0)
	has(t, to, 40, 0)
}

func TestSeveralAccountsArePaidOrNone(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	buyer, seller, fees := created(t, client, "/buyer", 100), created(t, client, "/seller", 0), created(t, client, "/fees", 0)
	legs := map[string]int64{t.Name() + "/seller": 20, t.Name() + "/fees": 1}
	gift := ringfence.NewRequestID("")
	order, part := ringfence.NewRequestID(""), ringfence.NewRequestID("")
	for _, held := range []ringfence.RequestID{order, part} {
		must[ringfence.Changed](t)(buyer.Reserve(ctx, held, 30, time.Now().Add(time.Minute)))
	}
	for range 2 {
		must[ringfence.Changed](t)(buyer.TransferLegs(ctx, gift, legs))
		must[ringfence.Changed](t)(buyer.Capture(ctx, order, ringfence.NewRequestID(""), legs))
	}
	must[ringfence.Changed](t)(buyer.ConfirmPart(ctx, part, 5))
	has(t, buyer, 53, 0)
	has(t, seller, 40, 0)
	has(t, fees, 2, 0)
	fails(t, errorOf(buyer.TransferLegs(ctx, ringfence.NewRequestID(""), nil)), ringfence.ErrInvalidInput)
	missing := map[string]int64{t.Name() + "/seller": 1, t.Name() + "/missing": 1}
	fails(t, errorOf(buyer.TransferLegs(ctx, ringfence.NewRequestID(""), missing)), ringfence.ErrNoAccount)
	has(t, buyer, 53, 0)
}

func TestLimitsUnitsAndReferencesAreKept(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	ceiling := int64(5)
	account := func(name string, limits ringfence.Limits) *ringfence.Account {
		made := client.Account(t.Name() + "/" + name)
		check(t, made.CreateWithin(ctx, ringfence.InMemory, 1, limits))
		return made
	}
	euros := account("euros", ringfence.Limits{Unit: "EUR", Floor: -10, Ceiling: &ceiling})
	account("dollars", ringfence.Limits{Unit: "USD"})
	order := ringfence.NewRequestID("order")
	order.Reference = [16]byte{7}
	made := must[ringfence.Changed](t)(euros.Deduct(ctx, order, 4))
	if want := (ringfence.BalanceAfter{Ledger: -4, Available: 6}); *made.Balance != want {
		t.Errorf("%+v, not %+v", *made.Balance, want)
	}
	fails(t, errorOf(euros.Deduct(ctx, ringfence.NewRequestID(""), 7)), ringfence.ErrInsufficient)
	fails(t, errorOf(euros.Deposit(ctx, ringfence.NewRequestID(""), 10)), ringfence.Reason("OUT_OF_RANGE"))
	to := t.Name() + "/dollars"
	fails(t, errorOf(euros.Transfer(ctx, ringfence.NewRequestID(""), 1, to)), ringfence.ErrOtherUnit)
	if balance := must[ringfence.Balance](t)(euros.ExactBalance(ctx)); balance.Ledger != -4 {
		t.Errorf("%+v", balance)
	}
	history := must[ringfence.History](t)(euros.History(ctx, ""))
	if len(history.Effects) != 1 || history.Effects[0].Reference != order.Reference {
		t.Errorf("%+v", history)
	}
	check(t, euros.Label(ctx, map[string]string{"owner": "7", "tier": "gold"}))
	check(t, euros.RemoveLabels(ctx, "tier"))
	for found, err := range client.Accounts(ctx, ringfence.AccountFilter{Prefix: t.Name() + "/euros"}) {
		check(t, err)
		if found.Limits.Unit != "EUR" || *found.Limits.Ceiling != 5 || len(found.Labels) != 1 || found.Labels["owner"] != "7" {
			t.Errorf("%+v", found)
		}
	}
}

func TestARequestIsFound(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	coins := created(t, dial(t, shared.coordinator), "", 100)
	find := func(id ringfence.RequestID, want ringfence.Decision) ringfence.Found {
		t.Helper()
		found := must[ringfence.Found](t)(coins.Find(ctx, id))
		if found.Decision != want {
			t.Errorf("%+v, not %s", found, want)
		}
		return found
	}
	order, held := ringfence.NewRequestID("order"), ringfence.NewRequestID("held")
	find(order, ringfence.DecisionNeverSeen)
	must[ringfence.Changed](t)(coins.Deduct(ctx, order, 30))
	find(order, ringfence.DecisionDone)
	later := held.CreatedAt.Add(time.Hour)
	must[ringfence.Changed](t)(coins.Reserve(ctx, held, 5, later))
	if found := find(held, ringfence.DecisionHeld); found.Amount != 5 || !found.Deadline.Equal(later) {
		t.Errorf("%+v", found)
	}
	must[ringfence.Changed](t)(coins.Cancel(ctx, held))
	find(held, ringfence.DecisionCancelled)
}

func TestTheLogHasEveryEffectOnce(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	begun := time.Now().Add(-time.Minute)
	coins := created(t, dial(t, shared.coordinator), "", 100)
	order := ringfence.NewRequestID("order")
	for range 2 {
		must[ringfence.Changed](t)(coins.Deduct(ctx, order, 30))
	}
	has := func(history ringfence.History, kinds ...ringfence.EffectKind) {
		t.Helper()
		found := make([]ringfence.EffectKind, 0)
		for _, effect := range history.Effects {
			if effect.Kind != ringfence.EffectLent && effect.Kind != ringfence.EffectLanded {
				found = append(found, effect.Kind)
			}
		}
		if !slices.Equal(found, kinds) || !history.End {
			t.Errorf("%+v, not %v", history, kinds)
		}
	}
	all := must[ringfence.History](t)(coins.HistorySince(ctx, begun))
	has(all, ringfence.EffectDeposited, ringfence.EffectDeducted)
	// A loan of the same millisecond may come behind it: it is of another segment.
	deducted := slices.IndexFunc(all.Effects, func(effect ringfence.Effect) bool {
		return effect.Kind == ringfence.EffectDeducted
	})
	taken := all.Effects[deducted]
	if taken.Request.Name != "order" || !taken.Request.CreatedAt.Equal(order.CreatedAt) || taken.Amount != 30 {
		t.Errorf("%+v", taken)
	}
	has(must[ringfence.History](t)(coins.History(ctx, all.Next)))
}

func TestAccountsAreListed(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	coins := created(t, client, "/coins", 100)
	created(t, client, "/other", 5)
	names := func(filter ringfence.AccountFilter) map[string]int64 {
		t.Helper()
		found := make(map[string]int64)
		for account, err := range client.Accounts(ctx, filter) {
			check(t, err)
			check(t, account.Err)
			for _, segment := range account.Segments {
				found[account.Name] += segment.Available
			}
		}
		return found
	}
	filter := ringfence.AccountFilter{Prefix: t.Name() + "/"}
	if all := names(filter); len(all) != 2 || all[t.Name()+"/coins"] != 100 || all[t.Name()+"/other"] != 5 {
		t.Errorf("%v", all)
	}
	held := ringfence.NewRequestID("held")
	must[ringfence.Changed](t)(coins.Reserve(ctx, held, 5, held.CreatedAt.Add(time.Hour)))
	filter.Held = true
	if some := names(filter); len(some) != 1 || some[t.Name()+"/coins"] != 95 {
		t.Errorf("%v", some)
	}
	for _, err := range client.Accounts(ctx, ringfence.AccountFilter{Namespace: "No"}) {
		fails(t, err, ringfence.ErrInvalidInput)
	}
}

func TestManyChangesAreMadeAndEachFailsAlone(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	coins, other := created(t, client, "", 0), created(t, client, "/other", 0)
	gifts := make([]ringfence.Change, 2500)
	for nth := range gifts {
		gifts[nth] = coins.ToDeposit(ringfence.NewRequestID(""), 1)
	}
	for range 2 {
		for _, changed := range client.Change(ctx, gifts) {
			check(t, changed.Err)
		}
	}
	has(t, coins, 2500, 0)
	held := ringfence.NewRequestID("held")
	made := client.Change(ctx, []ringfence.Change{
		coins.ToDeduct(ringfence.NewRequestID(""), 9000),
		coins.ToReserve(held, 5, time.Now().Add(time.Hour)),
		client.Account(t.Name()+"/missing").ToDeposit(ringfence.NewRequestID(""), 1),
		coins.ToTransfer(ringfence.NewRequestID(""), 7, t.Name()+"/other"),
	})
	fails(t, made[0].Err, ringfence.ErrInsufficient)
	fails(t, made[2].Err, ringfence.ErrNoAccount)
	check(t, made[1].Err)
	check(t, made[3].Err)
	if made[1].Reservation != ringfence.ReservationHeld {
		t.Errorf("%+v", made[1])
	}
	has(t, coins, 2488, 5)
	has(t, other, 7, 0)
	ended := client.Change(ctx, []ringfence.Change{coins.ToConfirm(held), coins.ToCancel(held)})
	if ended[0] != ended[1] || ended[0].Err != nil {
		t.Errorf("%+v", ended)
	}
}

func TestBatchedChangesWhoseAnswersWereLostAreRepeatedWithOneEffect(t *testing.T) {
	t.Parallel()
	connection := &forgets{ClientConnInterface: connect(t, shared.coordinator)}
	client := ringfence.New([]grpc.ClientConnInterface{connection}, ringfence.WithTimeout(patience))
	coins := created(t, client, "", 100)
	takes := []ringfence.Change{
		coins.ToDeduct(ringfence.NewRequestID(""), 30), coins.ToDeduct(ringfence.NewRequestID(""), 90),
	}
	made := client.Change(within(t), takes)
	if won := made[0].Err == nil; won == (made[1].Err == nil) {
		t.Errorf("%+v", made)
	}
}

// forgets is a connection that forgets every other answer.
type forgets struct {
	grpc.ClientConnInterface
	calls atomic.Int64
}

func (f *forgets) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	err := f.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	if f.calls.Add(1)%2 == 1 {
		return status.Error(codes.Unavailable, "the connection is closed")
	}
	return err
}

func TestAChangeWhoseAnswerWasLostIsRepeatedWithOneEffect(t *testing.T) {
	t.Parallel()
	connection := &forgets{ClientConnInterface: connect(t, shared.coordinator)}
	client := ringfence.New([]grpc.ClientConnInterface{connection}, ringfence.WithTimeout(patience))
	coins := created(t, client, "", 100)
	must[ringfence.Changed](t)(coins.Deduct(within(t), ringfence.NewRequestID(""), 30))
	has(t, coins, 70, 0)
}

func TestAnAccountGoesOnAtAnotherCoordinator(t *testing.T) {
	t.Parallel()
	killed, one := serve(t, shared.redis, "")
	client := must[*ringfence.Client](t)(ringfence.Dial([]string{one, shared.coordinator}, ringfence.WithTimeout(patience)))
	t.Cleanup(func() { _ = client.Close() })
	coins := created(t, client, "", 100)
	check(t, killed.Kill())
	must[ringfence.Changed](t)(coins.Deduct(within(t), ringfence.NewRequestID(""), 30))
	has(t, coins, 70, 0)
}

func TestALatchOpensAfterAsManyRequestsAsWereSet(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	latch := dial(t, shared.coordinator).Latch(t.Name())
	fails(t, latch.CountDown(ctx, ringfence.NewRequestID("")), ringfence.ErrNoAccount)
	check(t, latch.Set(ctx, 2, ringfence.InMemory))
	fails(t, latch.Set(ctx, 3, ringfence.InMemory), ringfence.ErrAccountExists)
	waited := make(chan error, 1)
	go func() { waited <- latch.Wait(ctx) }()
	part := ringfence.NewRequestID("part-1")
	for range 2 {
		check(t, latch.CountDown(ctx, part))
	}
	if left := must[uint64](t)(latch.Remaining(ctx)); left != 1 {
		t.Errorf("%d are left", left)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := latch.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case err := <-waited:
		t.Errorf("open after one: %v", err)
	default:
	}
	check(t, latch.CountDown(ctx, ringfence.NewRequestID("part-2")))
	check(t, receive(t, waited))
}
