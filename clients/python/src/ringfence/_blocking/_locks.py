"""Locks of the blocking client."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Mapping,
    Optional,
    TypeVar,
    cast,
)

from .. import _rules
from .._clock import now
from .._durations import Duration, seconds
from .._requests import Key
from .._rules import Hold, Outcome, Side, Terms, preferred_side
from .._views import Leader
from ..errors import LockLost, NotAcquired
from ..v1 import lock_pb2

if TYPE_CHECKING:
    from ._client import Client

F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound="Held")


class Acquirable(Generic[G]):
    """A lock, or several, and the terms to acquire it.

    Use it in a ``with``, or as a decorator: then each call of the function acquires it anew, in any thread.
    A function that calls itself waits for itself. If the lock was lost during the call, the call ends with
    :class:`LockLost`, unless it fails anyway.
    """

    def __init__(self, client: Client, wait: Optional[float]) -> None:
        self._client = client
        self._wait = wait
        self._entered: Optional[G] = None

    def _acquire(self, wait: Optional[float]) -> G:
        raise NotImplementedError

    def acquire(self) -> G:
        """Waits for it. :class:`NotAcquired` if ``wait`` is over."""
        return self._acquire(self._wait)

    def try_acquire(self) -> Optional[G]:
        """Asks once. None: another holder has it."""
        try:
            return self._acquire(0.0)
        except NotAcquired:
            return None

    def __call__(self, function: F) -> F:
        kinds = (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        )
        if any(kind(function) for kind in kinds):
            raise TypeError(
                f"{function!r} goes on after its call, without the lock: use `with` in it, or ringfence.aio"
            )

        @functools.wraps(function)
        def locked(*args: Any, **kwargs: Any) -> Any:
            with self.acquire():
                return function(*args, **kwargs)

        return cast(F, locked)

    def __enter__(self) -> G:
        if self._entered:
            name = type(self).__name__
            raise RuntimeError(f"this {name} is in a `with` already: make another, as by Client.lock")
        self._entered = self.acquire()
        return self._entered

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        guard, self._entered = self._entered, None
        if guard:
            guard.__exit__(kind, error, trace)


class Held:
    """A held lock, or several, until it is released, or one is lost."""

    def __init__(self, lost: threading.Event) -> None:
        self._lost = lost

    @property
    def held(self) -> bool:
        """Whether the lock, or each of several, is held now, by the clock. False in a forked process."""
        raise NotImplementedError

    @property
    def remaining(self) -> float:
        """The rest of the lease in seconds, counted from before the request was sent. Of several: the least."""
        raise NotImplementedError

    @property
    def _released(self) -> bool:
        raise NotImplementedError

    def check(self) -> None:
        """Raises :class:`LockLost` if it is not held any more."""
        if not self.held:
            raise LockLost("the lock is no longer held")

    def wait_lost(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until it is lost. False if ``timeout`` is over; never true after a release."""
        return self._lost.wait(seconds("timeout", timeout))

    def release(self) -> Outcome:
        """Releases it. A repeat, or a lost lock, is ``Outcome.LOST``."""
        raise NotImplementedError

    def __enter__(self: G) -> G:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Releases. :class:`LockLost` if the block ended well, but not under the lock."""
        released = self._released
        if self.release() is Outcome.LOST and not released and kind is None:
            raise LockLost("the lock was lost before the end of the block")


class Guard(Held):
    """A held lock: renewed in the background until it is released, lost, or garbage."""

    def __init__(self, client: Client, hold: Hold, lost: Optional[threading.Event] = None) -> None:
        super().__init__(lost or threading.Event())
        self._client = client
        self._hold = hold
        self._wake = wake = threading.Event()
        client._holds[hold] = wake
        threading.Thread(
            target=client._keep,
            args=(hold, wake, self._lost),
            name=f"ringfence-renew-{hold.token}",
            daemon=True,
        ).start()

        def drop() -> None:
            hold.dropped = True
            wake.set()

        finalizer: Any = weakref.finalize(self, drop)
        finalizer.atexit = False

    @property
    def token(self) -> int:
        """The fencing token: the resource refuses a token smaller than one it has seen."""
        return self._hold.token

    @property
    def held(self) -> bool:
        return self._hold.is_held()

    @property
    def remaining(self) -> float:
        return max(0.0, self._hold.deadline - now()) if self.held else 0.0

    @property
    def _released(self) -> bool:
        return self._hold.released

    def downgrade(self) -> None:
        """Makes a writer a reader: stop writing before. The token stays. :class:`LockLost` if it is lost."""
        client = self._client
        client._run(_rules.downgrade(self._hold, client._timeout, len(client._coordinators)))

    def release(self) -> Outcome:
        ended = self._hold.end()
        self._wake.set()
        return self._client._release(self._hold) if ended else Outcome.LOST


class Lock(Acquirable[Guard]):
    """A lock and the terms to acquire it."""

    def __init__(self, client: Client, terms: Terms, wait: Optional[float]) -> None:
        super().__init__(client, wait)
        self._terms = terms

    def _in_mode(self, mode: lock_pb2.LockMode, **terms: Any) -> Lock:
        return Lock(self._client, replace(self._terms, mode=mode, **terms), self._wait)

    def _acquire(self, wait: Optional[float], lost: Optional[threading.Event] = None) -> Guard:
        return Guard(self._client, self._client._acquire(self._terms, wait), lost)


class RwLock:
    """A read-write lock. Waiters are served first come, first served, unless one side is preferred."""

    def __init__(self, lock: Lock, prefer: Optional[Side]) -> None:
        self._lock = lock
        self._prefer = preferred_side(prefer)

    def read(self) -> Lock:
        """The side of the readers, who hold the lock together."""
        return self._lock._in_mode(lock_pb2.LOCK_MODE_READ, preferred=self._prefer == "readers")

    def write(self) -> Lock:
        """The side of the writers, who hold it alone."""
        return self._lock._in_mode(lock_pb2.LOCK_MODE_WRITE, preferred=self._prefer == "writers")


class MultiGuard(Held):
    """Several held locks, which are released together. It is lost as soon as one of them is."""

    def __init__(self, guards: Mapping[Key, Guard], lost: threading.Event) -> None:
        super().__init__(lost)
        self._guards = guards

    @property
    def tokens(self) -> Dict[Key, int]:
        """The fencing token of each key. Pass each to the resource that its lock protects."""
        return {key: guard.token for key, guard in self._guards.items()}

    @property
    def held(self) -> bool:
        return all(guard.held for guard in self._guards.values())

    @property
    def remaining(self) -> float:
        return min(guard.remaining for guard in self._guards.values())

    @property
    def _released(self) -> bool:
        return all(guard._released for guard in self._guards.values())

    def release(self) -> Outcome:
        """Releases all. ``Outcome.LOST`` if one of them was lost, or if it is a repeat."""
        return _rules.worst([guard.release() for guard in self._guards.values()])


class MultiLock(Acquirable[MultiGuard]):
    """Locks of several keys, to be held together or not at all."""

    def __init__(
        self, client: Client, keys: Iterable[Key], wait: Optional[float], terms: Mapping[str, Any]
    ) -> None:
        super().__init__(client, wait)
        self._locks = {key: client.lock(key, **terms) for key in _rules.in_order(keys)}

    def _acquire(self, wait: Optional[float]) -> MultiGuard:
        ends = None if wait is None else now() + wait
        guards: Dict[Key, Guard] = {}
        lost = threading.Event()
        with ExitStack() as stack:  # an error releases those that are held
            for key, lock in self._locks.items():
                left = None if ends is None else max(0.0, ends - now())
                guards[key] = stack.enter_context(lock._acquire(left, lost))
            every = MultiGuard(guards, lost)
            every.check()
            stack.pop_all()
        return every


class Leadership(Guard):
    """The leadership of an election, until it is resigned or lost."""

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads now, by the clock. False in a forked process."""
        return self.held

    def resign(self) -> Outcome:
        """Resigns: the next candidate leads at once."""
        return self.release()


class Election(Acquirable[Leadership]):
    """An election, and the terms of a candidate."""

    def __init__(self, client: Client, terms: Terms, wait: Optional[float]) -> None:
        super().__init__(client, wait)
        self._terms = terms

    def _acquire(self, wait: Optional[float]) -> Leadership:
        return Leadership(self._client, self._client._acquire(self._terms, wait))

    def campaign(self) -> Leadership:
        """Waits until this candidate leads: in the order in which they came. :class:`NotAcquired` if
        ``wait`` is over."""
        return self.acquire()

    def leader(self) -> Optional[Leader]:
        """The present leader. None: there is none."""
        return Leader.of(self._client.inspect(self._terms.key, namespace=_rules.ELECTION))
