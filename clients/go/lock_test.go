//go:build unix

package ringfence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	ringfence "github.com/ringfence/ringfence/clients/go"
	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// example starts a program of examples, and returns its process and a function that waits for a line with this part, and
// returns what follows it.
func example(t *testing.T, program string, arguments ...string) (*os.Process, func(part string) string) {
	command := exec.Command(program, arguments...)
	lines := bufio.NewScanner(must[io.ReadCloser](t)(command.StdoutPipe()))
	start(t, command)
	return command.Process, func(part string) string {
		for lines.Scan() {
			if _, rest, found := strings.Cut(lines.Text(), part); found {
				return rest
			}
		}
		t.Fatalf("%s ended before it said %q", program, part)
		return ""
	}
}

func TestAStandbyLeadsWhenTheLeaderIsKilledAndWhenItEnds(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "standby")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/standby").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	token := func(rest string) int { return must[int](t)(strconv.Atoi(rest)) }
	one, first := example(t, program, "node-1", shared.coordinator)
	led := token(first("leads with token "))
	two, second := example(t, program, "node-2", shared.coordinator)
	second("is a candidate")
	first("round 2")
	check(t, one.Kill())
	next := token(second("leads with token "))
	_, third := example(t, program, "node-3", shared.coordinator)
	third("is a candidate")
	check(t, two.Signal(os.Interrupt))
	if last := token(third("leads with token ")); last <= next || next <= led {
		t.Errorf("tokens %d, %d, %d", led, next, last)
	}
}

