"""States of locks and accounts, for people and tools: they may have changed since they were read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Iterator, Mapping, Optional, Tuple

from .errors import RingfenceError, ShardUnavailable, from_failure
from .v1 import counter_pb2, lock_pb2


class LockKind(enum.Enum):
    """The kinds of locks."""

    #: A kind of a later release.
    UNKNOWN = lock_pb2.LOCK_KIND_UNSPECIFIED
    #: One holder.
    MUTEX = lock_pb2.LOCK_KIND_MUTEX
    #: A number of permits.
    SEMAPHORE = lock_pb2.LOCK_KIND_SEMAPHORE
    #: Many readers, or one writer.
    READ_WRITE = lock_pb2.LOCK_KIND_READ_WRITE

    @classmethod
    def _missing_(cls, value: object) -> LockKind:
        return cls.UNKNOWN


@dataclass(frozen=True)
class Holder:
    """A holder of a lock."""

    #: The name of the holder.
    label: str
    #: The first of its fencing tokens. A coordinator may pass a lock from one of its callers to the
    #: next: each gets the next token.
    first_token: int
    #: The number of its fencing tokens, at least 1.
    tokens: int
    #: The rest of its lease in seconds, unless it is renewed.
    remaining: float
    kind: LockKind
    #: The number of permits that it has. 1 of other kinds.
    permits: int
    #: Whether it holds the lock alone: as the holder of a lock, or as a writer.
    exclusive: bool
    #: How long its process has had the lock, in seconds. A lock that was put back after a restart of its shard, or that
    #: moved to another shard, counts from then.
    held_for: float

    @classmethod
    def of(cls, holder: lock_pb2.LockHolder) -> Holder:
        return cls(
            label=holder.label,
            first_token=holder.first_token,
            tokens=holder.tokens,
            remaining=holder.remaining.ToNanoseconds() / 1e9,
            kind=LockKind(holder.kind),
            permits=holder.permits,
            exclusive=holder.exclusive,
            held_for=holder.held_for.ToNanoseconds() / 1e9,
        )


@dataclass(frozen=True)
class Waiter:
    """A process that waits for a lock."""

    #: The name of the waiter.
    label: str
    #: How many callers of the process wait: those of a coordinator, or tasks.
    callers: int
    kind: LockKind
    #: The number of permits that it asks for. 1 of other kinds.
    permits: int
    #: How many permits there are, by its request. 1 of other kinds.
    capacity: int
    #: Whether it wants to hold the lock alone: as the holder of a lock, or as a writer.
    exclusive: bool

    @classmethod
    def of(cls, waiter: lock_pb2.LockWaiter) -> Waiter:
        return cls(
            label=waiter.label,
            callers=waiter.callers,
            kind=LockKind(waiter.kind),
            permits=waiter.permits,
            capacity=waiter.capacity,
            exclusive=waiter.exclusive,
        )


@dataclass(frozen=True)
class LockState:
    """The holders of a lock and its waiters."""

    #: In the order of their tokens. Empty: the lock is free.
    holders: Tuple[Holder, ...]
    #: The waiting processes, in the order in which they get the lock.
    waiters: Tuple[Waiter, ...]

    @classmethod
    def of(cls, answer: lock_pb2.InspectResponse) -> LockState:
        first = [answer.holder] if answer.HasField("holder") else []
        holders = tuple(map(Holder.of, [*first, *answer.others]))
        return cls(holders, tuple(map(Waiter.of, answer.waiters)))


@dataclass(frozen=True)
class HeldLock:
    """A held lock of a list."""

    namespace: str
    key: bytes
    #: The holder. Of several: the one with the least token.
    holder: Holder
    #: The number of callers that wait; with more than 128 waiting processes, the number of processes. It may include some
    #: that have left.
    waiting: int
    #: The number of other holders of a semaphore, or of a read-write lock.
    others: int


@dataclass(frozen=True)
class Leader:
    """The leader of an election."""

    #: The name of the candidate.
    label: str
    #: The first fencing token of the leader's process.
    first_token: int

    @classmethod
    def of(cls, state: LockState) -> Optional[Leader]:
        return cls(state.holders[0].label, state.holders[0].first_token) if state.holders else None


class _Ends:
    """The shards whose lists end early."""

    def __init__(self) -> None:
        self._errors: list[str] = []

    def note(self, shard: str, error: str) -> None:
        if error:
            self._errors.append(f"the list of shard {shard} ends early: {error}")

    def end(self) -> None:
        if self._errors:
            raise ShardUnavailable(
                "; ".join(self._errors),
                reason="SHARD_UNAVAILABLE",
                retryable=True,
                may_have_taken_effect=False,
            )


class Listing:
    """A list of locks while its pages arrive."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._ends = _Ends()

    def page(self, page: lock_pb2.ListResponse) -> Iterator[HeldLock]:
        """The locks of a page that have the prefix."""
        self._ends.note(page.shard, page.error)
        for lock in page.locks:
            if lock.key.startswith(self._prefix):
                holder = Holder.of(lock.holder)
                yield HeldLock(lock.namespace, lock.key, holder, lock.waiting, lock.others)

    def end(self) -> None:
        """Raises an error if locks may be missing."""
        self._ends.end()


