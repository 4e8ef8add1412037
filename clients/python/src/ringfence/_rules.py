"""The rules of locks and counters, without I/O.

Each rule is a generator: it yields a step, and gets the answer of a call, or its error. The blocking
client and the one for asyncio carry out the same steps.
"""

from __future__ import annotations

import copy
import enum
import logging
import math
import os
import threading
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Generator, Iterable, Literal, Optional, Sequence, Union

from ._clock import now
from ._requests import Change, Changed, Key, key_bytes, set_duration
from .errors import InvalidInput, LockLost, NotAcquired, RingfenceError, counts_earlier
from .v1 import counter_pb2, latch_pb2, lock_pb2

_log = logging.getLogger("ringfence")

#: A side of a read-write lock.
Side = Literal["readers", "writers"]

Rule = Generator[Union["Call", "Pause", "Danger"], Any, Any]

#: Between two attempts of a call, in seconds: the first pause, doubled with each failure.
_PAUSE, _PAUSE_MAX = 0.02, 1.0

#: The greatest number of keys of a multi-lock.
_KEYS_MAX = 64

#: One wait for a latch, of many, in seconds.
_LATCH_WAIT = 10.0

#: The namespace of the locks that elections use, here and in the clients for other languages.
ELECTION = "election"

#: Changes in one call, and their bytes, at most: a coordinator takes 1,000, and 64 KiB.
_CHANGES_MAX, _CHANGES_BYTES = 1000, 60_000

#: How long a change of a whole account may take, in seconds.
WORK_WITHIN = 60.0

#: How long a call that the caller has given up may still get its answer, in seconds. If it is a
#: grant, it is released; a grant that comes after that stays until its lease ends.
GIVE_UP_AFTER = 1.0


@dataclass(frozen=True)
class Call:
    """A step: makes a call, and gets its answer."""

    service: str
    method: str
    request: Any
    #: In seconds. None: no limit.
    timeout: Optional[float]
    #: Whether the next call goes to another coordinator after any failure of this one, and not
    #: only if the coordinator cannot serve.
    move_on: bool = False
    #: The rule to carry out if the caller gives up during this call. Gets the answer, if one came.
    undo: Optional[Callable[[Optional[Any]], Optional[Rule]]] = None
    #: Whether the next call goes to the same coordinator if this one gets no answer.
    stay: bool = False
    #: Whether it waits for a connection, and does not fail if there is none at the moment.
    reconnects: bool = False


@dataclass(frozen=True)
class Pause:
    """A step: waits for a number of seconds, or until the lock is released."""

    seconds: float


@dataclass(frozen=True)
class Danger:
    """A step: tells the holder that the lock is about to be lost."""

    key: bytes
    token: int
    #: Why renewals have failed. None: none has, but the lock's longest time ends, or the
    #: coordinator cannot reach the home of the topology.
    error: Optional[RingfenceError]


class Outcome(enum.Enum):
    """The state of a lock when it was released."""

    #: It was held until its release.
    HELD = "held"
    #: It was lost before.
    LOST = "lost"
    #: No coordinator or shard answered. The lock is free when its lease ends at the latest.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Terms:
    """The terms of an acquisition. Times are in seconds."""

    key: bytes
    namespace: str
    label: str
    lease: Optional[float]
    hold_for: Optional[float]
    on_danger: Optional[Callable[[Danger], object]]
    mode: lock_pb2.LockMode = lock_pb2.LOCK_MODE_EXCLUSIVE
    #: Of a semaphore: how many to take, and how many there are.
    permits: int = 0
    capacity: int = 0
    #: Of a read-write lock: goes before waiters that are not preferred.
    preferred: bool = False

    def request(self, nonce: bytes, wait: Optional[float]) -> lock_pb2.AcquireRequest:
        request = lock_pb2.AcquireRequest(
            nonce=nonce,
            namespace=self.namespace,
            key=self.key,
            label=self.label,
            mode=self.mode,
            permits=self.permits,
            capacity=self.capacity,
            preferred=self.preferred,
        )
        set_duration(request.lease, self.lease)
        set_duration(request.hold_for, self.hold_for)
        set_duration(request.wait, wait)
        return request


def preferred_side(prefer: Optional[Side]) -> Optional[Side]:
    """The side to prefer, if it is one."""
    if prefer not in (None, "readers", "writers"):
        raise InvalidInput.of("prefer", repr(prefer), '"readers" or "writers"')
    return prefer