func TestHoldersExcludeEachOtherAndTokensRise(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	_, other := serve(t, shared.redis, "")
	number, last := 0, uint64(0)
	var work sync.WaitGroup
	for _, address := range []string{shared.coordinator, other} {
		client := dial(t, address)
		work.Go(func() {
			for range 100 {
				lock, err := client.Lock(ctx, t.Name())
				if err != nil {
					t.Error(err)
					return
				}
				if lock.Token() <= last {
					t.Errorf("token %d after %d", lock.Token(), last)
				}
				seen := number
				time.Sleep(time.Millisecond)
				number, last = seen+1, lock.Token()
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if number != 200 {
		t.Errorf("%d of 200 are left", number)
	}
}

func TestTheContextEndsBeforeAnotherGetsTheLockOfAStoppedCoordinator(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	stopped, address := serve(t, shared.redis, "")
	dangers := make(chan ringfence.Danger, 10)
	tell := ringfence.WithOnDanger(func(danger ringfence.Danger) { dangers <- danger })
	lock := must[*ringfence.Lock](t)(dial(t, address).Lock(ctx, t.Name(), leased, tell))
	renewed := lock.Remaining()
	eventually(t, func() bool { before := renewed; renewed = lock.Remaining(); return renewed > before })
	check(t, stopped.Signal(syscall.SIGSTOP))
	next := must[*ringfence.Lock](t)(dial(t, shared.coordinator).Lock(ctx, t.Name(), leased))
	if cause := context.Cause(lock.Context()); !errors.Is(cause, ringfence.ErrLost) || lock.Held() {
		t.Errorf("still held: %v", cause)
	}
	if err := lock.Unlock(); !errors.Is(err, ringfence.ErrLost) {
		t.Error(err)
	}
	if next.Token() <= lock.Token() {
		t.Errorf("token %d after %d", next.Token(), lock.Token())
	}
	if danger := receive(t, dangers); danger.Key != t.Name() || danger.Token != lock.Token() || danger.Err == nil {
		t.Errorf("%+v", danger)
	}
}

func TestALockEndsWithItsLongestTimeAndTheHolderIsWarned(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	dangers := make(chan ringfence.Danger, 10)
	tell := ringfence.WithOnDanger(func(danger ringfence.Danger) { dangers <- danger })
	client := dial(t, shared.coordinator)
	lock := must[*ringfence.Lock](t)(client.Lock(ctx, t.Name(), leased, ringfence.WithHoldFor(2*lease), tell))
	if danger := receive(t, dangers); danger.Err != nil {
		t.Errorf("%+v", danger)
	}
	<-lock.Context().Done()
	if cause := context.Cause(lock.Context()); cause != ringfence.ErrLost {
		t.Error(cause)
	}
	must[*ringfence.Lock](t)(client.Lock(ctx, t.Name()))
}

// losesAnAnswer starts a relay to an address, and returns a connection to it. While the value is true, the next answer is
// lost with its connection.
func losesAnAnswer(t *testing.T, to string) (*grpc.ClientConn, *atomic.Bool) {
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { listener.Close() })
	var loses atomic.Bool
	carry := func(from, to net.Conn, answers bool) {
		defer from.Close()
		defer to.Close()
		for data := make([]byte, 1<<16); ; {
			n, err := from.Read(data)
			// Less only acknowledges.
			if err != nil || answers && n > 60 && loses.CompareAndSwap(true, false) {
				return
			}
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			coordinator, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go carry(caller, coordinator, false)
			go carry(coordinator, caller, true)
		}
	}()
	return connect(t, listener.Addr().String()), &loses
}

func TestALockWhoseAnswerWasLostIsGrantedToTheRepeat(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	_, other := serve(t, shared.redis, secret)
	relayed, loses := losesAnAnswer(t, shared.coordinator)
	client := ringfence.New([]grpc.ClientConnInterface{relayed, connect(t, other)})
	must[*ringfence.Lock](t)(client.TryLock(ctx, t.Name()+"/connects"))
	loses.Store(true)
	lock := must[*ringfence.Lock](t)(client.TryLock(ctx, t.Name()))
	if loses.Load() {
		t.Error("no answer was lost")
	}
	check(t, lock.Unlock())
}

// stays checks that a lock is held, and that others are refused, for twice its lease.
func stays(t *testing.T, lock *ringfence.Lock, others *ringfence.Client, lease time.Duration) {
	for ends := time.Now().Add(2 * lease); time.Now().Before(ends); time.Sleep(lease / 20) {
		if _, err := others.TryLock(within(t), t.Name()); !errors.Is(err, ringfence.ErrHeld) || !lock.Held() {
			t.Fatalf("not held any more: %v", err)
		}
	}
}

func TestALockGoesOnAtAnotherCoordinator(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	killed, one := serve(t, shared.redis, secret)
	lock := must[*ringfence.Lock](t)(dial(t, one, shared.coordinator).Lock(ctx, t.Name(), leased))
	check(t, killed.Kill())
	others := dial(t, shared.coordinator)
	stays(t, lock, others, lease)
	check(t, lock.Unlock())
	must[*ringfence.Lock](t)(others.TryLock(ctx, t.Name()))
}

func TestALockIsKeptWhileItsCoordinatorGivesNoAnswers(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	stopped, one := serve(t, shared.redis, secret)
	const long = 2 * lease // a part of it is lost at the silent one
	both := dial(t, one, shared.coordinator)
	lock := must[*ringfence.Lock](t)(both.Lock(ctx, t.Name(), ringfence.WithLease(long)))
	check(t, stopped.Signal(syscall.SIGSTOP))
	// Begun before a renewal finds out.
	waited := make(chan error, 1)
	go func() {
		_, err := both.Lock(ctx, t.Name()+"/other")
		waited <- err
	}()
	stays(t, lock, dial(t, shared.coordinator), long)
	check(t, receive(t, waited))
	check(t, lock.Unlock())
}

func TestAHeldLockIsRefusedWithTheNameOfItsHolder(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	must[*ringfence.Lock](t)(client.TryLock(ctx, t.Name()))
	_, err := client.TryLock(ctx, t.Name())
	var failure *ringfence.Error
	if !errors.As(err, &failure) || !errors.Is(err, ringfence.ErrHeld) || errors.Is(err, ringfence.ErrTimedOut) {
		t.Fatal(err)
	}
	if failure.MayHaveTakenEffect || !failure.Retryable || !strings.Contains(failure.Message, t.Name()) {
		t.Errorf("%+v", failure)
	}
}

func TestAWaitHasAnEndAndThenTheLeaseIsAWholeOne(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := dial(t, shared.coordinator)
	lock := must[*ringfence.Lock](t)(client.Lock(ctx, t.Name()))
	_, err := client.Lock(ctx, t.Name(), ringfence.WithWait(50*time.Millisecond))
	if !errors.Is(err, ringfence.ErrTimedOut) || ctx.Err() != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := client.Lock(short, t.Name()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := client.Lock(ended, t.Name()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	time.AfterFunc(2*lease, func() { _ = lock.Unlock() })
	next := must[*ringfence.Lock](t)(client.Lock(ctx, t.Name(), leased))
	if left := next.Remaining(); left < lease/3 {
		t.Errorf("%v are left after the wait", left)
	}
}

// delays is a connection whose grants and renewals come late.
type delays struct {
	grpc.ClientConnInterface
	by time.Duration
}

func (d delays) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	err := d.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	if _, is := request.(*pb.ReleaseRequest); !is {
		time.Sleep(d.by)
	}
	return err
}

func TestTheLeaseCountsFromBeforeTheRequests(t *testing.T) {
	t.Parallel()
	const by = lease / 10
	client := ringfence.New([]grpc.ClientConnInterface{delays{connect(t, shared.coordinator), by}})
	lock := must[*ringfence.Lock](t)(client.Lock(within(t), t.Name(), leased))
	renewals, last := 0, lock.Remaining()
	eventually(t, func() bool {
		left := lock.Remaining()
		if left > last {
			renewals++
		}
		if last = left; left > lease-by {
			t.Fatalf("%v are left", left)
		}
		return renewals == 2
	})
}

func TestAGrantThatComesAfterItsLeaseIsNone(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	late := delays{connect(t, shared.coordinator), 2 * short}
	client := ringfence.New([]grpc.ClientConnInterface{late}, ringfence.WithTimeout(short))
	ctx, cancel := context.WithTimeout(within(t), 20*short)
	defer cancel()
	if _, err := client.Lock(ctx, t.Name(), ringfence.WithLease(short)); err == nil {
		t.Error("granted")
	}
}

func TestCloseReleasesHeldLocksAndThoseWhoseContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := must[*ringfence.Client](t)(ringfence.Dial([]string{shared.coordinator}))
	short, cancel := context.WithCancel(ctx)
	must[*ringfence.Lock](t)(client.Lock(short, t.Name()+"/ended"))
	cancel()
	held := must[*ringfence.Lock](t)(client.Lock(ctx, t.Name()+"/held"))
	check(t, client.Close())
	if held.Held() || held.Context().Err() == nil {
		t.Error("still held")
	}
	if err := held.Unlock(); !errors.Is(err, ringfence.ErrLost) {
		t.Error(err)
	}
	others := dial(t, shared.coordinator)
	must[*ringfence.Lock](t)(others.TryLock(ctx, t.Name()+"/held"))
	must[*ringfence.Lock](t)(others.TryLock(ctx, t.Name()+"/ended"))
}

func TestALockIsRenewedInTimeAsTheViewOfItsCoordinatorEnds(t *testing.T) {
	t.Parallel()
	const view = 8 * time.Second
	const long = 30 * view // needs no renewal at the shard
	ctx := within(t)
	server, url := founded(t, "--removal", "leased", "--view-lease", view.String(), "--max-lease", "240s")
	_, address := serve(t, url, "")
	client := dial(t, address)
	locks := make([]*ringfence.Lock, 30)
	for number := range locks { // at all times of a view
		locks[number] = must[*ringfence.Lock](t)(client.Lock(ctx, fmt.Sprint(number), ringfence.WithLease(long)))
		time.Sleep(view / 40)
	}
	// Waits for a renewal of the coordinator's view, which then cannot be renewed until little is left of it.
	service := pb.NewLockServiceClient(connect(t, address))
	for left := time.Duration(0); left < view*9/10; time.Sleep(view / 100) {
		request := &pb.AcquireRequest{Key: []byte("probe"), Lease: durationpb.New(long)}
		answer := must[*pb.AcquireResponse](t)(service.Acquire(ctx, request))
		must[*pb.ReleaseResponse](t)(service.Release(ctx, &pb.ReleaseRequest{Handle: answer.Handle}))
		left = answer.ValidFor.AsDuration()
	}
	// Then less is left than a third of a view, the usual time between renewals.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		check(t, server.Signal(signal))
		time.Sleep(view * 6 / 10)
	}
	for _, lock := range locks {
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
