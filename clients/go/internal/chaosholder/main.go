//go:build linux

// A process of a chaos run: takes locks, writes under them, and gives them back, until it is told to end.
//
// `ringfence-chaos run --service --client PROGRAM` starts it, and checks what it writes down: docs/write-a-client.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	ringfence "github.com/ringfence/ringfence/clients/go"
	"golang.org/x/sys/unix"
)

const (
	counterBits = 35
	// What the deadline of a lease allows for: the rates of clocks, and a margin. As tests/chaos/src/checker/grant.rs.
	rhoPermille = 10
	margin      = 20 * time.Millisecond
	wait        = 6 * time.Second
)

type deed map[string]any

// with is the deed with more fields, or others.
func (d deed) with(more deed) deed {
	all := maps.Clone(d)
	maps.Copy(all, more)
	return all
}

func now() time.Duration {
	var at unix.Timespec
	must(0, unix.ClockGettime(unix.CLOCK_BOOTTIME, &at))
	return time.Duration(at.Nano())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

type holder struct {
	client   *ringfence.Client
	history  *os.File
	resource net.Conn
	answers  *bufio.Reader
	lease    time.Duration
	head     deed
	op       int
}

// record is one write of one line, so that not even SIGKILL takes a line back.
func (h *holder) record(what deed) {
	line := must(json.Marshal(h.head.with(deed{"t_ns": now()}).with(what)))
	must(h.history.Write(append(line, '\n')))
}

func (h *holder) begin(kind string, of deed) deed {
	h.op++
	begun := of.with(deed{"op": h.op, "kind": kind, "phase": "invoke"})
	h.record(begun)
	return begun
}

// hold takes the lock, writes under it while the first lease lasts, and gives it back, also at the end of the process.
func (h *holder) hold(ctx context.Context, key string) {
	asked := h.begin("acquire", deed{"key": key, "lease_ms": h.lease.Milliseconds(), "wait_ms": wait.Milliseconds()})
	askedAt := now()
	lock, err := h.client.Lock(ctx, key, ringfence.WithLease(h.lease), ringfence.WithWait(wait))
	if err != nil {
		h.record(asked.with(deed{"phase": "info", "reason": err.Error()}))
		return
	}
	deadline := now() + lock.Remaining()
	sent := deadline - h.lease*(1000-rhoPermille)/1000 + margin // no later than the request that was answered
	token := deed{"te": lock.Token() >> counterBits, "ctr": lock.Token() & (1<<counterBits - 1)}
	nonce := fmt.Sprintf("%v.%v", h.head["process"], asked["op"])
	ofGrant := deed{"key": key, "nonce": nonce, "token": token, "sent_ns": max(askedAt, sent)}
	h.record(asked.with(ofGrant).with(deed{"phase": "ok", "deadline_ns": deadline}))

	until := now() + rand.N(h.lease)
	for ctx.Err() == nil && now() < min(until, deadline) && lock.Held() {
		h.write(ofGrant)
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(100 * time.Millisecond)):
		}
	}
	release := h.begin("release", ofGrant)
	_ = lock.Unlock()
	h.record(release.with(deed{"phase": "info"}))
}

// write has the resource decide, which refuses a token smaller than one it has seen.
func (h *holder) write(ofGrant deed) {
	write := h.begin("write", ofGrant)
	must(h.resource.Write(append(must(json.Marshal(write)), '\n')))
	var answer string
	must(0, json.Unmarshal(must(h.answers.ReadBytes('\n')), &answer))
	phase := map[bool]string{true: "ok", false: "fail"}[answer == "accepted"]
	h.record(write.with(deed{"phase": phase, "answer": answer}))
}

func main() {
	dir, run := flag.String("dir", "", ""), flag.String("run", "", "")
	seed, process := flag.Uint64("seed", 0, ""), flag.Uint("process", 0, "")
	resource, leaseMs := flag.String("resource", "", ""), flag.Int("lease-ms", 0, "")
	flag.String("section-ms", "", "")
	flag.String("linger-ms", "", "")
	var coordinators, keys []string
	flag.Func("coordinator", "", func(url string) error {
		coordinators = append(coordinators, strings.TrimPrefix(url, "http://"))
		return nil
	})
	flag.Func("key", "", func(key string) error { keys = append(keys, key); return nil })
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	path := filepath.Join(*dir, fmt.Sprintf("%05d.jsonl", *process))
	stream := must(net.Dial("unix", *resource))
	h := holder{
		client:   must(ringfence.Dial(coordinators)),
		history:  must(os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)),
		resource: stream,
		answers:  bufio.NewReader(stream),
		lease:    time.Duration(*leaseMs) * time.Millisecond,
		head:     deed{"run": *run, "seed": *seed, "process": *process},
	}
	for ctx.Err() == nil {
		h.hold(ctx, keys[rand.N(len(keys))])
	}
	must(0, h.client.Close())
}
