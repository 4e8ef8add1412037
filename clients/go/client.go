// Package ringfence is a client of Ringfence coordinators: locks with fencing tokens, semaphores, read-write locks,
// accounts and latches.
//
// A [Lock] is renewed in the background. Its context ends when the lock is lost; its token lets the resource refuse a
// late writer. Every failed call returns an [*Error].
package ringfence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// Pauses between two attempts of a call: the first, doubled with each failure up to the last.
const pauseMin, pauseMax = 20 * time.Millisecond, time.Second

// Client acquires locks and changes accounts through one of several coordinators, and moves on to the next if that one
// fails. With the same handle_secret at each of them, held locks go on at the next. Any number of goroutines may use it.
type Client struct {
	settings
	places  atomic.Pointer[[]place]
	current atomic.Uint64
	names   []string // of Dial
	dial    []grpc.DialOption
	looksUp atomic.Bool

	mutex sync.Mutex
	held  map[*Lock]struct{} // to be released by Close
}

// place is a coordinator: at a name, or at one of the addresses of a name.
type place struct {
	service
	name, address string
	connection    *grpc.ClientConn // nil: the caller's own
}

// service has the calls of a coordinator.
type service struct {
	pb.LockServiceClient
	pb.CounterServiceClient
	pb.LatchServiceClient
}

// rpc is a call, as a method expression: service.Acquire.
type rpc[Q, A any] func(service, context.Context, Q, ...grpc.CallOption) (A, error)

// Option is a setting of a Client.
type Option func(*settings)

type settings struct {
	label       string
	timeout     time.Duration
	calls       []grpc.CallOption
	credentials credentials.TransportCredentials
}

// WithCredentials sets TLS and client certificates for [Dial]. Default: no TLS. It has no effect on [New], where
// connections have their own.
func WithCredentials(c credentials.TransportCredentials) Option {
	return func(s *settings) { s.credentials = c }
}

// WithToken sets the bearer token of the caller. Without TLS it travels in clear.
func WithToken(token string) Option {
	return func(s *settings) { s.calls = append(s.calls, grpc.PerRPCCredentials(bearer(token))) }
}

// WithTokenFile sets a file with the bearer token of the caller, read for each call: the next one has a token that was
// rotated. A call whose token cannot be read fails.
func WithTokenFile(path string) Option {
	return func(s *settings) { s.calls = append(s.calls, grpc.PerRPCCredentials(bearerFile(path))) }
}

// WithLabel sets the holder's name that other callers see, cut to 64 bytes. Default: the host name and the process id.
func WithLabel(label string) Option { return func(s *settings) { s.label = label } }

// WithTimeout sets how long a call waits for an answer, with its repeats, and in addition to a wait for a lock. A lock
// without [WithWait] is given up after twice this time without a coordinator. Default: 5 s.
func WithTimeout(timeout time.Duration) Option { return func(s *settings) { s.timeout = timeout } }

// Dial returns a client of the coordinators at these addresses ("10.0.0.1:7420"), which are all of one topology. A name
// may have several addresses, with a coordinator at each. It does not wait for a connection. Close the client at the end of the process. The error: an address cannot be used.
func Dial(addresses []string, options ...Option) (*Client, error) {
	if len(addresses) == 0 {
		return nil, &Error{Reason: ErrInvalidInput, Message: "addresses is empty, must have at least one coordinator"}
	}
	c := newClient(options)
	c.names, c.dial = addresses, append(DialOptions(), grpc.WithTransportCredentials(c.credentials))
	var places []place
	for _, name := range addresses {
		one, err := c.connect(name, "")
		if err != nil {
			closeAll(places)
			return nil, &Error{Reason: ErrInvalidInput, Message: fmt.Sprintf("address %q: %v", name, err)}
		}
		places = append(places, one)
	}
	c.places.Store(&places)
	go c.lookUp()
	return c, nil
}

// New returns a client that uses connections of the caller's own to the coordinators, at least one. Make them with
// [DialOptions], and close them after the client.
func New(connections []grpc.ClientConnInterface, options ...Option) *Client {
	c := newClient(options)
	var places []place
	for _, one := range connections {
		places = append(places, place{service: serviceOf(one)})
	}
	c.places.Store(&places)
	return c
}

func newClient(options []Option) *Client {
	host, _ := os.Hostname()
	c := &Client{held: map[*Lock]struct{}{}}
	c.label, c.timeout = fmt.Sprintf("%s/%d", host, os.Getpid()), 5*time.Second
	c.credentials = insecure.NewCredentials()
	for _, option := range options {
		option(&c.settings)
	}
	return c
}

