package ringfence_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ringfence "github.com/ringfence/ringfence/clients/go"
)

const lease = 3 * time.Second

var leased = ringfence.WithLease(lease)

// patience is for conditions that hold soon, on a machine that has time.
const patience = 120 * time.Second

// secret lets locks go on at another coordinator.
const secret = `handle_secret = "0123456789abcdef0123456789abcdef"`

// shared is for tests that stop neither: the URL of a Redis server with a topology, and the address of a coordinator.
var shared struct{ redis, coordinator string }

func TestMain(m *testing.M) {
	lookUp := *ringfence.LookUpHost
	*ringfence.LookUpHost = func(ctx context.Context, host string) ([]string, error) {
		if host == "localhost" {
			return hosts[:], nil
		}
		return lookUp(ctx, host)
	}
	os.Exit(run(m))
}

// hosts are the addresses of the name "localhost", in the tests.
var hosts = [...]string{"127.0.0.1", "127.0.0.2"}

func run(m *testing.M) int {
	all := &whole{}
	defer all.end()
	_, shared.redis = founded(all)
	_, shared.coordinator = serve(all, shared.redis, secret)
	return m.Run()
}

// scope is what processes live in: a test, or the whole run.
type scope interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
	TempDir() string
}

type whole struct{ cleanups []func() }

func (*whole) Helper()               {}
func (*whole) Fatal(reasons ...any)  { log.Panic(reasons...) }
func (w *whole) Cleanup(work func()) { w.cleanups = append(w.cleanups, work) }
func (w *whole) TempDir() string {
	folder := must[string](w)(os.MkdirTemp("", "ringfence"))
	w.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func (w *whole) end() {
	for len(w.cleanups) > 0 {
		last := len(w.cleanups) - 1
		w.cleanups[last]()
		w.cleanups = w.cleanups[:last]
	}
}

func binary() string {
	if path := os.Getenv("RINGFENCE_BINARY"); path != "" {
		return path
	}
	return "../../target/debug/ringfence"
}

func must[T any](t scope) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		check(t, err)
		return value
	}
}

func check(t scope, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition.
func eventually(t scope, holds func() bool) {
	t.Helper()
	for ends := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("not in time")
		}
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatal("not in time")
	}
	return value
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t scope, command *exec.Cmd) {
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// founded starts a Redis server with a topology of these terms, and returns its process and URL.
func founded(t scope, terms ...string) (*os.Process, string) {
	free := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	server := exec.Command("redis-server", "--port", port, "--save", "", "--dir", t.TempDir())
	start(t, server)
	eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	url := "redis://" + address
	init := append([]string{"ring", "init", "--servers-are-new", "--redis", url}, terms...)
	if out, err := exec.Command(binary(), init...).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return server.Process, url
}

// serve starts a coordinator, and returns its process and address.
func serve(t scope, redis, more string) (*os.Process, string) {
	return serveAt(t, "127.0.0.1:0", redis, more)
}

func serveAt(t scope, listen, redis, more string) (*os.Process, string) {
	settings := filepath.Join(t.TempDir(), "ringfence.toml")
	text := fmt.Sprintf("listen = %q\n%s\n[shards.a]\nurl = %q\n", listen, more, redis)
	check(t, os.WriteFile(settings, []byte(text), 0o600))
	command := exec.Command(binary(), "serve", "-c", settings)
	out := must[io.ReadCloser](t)(command.StdoutPipe())
	start(t, command)
	line := must[string](t)(bufio.NewReader(out).ReadString('\n'))
	return command.Process, strings.TrimPrefix(strings.TrimSpace(line), "serves on ")
}

// dial returns a client of coordinators. It is closed at the end of the test.
func dial(t *testing.T, addresses ...string) *ringfence.Client {
	t.Helper()
	client := must[*ringfence.Client](t)(ringfence.Dial(addresses, ringfence.WithLabel(t.Name())))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// connect returns a connection to a coordinator.
func connect(t *testing.T, address string) *grpc.ClientConn {
	options := append(ringfence.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	connection := must[*grpc.ClientConn](t)(grpc.NewClient(address, options...))
	t.Cleanup(func() { connection.Close() })
	return connection
}
