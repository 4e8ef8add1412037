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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	ringfence "github.com/ringfence/ringfence/clients/go"
	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

const lease = 1200 * time.Millisecond

// secret lets locks go on at another coordinator.
const secret = `handle_secret = "0123456789abcdef0123456789abcdef"`

func binary() string {
	if path := os.Getenv("RINGFENCE_BINARY"); path != "" {
		return path
	}
	return "../../target/debug/ringfence"
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// redis starts a Redis server with a topology, and returns its URL.
func redis(t *testing.T) string {
	_, url := founded(t)
	return url
}

// founded starts a Redis server with a topology of these terms, and returns its process and URL.
func founded(t *testing.T, terms ...string) (*os.Process, string) {
	free := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	server := exec.Command("redis-server", "--port", port, "--save", "", "--dir", t.TempDir())
	start(t, server)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			break
		} else if time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
	url := "redis://" + address
	init := append([]string{"ring", "init", "--servers-are-new", "--redis", url}, terms...)
	out, err := exec.Command(binary(), init...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return server.Process, url
}

func start(t *testing.T, command *exec.Cmd) {
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// serve starts a coordinator, and returns its process and a connection to it.
func serve(t *testing.T, redis, more string) (*os.Process, *grpc.ClientConn) {
	settings := filepath.Join(t.TempDir(), "ringfence.toml")
	text := fmt.Sprintf("listen = \"127.0.0.1:0\"\n%s\n[shards.a]\nurl = %q\n", more, redis)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary(), "serve", "-c", settings)
	out := must[interface {
		Read([]byte) (int, error)
	}](t)(command.StdoutPipe())
	start(t, command)
	line := must[string](t)(bufio.NewReader(out).ReadString('\n'))
	address := strings.TrimPrefix(strings.TrimSpace(line), "serves on ")
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection := must[*grpc.ClientConn](t)(grpc.NewClient(address, plain, ringfence.Keepalive))
	t.Cleanup(func() { connection.Close() })
	return command.Process, connection
}

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
	_, connection := serve(t, redis(t), "")
	program := filepath.Join(t.TempDir(), "standby")
	if out, err := exec.Command("go", "build", "-o", program, "./examples/standby").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	token := func(rest string) int { return must[int](t)(strconv.Atoi(rest)) }
	one, first := example(t, program, "node-1", connection.Target())
	led := token(first("leads with token "))
	two, second := example(t, program, "node-2", connection.Target())
	second("is a candidate")
	first("round 2")
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	next := token(second("leads with token "))
	_, third := example(t, program, "node-3", connection.Target())
	third("is a candidate")
	if err := two.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if last := token(third("leads with token ")); last <= next || next <= led {
		t.Errorf("tokens %d, %d, %d", led, next, last)
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestHoldersExcludeEachOtherAndTokensRise(t *testing.T) {
	t.Parallel()
	ctx, url := within(t), redis(t)
	number, last := 0, uint64(0)
	var work sync.WaitGroup
	for range 2 {
		_, connection := serve(t, url, "")
		client := ringfence.New(connection)
		work.Add(1)
		go func() {
			defer work.Done()
			for range 100 {
				lock, err := client.Lock(ctx, "key", lease)
				if err != nil {
					t.Error(err)
					return
				}
				if lock.Token <= last {
					t.Errorf("token %d after %d", lock.Token, last)
				}
				seen := number
				time.Sleep(time.Millisecond)
				number, last = seen+1, lock.Token
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	work.Wait()
	if number != 200 {
		t.Errorf("%d of 200 are left", number)
	}
}

func TestTheContextEndsBeforeAnotherGetsTheLockOfAStoppedCoordinator(t *testing.T) {
	t.Parallel()
	ctx, url := within(t), redis(t)
	stopped, connection := serve(t, url, "")
	_, other := serve(t, url, "")
	lock := must[*ringfence.Lock](t)(ringfence.New(connection).Lock(ctx, "key", lease))
	time.Sleep(lease) // some renewals
	if !lock.Held() {
		t.Fatal("not renewed")
	}
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := must[*ringfence.Lock](t)(ringfence.New(other).Lock(ctx, "key", lease))
	if cause := context.Cause(lock.Context); !errors.Is(cause, ringfence.ErrLost) || lock.Held() {
		t.Errorf("still held: %v", cause)
	}
	if err := lock.Unlock(); !errors.Is(err, ringfence.ErrLost) {
		t.Error(err)
	}
	if next.Token <= lock.Token {
		t.Errorf("token %d after %d", next.Token, lock.Token)
	}
}

// losesAnAnswer starts a relay to the target of a connection, and returns a connection to it. While the value is true, the
// next answer is lost with its connection.
func losesAnAnswer(t *testing.T, to *grpc.ClientConn) (*grpc.ClientConn, *atomic.Bool) {
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
			coordinator, err := net.Dial("tcp", to.Target())
			if err != nil {
				return
			}
			go carry(caller, coordinator, false)
			go carry(coordinator, caller, true)
		}
	}()
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection := must[*grpc.ClientConn](t)(grpc.NewClient(listener.Addr().String(), plain, ringfence.Keepalive))
	t.Cleanup(func() { connection.Close() })
	return connection, &loses
}

func TestALockWhoseAnswerWasLostIsGrantedToTheRepeat(t *testing.T) {
	t.Parallel()
	ctx, url := within(t), redis(t)
	_, connection := serve(t, url, "")
	_, other := serve(t, url, "")
	relayed, loses := losesAnAnswer(t, connection)
	client := ringfence.New(relayed, other)
	must[*ringfence.Lock](t)(client.TryLock(ctx, "connects", lease))
	loses.Store(true)
	lock := must[*ringfence.Lock](t)(client.TryLock(ctx, "key", 30*time.Second))
	if loses.Load() {
		t.Error("no answer was lost")
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestALockGoesOnAtAnotherCoordinator(t *testing.T) {
	t.Parallel()
	ctx, url := within(t), redis(t)
	killed, one := serve(t, url, secret)
	_, two := serve(t, url, secret)
	lock := must[*ringfence.Lock](t)(ringfence.New(one, two).Lock(ctx, "key", lease))
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	other := ringfence.New(two)
	for ends := time.Now().Add(2 * lease); time.Now().Before(ends); time.Sleep(lease / 20) {
		if _, err := other.TryLock(ctx, "key", lease); status.Code(err) != codes.Aborted || !lock.Held() {
			t.Fatalf("not held any more: %v", err)
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	next := must[*ringfence.Lock](t)(other.TryLock(ctx, "key", lease))
	if err := next.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestALockIsKeptWhileItsCoordinatorGivesNoAnswers(t *testing.T) {
	t.Parallel()
	ctx, url := within(t), redis(t)
	stopped, one := serve(t, url, secret)
	_, two := serve(t, url, secret)
	const long = 3 * lease // a part of it is lost at the silent one
	both, other := ringfence.New(one, two), ringfence.New(two)
	lock := must[*ringfence.Lock](t)(both.Lock(ctx, "key", long))
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Begun before a renewal finds out.
	waited := make(chan error)
	go func() {
		_, err := both.Lock(ctx, "other", lease)
		waited <- err
	}()
	for ends := time.Now().Add(3 * long / 2); time.Now().Before(ends); time.Sleep(lease / 20) {
		if _, err := other.TryLock(ctx, "key", lease); status.Code(err) != codes.Aborted || !lock.Held() {
			t.Fatalf("not held any more: %v", err)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestAWaitHasAnEndAndThenTheLeaseIsAWholeOne(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	_, connection := serve(t, redis(t), "")
	client := ringfence.New(connection)
	lock := must[*ringfence.Lock](t)(client.Lock(ctx, "key", lease))
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := client.Lock(short, "key", lease); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	time.AfterFunc(2*lease, func() { _ = lock.Unlock() })
	next := must[*ringfence.Lock](t)(client.Lock(ctx, "key", lease))
	time.Sleep(lease / 3)
	if !next.Held() {
		t.Error("no time is left after the wait")
	}
}

func TestALockIsRenewedInTimeAsTheViewOfItsCoordinatorEnds(t *testing.T) {
	t.Parallel()
	const view = 4 * time.Second
	const long = 60 * view // needs no renewal at the shard
	ctx := within(t)
	server, url := founded(t, "--removal", "leased", "--view-lease", view.String(), "--max-lease", "240s")
	_, connection := serve(t, url, "")
	client := ringfence.New(connection)
	locks := make([]*ringfence.Lock, 30)
	for number := range locks { // at all times of a view
		locks[number] = must[*ringfence.Lock](t)(client.Lock(ctx, fmt.Sprint(number), long))
		time.Sleep(view / 40)
	}
	// Waits for a renewal of the coordinator's view, which then cannot be renewed until little is left of it.
	service := pb.NewLockServiceClient(connection)
	for left := time.Duration(0); left < view*9/10; time.Sleep(view / 100) {
		request := &pb.AcquireRequest{Key: []byte("probe"), Lease: durationpb.New(long)}
		answer := must[*pb.AcquireResponse](t)(service.Acquire(ctx, request))
		must[*pb.ReleaseResponse](t)(service.Release(ctx, &pb.ReleaseRequest{Handle: answer.Handle}))
		left = answer.ValidFor.AsDuration()
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := server.Signal(signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(view * 3 / 4)
	}
	for _, lock := range locks {
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