func serviceOf(one grpc.ClientConnInterface) service {
	return service{
		pb.NewLockServiceClient(one), pb.NewCounterServiceClient(one), pb.NewLatchServiceClient(one),
	}
}

// connect returns a place that is connected when it is used, at an address of the name if there is one.
func (c *Client) connect(name, address string) (place, error) {
	target, dial := name, c.dial
	if address != "" {
		// What the coordinator reads, and what its certificate has to be for, stays the name.
		target, dial = "passthrough:///"+address, append([]grpc.DialOption{grpc.WithAuthority(name)}, dial...)
	}
	connection, err := grpc.NewClient(target, dial...)
	if err != nil {
		return place{}, err
	}
	return place{serviceOf(connection), name, address, connection}, nil
}

// DialOptions are those of the connections that [Dial] makes: a connection that went silent is replaced after 15 s, and
// a coordinator that comes back is used within a second.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                10 * time.Second, // gRPC for Go asks no more often
			Timeout:             5 * time.Second,
			PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: pauseMax},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
}

// Close releases all held locks, so that their next holders have them at once, and closes the connections of [Dial].
// End the work under the locks before. It takes as long as [WithTimeout] says, at most. The error: a lock stays held
// until its lease ends.
func (c *Client) Close() error {
	c.mutex.Lock()
	var locks []*Lock
	for lock := range c.held {
		locks = append(locks, lock)
	}
	c.mutex.Unlock()
	failures := make([]error, len(locks))
	var work sync.WaitGroup
	for number, lock := range locks {
		work.Go(func() { failures[number] = lock.Unlock() })
	}
	work.Wait()
	closeAll(*c.places.Load())
	return errors.Join(failures...)
}

func closeAll(places []place) {
	for _, one := range places {
		if one.connection != nil {
			_ = one.connection.Close() // fails if it is closed
		}
	}
}

// coordinators is their number, as known.
func (c *Client) coordinators() int { return len(*c.places.Load()) }

// pick returns the coordinator in use, and its number for moveOn.
func (c *Client) pick() (service, uint64) {
	places, number := *c.places.Load(), c.current.Load()
	return places[number%uint64(len(places))].service, number
}

// moveOn uses the next coordinator, unless another call has moved on already.
func (c *Client) moveOn(failed uint64) {
	if c.current.CompareAndSwap(failed, failed+1) {
		go c.lookUp()
	}
}

// once makes a call at the coordinator in use, and returns the number of that one. A limit of 0 is none.
func once[Q, A any](
	ctx context.Context, c *Client, limit time.Duration, call rpc[Q, A], request Q, options ...grpc.CallOption,
) (A, uint64, *Error) {
	attempt := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		attempt, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	service, number := c.pick()
	answer, err := call(service, attempt, request, append(options, c.calls...)...)
	if err != nil {
		return answer, number, failed(ctx, err)
	}
	return answer, number, nil
}

// repeat makes a call that has one effect, however often it is repeated, until its answer is definite or the timeout of
// the client is over. Each attempt may take `wait` longer.
func repeat[Q, A any](ctx context.Context, c *Client, wait time.Duration, call rpc[Q, A], request Q) (A, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout+wait)
	defer cancel()
	unknown := false
	for failures := 1; ; failures++ {
		answer, number, failure := once(limited, c, wait+c.timeout/time.Duration(c.coordinators()), call, request)
		if failure == nil {
			return answer, nil
		}
		unknown = failure.after(unknown)
		if !failure.Retryable || failure.Reason == ErrTimedOut {
			return answer, failure
		}
		if ctx.Err() == nil {
			c.moveOn(number)
		}
		if failure.cause = pause(limited, failure, failures); failure.cause != nil {
			return answer, failure
		}
	}
}

// pause waits before the next attempt, after this many failures. It returns the error of ctx, if that ends before.
func pause(ctx context.Context, failure *Error, failures int) error {
	select {
	case <-ctx.Done():
	case <-time.After(pauseAfter(failure, failures)):
	}
	return ctx.Err()
}

func pauseAfter(failure *Error, failures int) time.Duration {
	return max(min(pauseMin<<min(failures-1, 16), pauseMax), failure.RetryAfter)
}

// bearer is a token in the headers of a call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// bearerFile is a file with a token.
type bearerFile string

func (f bearerFile) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := os.ReadFile(string(f))
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the token cannot be read: %v", err)
	}
	return bearer(strings.TrimSpace(string(token))).GetRequestMetadata(ctx)
}

func (bearerFile) RequireTransportSecurity() bool { return false }
