// A candidate for leader: start it twice, and kill the one that leads.
//
//	go run ./examples/standby node-1 127.0.0.1:7420     # leads
//	go run ./examples/standby node-2 127.0.0.1:7420     # waits; leads when node-1 is gone
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	ringfence "github.com/ringfence/ringfence/clients/go"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: standby NAME COORDINATOR...")
	}
	name := os.Args[1]
	client, err := ringfence.Dial(os.Args[2:], ringfence.WithLabel(name))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		fmt.Println(name, "is a candidate")
		// After a crash, the next candidate leads within the lease.
		lock, err := client.Lock(ctx, "scheduler", ringfence.WithLease(2*time.Second))
		if err != nil {
			if ctx.Err() == nil {
				log.Fatal(err)
			}
			return
		}
		fmt.Println(name, "leads with token", lock.Token())
		lead(lock.Context(), lock.Token())
		fmt.Println(name, "leads no more:", context.Cause(lock.Context()))
		_ = lock.Unlock() // at a signal, the next candidate leads at once
	}
}

// lead is the work of the leader, until ctx ends: when the lock is lost, or at a signal. It passes the token to all that
// it writes to.
func lead(ctx context.Context, token uint64) {
	for round := 1; ctx.Err() == nil; round++ {
		fmt.Println("round", round, "under token", token)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}