@dataclass(frozen=True)
class Segment:
    """A segment of an account. Amounts are in the smallest unit."""

    #: Its number, from 0.
    index: int
    #: The amount that can be spent.
    available: int
    #: The amount set aside in addition.
    held: int
    #: Whether it may have lost its last changes: it moves no amount until it is accepted.
    in_doubt: bool
    #: How often it may have lost its last changes and went on.
    losses: int
    #: The number of transfers from or to it that are not finished.
    unfinished: int
    #: Requests created at this time or before may be forgotten, in seconds since 1970. None: it has forgotten none.
    forgotten_until: Optional[float]
    #: The changes of its amounts per second since a sweep has seen it. From about 10,000 on, more segments help.
    #: None: not known.
    changes_per_second: Optional[int]


@dataclass(frozen=True)
class LostSegment:
    """A segment that is lost with its shard, as the last sweep saw it. None: no sweep has seen it."""

    #: Its number, from 0.
    index: int
    #: The amount in it, with what was set aside.
    amount: Optional[int]
    #: The time of the sweep, in seconds since 1970.
    seen_at: Optional[float]
    #: How often it may have lost its last changes by then.
    losses: Optional[int]


@dataclass(frozen=True)
class AccountState:
    """An account, and its segments, not read at one instant."""

    #: The number of segments that take new requests. None: it is being changed.
    homes: Optional[int]
    #: The segments that exist, in the order of their numbers.
    segments: Tuple[Segment, ...]
    #: The segments that are lost with their shards.
    lost: Tuple[LostSegment, ...]
    #: The unit of its amounts. Empty: none.
    unit: str
    #: The least ledger balance: below 0 by its credit line.
    floor: int
    #: The greatest ledger balance. None: no limit.
    ceiling: Optional[int]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, answer: counter_pb2.GetAccountResponse) -> AccountState:
        homes = answer.homes if answer.HasField("homes") else None
        found = answer.segments
        ceiling = found.ceiling if found.HasField("ceiling") else None
        return cls(
            homes, *_segments(found), found.unit, found.floor, ceiling, dict(found.labels)
        )


@dataclass(frozen=True)
class ListedAccount:
    """An account of a list, and its segments, not read at one instant."""

    name: str
    #: The segments that exist, in the order of their numbers.
    segments: Tuple[Segment, ...]
    #: The segments that are lost with their shards.
    lost: Tuple[LostSegment, ...]
    #: Why they could not be read.
    error: Optional[RingfenceError]
    unit: str
    labels: Mapping[str, str]


class AccountListing:
    """A list of accounts while its pages arrive."""

    def __init__(self) -> None:
        self._ends = _Ends()

    def page(self, page: counter_pb2.ListAccountsResponse) -> Iterator[ListedAccount]:
        self._ends.note(page.shard, page.error)
        for one in page.accounts:
            failed = one.HasField("failure")
            error = from_failure(one.failure.error, one.failure.message) if failed else None
            found = one.segments
            yield ListedAccount(
                one.name, *_segments(found), error, found.unit, dict(found.labels)
            )

    def end(self) -> None:
        """Raises an error if accounts may be missing."""
        self._ends.end()


def _segments(
    segments: counter_pb2.AccountSegments,
) -> Tuple[Tuple[Segment, ...], Tuple[LostSegment, ...]]:
    return tuple(map(_segment, segments.present)), tuple(map(_lost_segment, segments.lost))


def _segment(one: counter_pb2.AccountSegment) -> Segment:
    is_whole = not one.HasField("forgotten_until")
    return Segment(
        one.index,
        one.available,
        one.held,
        one.in_doubt,
        one.losses,
        one.unfinished,
        None if is_whole else one.forgotten_until.ToMicroseconds() / 1e6,
        one.changes_per_second if one.HasField("changes_per_second") else None,
    )


def _lost_segment(lost: counter_pb2.LostAccountSegment) -> LostSegment:
    if not lost.HasField("last_seen"):
        return LostSegment(lost.index, None, None, None)
    seen = lost.last_seen
    return LostSegment(lost.index, seen.amount, seen.at.ToMicroseconds() / 1e6, seen.losses)
