"""The blocking client. Each held lock has a thread that renews it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import weakref
from dataclasses import replace
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Union

import grpc

from . import _channels, _requests, _rules
from ._clock import now
from ._requests import Balance, RequestId, Reservation, key_bytes
from ._rules import Call, Danger, Hold, Outcome, Pause, Rule, Side, Terms, preferred_side
from .errors import LockLost, NotAcquired, RingfenceError, from_rpc
from .v1 import counter_pb2, lock_pb2


#: They give their locks back when the process ends.
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _give_back() -> None:
    for client in list(_clients):
        if client._coordinators.process == os.getpid():
            client._give_back()


def exit_on_signal(*signals: signal.Signals) -> None:
    """Lets a signal end the process in order: others get its locks at once, and not after their leases.

    The signal, SIGTERM by default, raises ``SystemExit`` in the main thread, with the exit code of a shell:
    128 + the signal. So ``with`` blocks end, and then the process, which gives back all locks. Call it in
    the main thread. With asyncio, use :func:`ringfence.aio.run`.
    """

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)

    for number in signals or (signal.SIGTERM,):
        signal.signal(number, leave)


class Client:
    """A connection to the coordinators. Any number of threads may use it.

    ``addresses``
        ``"host:port"``, or a list. The client uses one coordinator, and moves on to the next if that
        one fails. Give the coordinators the same ``handle_secret``: then locks go on at the next.
    ``token``
        The bearer token of the caller.
    ``credentials``
        ``grpc.ssl_channel_credentials(…)`` for TLS. Default: without TLS.
    ``label``
        The name of the holder that other callers see. Default: host name and process id.
    ``timeout``
        How long to wait for an answer, in seconds, in addition to a wait for a lock.

    A fork does not inherit a client: create it afterwards, in each process. When the process ends in
    order, it gives held locks back.
    """

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        *,
        token: Optional[str] = None,
        credentials: Optional[grpc.ChannelCredentials] = None,
        label: Optional[str] = None,
        timeout: float = 5.0,
    ) -> None:
        options = _channels.options(timeout)

        def connect(address: str) -> grpc.Channel:
            if credentials is None:
                return grpc.insecure_channel(address, options)
            return grpc.secure_channel(address, credentials, options)

        self._coordinators = _channels.Coordinators(addresses, connect, token)
        self._label = _channels.default_label() if label is None else label
        self._timeout = timeout
        #: The locks to give back at the end, and what wakes their threads.
        self._holds: dict[Hold, threading.Event] = {}
        _clients.add(self)

    def lock(
        self,
        key: Union[str, bytes],
        *,
        wait: Optional[float] = None,
        lease: Optional[float] = None,
        hold_for: Optional[float] = None,
        namespace: str = "",
        on_danger: Optional[Callable[[Danger], object]] = None,
    ) -> Lock:
        """A lock, for one ``with`` at a time. Nothing is sent yet. Times are in seconds.

        ``wait``
            The longest time to wait for it. Default: no limit.
        ``lease``
            The time until it is free again if this process disappears. It is renewed every third of
            it. Default: the longest that the coordinators allow.
        ``hold_for``
            The longest time to hold it: renewals do not extend it. Default: no limit.
        ``on_danger``
            Called in a thread of its own when a third of the lease is left, because renewals fail or
            ``hold_for`` ends.
        """
        terms = Terms(key_bytes(key), namespace, self._label, lease, hold_for, on_danger)
        return Lock(self, terms, wait)

    def semaphore(
        self, key: Union[str, bytes], capacity: int, *, permits: int = 1, **terms: Any
    ) -> Lock:
        """Permits of a semaphore, to be held as a lock is. Nothing is sent yet.

        ``capacity``
            How many permits there are. All users of the key say the same number.
        ``permits``
            How many to take, all or none.
        ``terms``
            As in :meth:`lock`.
        """
        return self.lock(key, **terms)._in_mode(
            lock_pb2.LOCK_MODE_PERMITS, permits=permits, capacity=capacity
        )

    def rw_lock(
        self, key: Union[str, bytes], *, prefer: Optional[Side] = None, **terms: Any
    ) -> RwLock:
        """A read-write lock: many readers, or one writer.

        ``prefer``
            ``"readers"`` or ``"writers"``: requests of that side go before all waiters that are not
            preferred, and in their own order. The other side may wait as long as they keep coming. Let
            all users of a key prefer the same side. Default: all are served in the order of arrival.
        ``terms``
            As in :meth:`lock`.
        """
        return RwLock(self.lock(key, **terms), prefer)

    def account(self, name: str, *, namespace: str = "") -> Account:
        """An account of the counters. Nothing is sent yet."""
        return Account(self, counter_pb2.Account(namespace=namespace, name=name))

    def latch(self, name: str) -> Latch:
        """A countdown latch. Nothing is sent yet."""
        return Latch(self, name)

    def close(self) -> None:
        """Gives held locks back, which are lost then, and closes the connections."""
        self._give_back()
        for channel in self._coordinators.channels:
            channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self,
        rule: Rule,
        pause: Callable[[float], object] = time.sleep,
        tell: Optional[Callable[[Danger], object]] = None,
    ) -> Any:
        """Carries out the steps of a rule, and returns its result."""
        answer: Any = None
        error: Optional[RingfenceError] = None
        try:
            while True:
                step = rule.throw(error) if error else rule.send(answer)
                answer = error = None
                if isinstance(step, Pause):
                    pause(step.seconds)
                elif isinstance(step, Call):
                    try:
                        answer = self._call(step)
                    except RingfenceError as failure:
                        error = failure
                elif tell:
                    tell(step)
        except StopIteration as end:
            return end.value

    def _call(self, step: Call) -> Any:
        index, call = self._coordinators.pick(step.service, step.method)
        metadata = self._coordinators.metadata
        sent = call.future(step.request, step.timeout, metadata, wait_for_ready=step.reconnects)
        try:
            return sent.result()
        except grpc.RpcError as failure:
            error = from_rpc(failure)
            stays = step.stay and error.may_have_taken_effect
            if step.move_on or (error.elsewhere and not stays):
                self._coordinators.move_on(index)
            raise error from None
        except BaseException:  # KeyboardInterrupt, for example
            self._give_up(step, sent)
            raise

    def _give_up(self, step: Call, sent: Any) -> None:
        answer = None
        try:
            if step.undo:
                answer = sent.result(_rules.GIVE_UP_AFTER)
        except (grpc.RpcError, grpc.FutureTimeoutError):
            pass
        sent.cancel()
        undo = step.undo and step.undo(answer)
        if undo:
            self._run(undo)

    def _acquire(self, terms: Terms, wait: Optional[float]) -> Guard:
        ask = _rules.acquire(terms, wait, self._timeout, len(self._coordinators))
        return Guard(self, self._run(ask))

    def _release(self, hold: Hold) -> Outcome:
        outcome: Outcome = self._run(
            _rules.release(hold, self._timeout, len(self._coordinators))
        )
        self._holds.pop(hold, None)
        return outcome

    def _give_back(self) -> None:
        """Releases what is held, and what an interrupted release has left, for about `timeout`."""
        ends = now() + self._timeout
        for hold, wake in list(self._holds.items()):
            if (hold.lose() or hold.released) and now() < ends:
                self._release(hold)
            wake.set()
        self._holds.clear()

    def _keep(self, hold: Hold, wake: threading.Event, lost: threading.Event) -> None:
        def tell(danger: Danger) -> None:
            if hold.terms.on_danger:
                threading.Thread(target=hold.terms.on_danger, args=(danger,), daemon=True).start()

        try:
            self._run(_rules.keep(hold, self._timeout, len(self._coordinators)), wake.wait, tell)
        except ValueError:
            hold.lose()  # the client is closed
        if hold.lost:
            lost.set()
        if hold.lost or hold.dropped:
            self._holds.pop(hold, None)


class Lock:
    """A lock and the terms to acquire it."""

    def __init__(self, client: Client, terms: Terms, wait: Optional[float]) -> None:
        self._client = client
        self._terms = terms
        self._wait = wait
        self._entered: Optional[Guard] = None

    def _in_mode(
        self,
        mode: lock_pb2.LockMode,
        permits: int = 0,
        capacity: int = 0,
        preferred: bool = False,
    ) -> Lock:
        terms = replace(
            self._terms, mode=mode, permits=permits, capacity=capacity, preferred=preferred
        )
        return Lock(self._client, terms, self._wait)

    def acquire(self) -> Guard:
        """Waits for the lock. :class:`NotAcquired` if ``wait`` is over."""
        return self._client._acquire(self._terms, self._wait)

    def try_acquire(self) -> Optional[Guard]:
        """Asks once. None: another holder has the lock."""
        try:
            return self._client._acquire(self._terms, 0.0)
        except NotAcquired:
            return None

    def __enter__(self) -> Guard:
        if self._entered:
            raise RuntimeError("this Lock is in a `with` already: call Client.lock again")
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


class Guard:
    """A held lock: renewed in the background until it is released, lost, or garbage."""

    def __init__(self, client: Client, hold: Hold) -> None:
        self._client = client
        self._hold = hold
        self._wake = wake = threading.Event()
        self._lost = threading.Event()
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
        """Whether the lock is held now, by the clock. False in a forked process."""
        return self._hold.is_held()

    @property
    def remaining(self) -> float:
        """The rest of the lease in seconds, counted from before the request was sent."""
        return max(0.0, self._hold.deadline - now()) if self.held else 0.0

    def check(self) -> None:
        """Raises :class:`LockLost` if the lock is not held any more."""
        if not self.held:
            raise LockLost("the lock is no longer held")

    def wait_lost(self, timeout: Optional[float] = None) -> bool:
        """Waits until the lock is lost. False if ``timeout`` is over; never true after a release."""
        return self._lost.wait(timeout)

    def downgrade(self) -> None:
        """Makes a writer a reader: stop writing before. The token stays. :class:`LockLost` if it is lost."""
        client = self._client
        client._run(_rules.downgrade(self._hold, client._timeout, len(client._coordinators)))

    def release(self) -> Outcome:
        """Releases the lock. A repeat, or a lost lock, is ``Outcome.LOST``."""
        ended = self._hold.end()
        self._wake.set()
        return self._client._release(self._hold) if ended else Outcome.LOST

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Releases. :class:`LockLost` if the block ended well, but not under the lock."""
        released = self._hold.released
        if self.release() is Outcome.LOST and not released and kind is None:
            raise LockLost("the lock was lost before the end of the block")