def in_order(keys: Iterable[Key]) -> Sequence[Key]:
    """The different keys in the order in which every process acquires them."""
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"keys is {keys!r}, must be several keys")
    different = {key_bytes(key): key for key in keys}
    if not 1 <= len(different) <= _KEYS_MAX:
        raise InvalidInput.of("keys", f"{len(different)} different keys", f"1 to {_KEYS_MAX}")
    return [key for _, key in sorted(different.items())]


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of several releases."""
    came = set(outcomes)
    return next(each for each in (Outcome.LOST, Outcome.UNKNOWN, Outcome.HELD) if each in came)


class Hold:
    """A grant, from its answer until its end."""

    def __init__(self, terms: Terms, answer: lock_pb2.AcquireResponse, sent: float) -> None:
        self.terms = terms
        self.handle: bytes = answer.handle
        self.token: int = answer.token
        #: The longest that an answer told so far.
        self.lease = _seconds(answer.valid_for)
        #: The answer tells the rest of the lease at a time after `sent`.
        self.deadline = sent + self.lease
        self.renew_at = sent + self.lease / 3
        self.error: Optional[RingfenceError] = None
        self.warned = False
        #: Nobody can use the lock any more: its guard was garbage.
        self.dropped = False
        self.released = False
        self.lost = False
        #: Its client was closed.
        self.closed = False
        self._mutex = threading.Lock()
        self._process = os.getpid()

    def is_held(self) -> bool:
        """By the clock: true does not wait for the task that renews, and a fork holds nothing."""
        return (
            not (self.released or self.lost)
            and now() < self.deadline
            and os.getpid() == self._process
        )

    def end(self) -> bool:
        """Releases, unless the lock has ended. Returns whether this call did."""
        with self._mutex:
            ends = self.is_held()
            self.lost = self.lost or not (ends or self.released)
            self.released = self.released or ends
            return ends

    def lose(self) -> bool:
        """Ends, not by a release. Returns whether the lock was held."""
        with self._mutex:
            held = self.is_held()
            self.lost = not self.released
            return held

    def close(self) -> bool:
        """Ends with its client. Returns whether the lock was held."""
        self.closed = True
        return self.lose()

    def renewed(self, sent: float, valid_for: float) -> None:
        self.deadline = max(self.deadline, sent + valid_for)
        self.lease = max(self.lease, valid_for)
        # A lock lasts less than its lease if the coordinator's view of the topology ends before.
        self.renew_at = sent + max(valid_for / 3, self.lease / 24)
        self.error = None
        self.warned = self.warned and now() >= self.warns_at()

    def warns_at(self) -> float:
        """When a third of the lease is left."""
        return self.deadline - self.lease / 3

    def failed(self, error: RingfenceError) -> None:
        if self.error is None:
            _log.warning("renewals of lock %s fail: %s", self, error)
        self.error = error
        self.renew_at = now() + self.lease / 24

    def __str__(self) -> str:
        return f"{self.terms.key.decode(errors='backslashreplace')!r}, token {self.token}"


def acquire(terms: Terms, wait: Optional[float], timeout: float, coordinators: int) -> Rule:
    """Asks until the lock is granted, or `wait` is over. Returns a `Hold`.

    An answer may get lost: the request is repeated for `timeout` more, first at the same coordinator,
    which answers all requests with a nonce with one lock. Without `wait`, it gives up once no
    coordinator has served for twice `timeout`.
    """
    nonce = uuid.uuid4().bytes
    ends = None if wait is None else now() + wait
    failures, down_since = 0, 0.0
    while True:
        left = None if ends is None else max(0.0, ends - now())
        sent = now()

        def undo(answer: Optional[lock_pb2.AcquireResponse]) -> Optional[Rule]:
            return answer and _drop(Hold(terms, answer, now()), timeout, coordinators)

        try:
            request, limit = terms.request(nonce, left), None if left is None else left + timeout
            # Twice: the first repeat may only find out that the connection is broken.
            stay = failures < 2
            answer = yield Call("LockService", "Acquire", request, limit, undo=undo, stay=stay)
            hold = Hold(terms, answer, sent)
            if now() > hold.renew_at:
                # After a wait, `sent` was long ago: the time that is left counts from a renewal.
                yield from _renew(hold, hold.lease / 3, lambda _: undo(answer))
            if hold.is_held():
                return hold
            raise hold.error or LockLost("the grant came too late")
        except RingfenceError as error:
            if not error.retryable or error.reason in ("HELD", "TIMED_OUT"):
                raise
            if not error.elsewhere or now() - sent > 10 * timeout:
                failures = 0
            if failures == 0:
                down_since = now()
            failures += 1
            untried = error.elsewhere and failures <= coordinators + 1
            pause = 0.0 if untried else _pause(failures, error)
            if ends is None:
                over = failures > 2 * coordinators and now() - down_since > 2 * timeout
            else:
                more = timeout if error.may_have_taken_effect else 0.0
                over = not untried and now() + pause >= ends + more
            if over:
                raise
            yield Pause(pause)


def keep(hold: Hold, timeout: float, coordinators: int) -> Rule:
    """Renews a lock after a third of the time that it lasts, until it is released, dropped or lost."""
    while hold.is_held():
        if hold.dropped:
            yield from _drop(hold, timeout, coordinators)
            break
        # No call lasts past the time of the warning, nor past the deadline.
        warns_at = hold.deadline if hold.warned else hold.warns_at()
        if now() >= warns_at:
            hold.warned = True
            yield Danger(hold.terms.key, hold.token, hold.error)
        elif now() >= hold.renew_at:
            limit = warns_at - now()
            # Early enough to ask another coordinator.
            yield from _renew(hold, limit if coordinators == 1 else min(hold.lease / 6, limit))
        else:
            yield Pause(min(hold.renew_at, warns_at) - now())
    hold.lose()
    if hold.lost and not hold.closed:
        _log.warning("lock %s is lost: %s", hold, hold.error or "its time has ended")


def _renew(
    hold: Hold,
    timeout: float,
    undo: Optional[Callable[[Optional[Any]], Optional[Rule]]] = None,
) -> Rule:
    sent = now()
    request = lock_pb2.RenewRequest(handle=hold.handle)
    try:
        answer = yield Call("LockService", "Renew", request, timeout, True, undo)
    except LockLost as error:
        hold.error = error
        hold.lose()
    except RingfenceError as error:
        hold.failed(error)
    else:
        hold.renewed(sent, _seconds(answer.valid_for))


def downgrade(hold: Hold, timeout: float, coordinators: int) -> Rule:
    """Asks until the writer is a reader, or the lock is lost."""
    failures = 0
    while hold.is_held():
        sent = now()
        request = lock_pb2.DowngradeRequest(handle=hold.handle)
        limit = min(timeout, hold.deadline - sent)
        try:
            answer = yield Call(
                "LockService",
                "Downgrade",
                request,
                limit,
                move_on=True,
                reconnects=failures >= coordinators,
            )
        except LockLost:
            hold.lose()
        except RingfenceError as error:
            failures += 1
            if not error.retryable:
                raise
            yield Pause(0.0 if failures < coordinators else _pause(failures, error))
        else:
            hold.handle = answer.handle
            hold.renewed(sent, _seconds(answer.valid_for))
            return
    raise LockLost("the lock was lost before it was a reader's")


def release(hold: Hold, timeout: float, coordinators: int) -> Rule:
    """Releases a lock that `Hold.end` has ended. Returns an `Outcome`."""
    request = lock_pb2.ReleaseRequest(handle=hold.handle)
    for attempt in range(coordinators + 1):
        # After the deadline, there is nothing to release.
        limit = min(timeout, hold.deadline - now())
        if limit <= 0:
            break
        try:
            last = attempt == coordinators
            answer = yield Call(
                "LockService", "Release", request, limit, move_on=True, reconnects=last
            )
        except RingfenceError:
            continue
        if answer.outcome == lock_pb2.RELEASE_OUTCOME_HELD:
            return Outcome.HELD
        # Perhaps an attempt without an answer has released it.
        return Outcome.LOST if attempt == 0 and _lost(answer) else Outcome.UNKNOWN
    return Outcome.UNKNOWN


def _drop(hold: Hold, timeout: float, coordinators: int) -> Rule:
    """Releases a lock that nobody uses any more."""
    if hold.end():
        yield from release(hold, timeout, coordinators)


def _lost(answer: lock_pb2.ReleaseResponse) -> bool:
    return bool(answer.outcome == lock_pb2.RELEASE_OUTCOME_LOST)


def ask(
    service: str,
    method: str,
    request: Any,
    timeout: float,
    coordinators: int,
    repeatable: bool = True,
) -> Rule:
    """A call that is repeated until `timeout` is over.

    If it is not `repeatable`, a repeat would have a second effect: only a call without effect is repeated.
    """
    ends = now() + timeout
    failures = 0
    unknown = False
    while True:
        try:
            limit = min(ends - now(), timeout / coordinators)
            again = failures >= coordinators
            return (yield Call(service, method, request, limit, move_on=True, reconnects=again))
        except RingfenceError as error:
            failures += 1
            pause = _pause(failures, error)
            repeats = error.retryable and (repeatable or not error.may_have_taken_effect)
            unknown = _after(unknown, error)
            if not repeats or now() + pause >= ends:
                raise
            yield Pause(pause)


def _after(unknown: bool, error: RingfenceError) -> bool:
    """Whether the request may have taken effect, if it may have before an attempt that failed. The error says so, too."""
    if not counts_earlier(error):
        error.may_have_taken_effect = error.may_have_taken_effect or unknown
    return error.may_have_taken_effect


def change(changes: Sequence[Change], timeout: float, coordinators: int) -> Rule:
    """Makes changes, in as many calls as they need. Returns an answer each."""
    answers: list[Changed] = []
    first = 0
    while first < len(changes):
        part: list[Change] = []
        size = 0
        for each in changes[first : first + _CHANGES_MAX]:
            size += each._message.ByteSize() + 4
            if part and size > _CHANGES_BYTES:
                break
            part.append(each)
        first += len(part)
        answers += yield from _change_part(part, timeout, coordinators)
    return answers


def _change_part(changes: Sequence[Change], timeout: float, coordinators: int) -> Rule:
    """Makes the changes of one call, and repeats those that failed for a while until `timeout` is over."""
    ends = now() + timeout
    failures = 0
    answers = [Changed()] * len(changes)
    unknown = [False] * len(changes)
    left = list(range(len(changes)))
    while True:
        request = counter_pb2.BatchChangeRequest(changes=[changes[at]._message for at in left])
        limit = min(ends - now(), timeout / coordinators)
        again = failures >= coordinators
        try:
            made = yield Call(
                "CounterService", "BatchChange", request, limit, move_on=True, reconnects=again
            )
            these = [Changed.of(each) for each in made.answers]
            these += [Changed(RingfenceError("no answer to the change"))] * (len(left) - len(these))
        except RingfenceError as error:
            these = [Changed(copy.copy(error)) for _ in left]
        for at, answer in zip(left, these):
            answers[at] = answer
            if answer.error:
                unknown[at] = _after(unknown[at], answer.error)
        failures += 1
        pause = 0.0
        again_at = []
        for at in left:
            its = answers[at].error
            if its and its.retryable:
                again_at.append(at)
                pause = max(pause, _pause(failures, its))
        if not again_at or now() + pause >= ends:
            return answers
        left = again_at
        yield Pause(pause)


def wait_latch(name: str, wait: Optional[float], timeout: float, coordinators: int) -> Rule:
    """Waits for a latch, for at most `wait`. Returns whether it is open."""
    ends = math.inf if wait is None else now() + wait
    failures = 0
    while True:
        length = max(0.0, min(ends - now(), _LATCH_WAIT))
        request = latch_pb2.WaitLatchRequest(name=name)
        request.wait.FromNanoseconds(int(length * 1e9))
        try:
            limit = length + timeout / coordinators
            yield Call("LatchService", "WaitLatch", request, limit, move_on=True)
            return True
        except NotAcquired:
            failures = 0
            if now() >= ends:
                return False
        except RingfenceError as error:
            failures += 1
            pause = _pause(failures, error)
            if not error.retryable or now() + pause >= ends:
                raise
            yield Pause(pause)


def _pause(failures: int, error: RingfenceError) -> float:
    return max(min(_PAUSE * 2.0 ** min(failures, 16), _PAUSE_MAX), error.retry_after or 0.0)


def _seconds(duration: Any) -> float:
    return float(duration.ToNanoseconds() / 1e9)
