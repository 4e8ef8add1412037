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
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	pb "github.com/ringfence/ringfence/clients/go/ringfencev1"
)

// Pauses between two attempts of a call: the first, doubled with each failure up to the last.
const pauseMin, pauseMax = 20 * time.Millisecond, time.Second

// Client acquires locks and changes accounts through one of several coordinators, and moves on to the next if that one
// fails. With the same handle_secret at each of them, held locks go on at the next. Any number of goroutines may use it.
type Client struct {
	settings
	services []service
	owned    []*grpc.ClientConn
	current  atomic.Uint64

	mutex sync.Mutex
	held  map[*Lock]struct{} // to be released by Close
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

// WithLabel sets the holder's name that other callers see, cut to 64 bytes. Default: the host name and the process id.
func WithLabel(label string) Option { return func(s *settings) { s.label = label } }

// WithTimeout sets how long a call waits for an answer, with its repeats, and in addition to a wait for a lock. A lock
// without [WithWait] is given up after twice this time without a coordinator. Default: 5 s.
func WithTimeout(timeout time.Duration) Option { return func(s *settings) { s.timeout = timeout } }

// Dial returns a client of the coordinators at these addresses ("10.0.0.1:7420"), which are all of one topology. It
// does not wait for a connection. Close the client at the end of the process. The error: an address cannot be used.
func Dial(addresses []string, options ...Option) (*Client, error) {
	if len(addresses) == 0 {
		return nil, &Error{Reason: ErrInvalidInput, Message: "addresses is empty, must have at least one coordinator"}
	}
	s := settings{credentials: insecure.NewCredentials()}
	for _, option := range options {
		option(&s)
	}
	dial := append(DialOptions(), grpc.WithTransportCredentials(s.credentials))
	var owned []*grpc.ClientConn
	var connections []grpc.ClientConnInterface
	for _, address := range addresses {
		connection, err := grpc.NewClient(address, dial...)
		if err != nil {
			closeAll(owned)
			return nil, &Error{Reason: ErrInvalidInput, Message: fmt.Sprintf("address %q: %v", address, err)}
		}
		owned, connections = append(owned, connection), append(connections, connection)
	}
	client := New(connections, options...)
	client.owned = owned
	return client, nil
}

// New returns a client that uses connections of the caller's own to the coordinators, at least one. Make them with
// [DialOptions], and close them after the client.
func New(connections []grpc.ClientConnInterface, options ...Option) *Client {
	host, _ := os.Hostname()
	c := &Client{held: map[*Lock]struct{}{}}
	c.label, c.timeout = fmt.Sprintf("%s/%d", host, os.Getpid()), 5*time.Second
	for _, option := range options {
		option(&c.settings)
	}
	for _, one := range connections {
		c.services = append(c.services, service{
			pb.NewLockServiceClient(one), pb.NewCounterServiceClient(one), pb.NewLatchServiceClient(one),
		})
	}
	return c
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
	closeAll(c.owned)
	return errors.Join(failures...)
}

func closeAll(connections []*grpc.ClientConn) {
	for _, connection := range connections {
		_ = connection.Close() // fails if it is closed
	}
}

// pick returns the coordinator in use, and its number for moveOn.
func (c *Client) pick() (service, uint64) {
	number := c.current.Load()
	return c.services[number%uint64(len(c.services))], number
}

// moveOn uses the next coordinator, unless another call has moved on already.
func (c *Client) moveOn(failed uint64) { c.current.CompareAndSwap(failed, failed+1) }

// several tells whether there is another coordinator to ask.
func (c *Client) several() bool { return len(c.services) > 1 }

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
		answer, number, failure := once(limited, c, wait+c.timeout/time.Duration(len(c.services)), call, request)
		if failure == nil {
			return answer, nil
		}
		// The account's own answers tell about earlier attempts, too.
		if failure.Retryable || !failure.ofAccount() {
			unknown = unknown || failure.MayHaveTakenEffect
			failure.MayHaveTakenEffect = unknown
		}
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