class Account:
    """An account of the counters. Amounts are in the smallest unit.

    Each call repeats itself after a failure, as long as the client's ``timeout`` allows.
    """

    def __init__(self, client: Client, account: counter_pb2.Account) -> None:
        self._client = client
        self._account = account

    def _run(self, method: str, request: Any) -> Any:
        client = self._client
        many = len(client._coordinators)
        rule = _rules.count("CounterService", method, request, client._timeout, many)
        return client._run(rule)

    def create(self, durability: str, segments: int = 0) -> None:
        """Creates it, or finds it with the same terms. Default: 4 segments.

        What an acknowledged change survives: "memory" (nothing: a shard that restarts may have forgotten the
        last changes, and says so), "disk" (a restart), or "replicas:N" (the loss of the shard).
        """
        self._run(*_requests.create(self._account, durability, segments))

    def deposit(self, request: RequestId, amount: int) -> None:
        """Adds an amount. A repeat of the request has no second effect."""
        self._run(*_requests.deposit(self._account, request, amount))

    def deduct(self, request: RequestId, amount: int) -> None:
        """Takes an amount. :class:`Insufficient` if the whole account has less."""
        self._run(*_requests.deduct(self._account, request, amount))

    def balance(self, exact: bool = False) -> Balance:
        """Its balance; with ``exact``, of one instant, which costs more."""
        return Balance.of(self._run(*_requests.balance(self._account, exact)))

    def reserve(self, request: RequestId, amount: int, deadline: float) -> Reservation:
        """Sets an amount aside until ``deadline``, in seconds since 1970: the same in each repeat."""
        answer = self._run(*_requests.reserve(self._account, request, amount, deadline))
        return Reservation(answer.state)

    def confirm(self, request: RequestId) -> Reservation:
        """Spends what was reserved by that request, unless it has ended before."""
        return Reservation((self._run(*_requests.confirm(self._account, request))).state)

    def cancel(self, request: RequestId) -> Reservation:
        """Gives back what was reserved by that request, unless it has ended before."""
        return Reservation((self._run(*_requests.cancel(self._account, request))).state)

    def transfer(self, request: RequestId, amount: int, to: str) -> None:
        """Moves an amount to another account of the namespace."""
        self._run(*_requests.transfer(self._account, request, amount, to))


class Latch:
    """A countdown latch: closed until as many distinct requests as were set have counted it down.

    It is used once: it never closes again. Calls repeat themselves as those of :class:`Account` do.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def _run(self, method: str, request: Any) -> Any:
        client = self._client
        many = len(client._coordinators)
        rule = _rules.count("LatchService", method, request, client._timeout, many)
        return client._run(rule)

    def set(self, count: int, durability: str) -> None:
        """Sets it, closed. To set it again to the same count has no effect. Durability: as of an account."""
        self._run(*_requests.set_latch(self._name, count, durability))

    def count_down(self, request: RequestId) -> None:
        """Counts down by one. A repeat of the request within 24 hours has no second effect."""
        self._run(*_requests.count_down(self._name, request))

    def remaining(self) -> int:
        """How often it is still to be counted down. 0: it is open."""
        return int((self._run(*_requests.get_latch(self._name))).remaining)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is open, for at most ``timeout`` seconds. Returns whether it is. It may be set
        meanwhile."""
        client = self._client
        many = len(client._coordinators)
        rule = _rules.wait_latch(self._name, timeout, client._timeout, many)
        return bool(client._run(rule))
