#!/usr/bin/env python3
"""A process of a chaos run: takes locks, writes under them, and gives them back, until it is told to end.

``ringfence-chaos run --service --client PROGRAM`` starts it, and checks what it writes down: docs/write-a-client.md.
"""

import argparse
import contextlib
import json
import random
import socket
import time
from pathlib import Path
from typing import Any

import ringfence

COUNTER_BITS = 35
#: What the deadline of a lease allows for: the rates of clocks, and a margin. As tests/chaos/src/checker/grant.rs.
RHO, MARGIN_NS = 0.01, 20_000_000
#: How long is waited, in seconds.
WAIT = 6


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Recorder:
    """Each event is one write of one line, so that not even SIGKILL takes a line back."""

    def __init__(self, args: argparse.Namespace) -> None:
        path = args.dir / f"{args.process:05}.jsonl"
        self.file = open(path, "xb", buffering=0)  # until the process ends
        self.head = {"run": args.run, "seed": args.seed, "process": args.process}
        self.op = 0

    def begin(self, kind: str, **deed: Any) -> dict[str, Any]:
        self.op += 1
        begun = {"op": self.op, "kind": kind, "phase": "invoke", **deed}
        self.record(begun)
        return begun

    def record(self, deed: dict[str, Any]) -> None:
        line = json.dumps({**self.head, "t_ns": now(), **deed})
        self.file.write(line.encode() + b"\n")


class Resource:
    """What the locks protect: it refuses a token smaller than one it has seen."""

    def __init__(self, path: str) -> None:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
        self.lines = stream.makefile("rw")

    def write(self, deed: dict[str, Any]) -> str:
        self.lines.write(json.dumps(deed) + "\n")
        self.lines.flush()
        return str(json.loads(self.lines.readline()))


def hold(client: ringfence.Client, key: str, lease_ms: int, recorder: Recorder, resource: Resource) -> None:
    """Takes the lock, writes under it while the first lease lasts, and gives it back, also at the end of the process."""
    asked = recorder.begin("acquire", key=key, lease_ms=lease_ms, wait_ms=WAIT * 1000)
    asked_ns = now()
    try:
        guard = client.lock(key, lease=lease_ms / 1000, wait=WAIT).acquire()
    except ringfence.RingfenceError as error:
        recorder.record({**asked, "phase": "info", "reason": str(error)})
        return
    deadline_ns = now() + int(guard.remaining * 1e9)
    sent_ns = deadline_ns - int(lease_ms * 1e6 * (1 - RHO)) + MARGIN_NS  # no later than the request that was answered
    of_grant = {
        "key": key,
        "nonce": f"{recorder.head['process']}.{asked['op']}",
        "token": {"te": guard.token >> COUNTER_BITS, "ctr": guard.token & ((1 << COUNTER_BITS) - 1)},
        "sent_ns": max(asked_ns, sent_ns),
    }
    try:
        recorder.record({**asked, **of_grant, "phase": "ok", "deadline_ns": deadline_ns})
        until_ns = now() + int(random.random() * lease_ms * 1e6)
        while now() < min(until_ns, deadline_ns) and guard.held:
            write = recorder.begin("write", **of_grant)
            answer = resource.write(write)
            recorder.record({**write, "phase": "ok" if answer == "accepted" else "fail", "answer": answer})
            time.sleep(random.random() * 0.1)
    finally:
        release = recorder.begin("release", **of_grant)
        guard.release()
        recorder.record({**release, "phase": "info"})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--process", type=int, required=True)
    parser.add_argument("--resource", required=True)
    parser.add_argument("--coordinator", action="append", required=True)
    parser.add_argument("--key", action="append", required=True)
    parser.add_argument("--lease-ms", type=int, required=True)
    parser.add_argument("--section-ms")
    parser.add_argument("--linger-ms")
    args = parser.parse_args()
    ringfence.exit_on_signal()
    recorder, resource = Recorder(args), Resource(args.resource)
    random.seed(args.seed ^ args.process << 32)
    addresses = [url.removeprefix("http://") for url in args.coordinator]
    with ringfence.Client(addresses) as client:
        while True:
            hold(client, random.choice(args.key), args.lease_ms, recorder, resource)


if __name__ == "__main__":
    with contextlib.suppress(SystemExit):  # told to end, and did
        main()
