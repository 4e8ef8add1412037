//go:build unix

package ringfence_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ringfence "github.com/ringfence/ringfence/clients/go"
)

func TestAHolderRenewsElsewhereOnceItsCoordinatorStops(t *testing.T) {
	t.Parallel()
	one, first := serve(t, shared.redis, secret+"\ngrace = \"1h\"")
	_, second := serve(t, shared.redis, secret)
	client := dial(t, first, second)
	lock := must[*ringfence.Lock](t)(client.Lock(within(t), t.Name(), leased))
	check(t, one.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() {
		_, err := one.Wait()
		ended <- err
	}()
	check(t, receive(t, ended)) // once nobody renews a lock there
	check(t, lock.Unlock())
}

func TestTenRollingRestartsBehindOneNameFailNoCallAndLoseNoLock(t *testing.T) {
	t.Parallel()
	free := must[net.Listener](t)(net.Listen("tcp", hosts[0]+":0"))
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	begin := func(at int) *os.Process {
		process, _ := serveAt(t, net.JoinHostPort(hosts[at], port), shared.redis, secret+"\ngrace = \"1h\"")
		return process
	}
	coordinators := []*os.Process{begin(0), begin(1)}
	client := dial(t, "localhost:"+port)
	var held []*ringfence.Lock
	for number := range 5 {
		key := fmt.Sprintf("%s/held/%d", t.Name(), number)
		held = append(held, must[*ringfence.Lock](t)(client.Lock(within(t), key, leased)))
	}
	var acquired [3]atomic.Int64
	var stop, failed atomic.Bool
	var workers sync.WaitGroup
	for worker := range acquired {
		workers.Go(func() {
			for key := fmt.Sprintf("%s/%d", t.Name(), worker); !stop.Load(); acquired[worker].Add(1) {
				lock, err := client.Lock(within(t), key, leased, ringfence.WithWait(10*time.Second))
				if err != nil {
					t.Error(err)
					failed.Store(true)
					return
				}
				if err := lock.Unlock(); err != nil {
					t.Error(err)
					failed.Store(true)
					return
				}
			}
		})
	}
	for round := range 10 {
		at := round % len(hosts)
		// It does not end before this lock is released.
		own := dial(t, net.JoinHostPort(hosts[at], port))
		lock := must[*ringfence.Lock](t)(own.Lock(within(t), fmt.Sprintf("%s/own/%d", t.Name(), round)))
		check(t, coordinators[at].Signal(syscall.SIGTERM))
		eventually(t, func() bool {
			free, err := own.TryLock(within(t), t.Name()+"/none")
			if err == nil {
				_ = free.Unlock()
			}
			return errors.Is(err, ringfence.Reason("STOPPING"))
		})
		var before [3]int64
		for worker := range acquired {
			before[worker] = acquired[worker].Load()
		}
		eventually(t, func() bool {
			for worker := range acquired {
				if !failed.Load() && acquired[worker].Load() == before[worker] {
					return false
				}
			}
			return true
		})
		if failed.Load() {
			break
		}
		check(t, lock.Unlock())
		_, _ = coordinators[at].Wait()
		coordinators[at] = begin(at)
	}
	stop.Store(true)
	workers.Wait()
	for _, lock := range held {
		check(t, lock.Unlock())
	}
}
