"""The client for asyncio. Each held lock has a task that renews it.

Every call may be cancelled. A cancelled acquisition is taken back in the background; a grant that
is on its way at that moment ends with its lease at the latest.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import weakref
from dataclasses import replace
from types import TracebackType
from typing import Any, Awaitable, Callable, Coroutine, Optional, Sequence, TypeVar, Union

import grpc
import grpc.aio

from . import _channels, _requests, _rules
from ._clock import now
from ._requests import Balance, RequestId, Reservation, key_bytes
from ._rules import Call, Danger, Hold, Outcome, Pause, Rule, Side, Terms, preferred_side
from .errors import LockLost, NotAcquired, RingfenceError, from_rpc
from .v1 import counter_pb2, lock_pb2

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, but SIGINT and SIGTERM end the process in order: others get its locks at once.

    The signal cancels ``main``, whose ``async with`` blocks release the locks. Then ``SystemExit`` is
    raised, with the exit code of a shell: 128 + the signal.
    """
    came: list[int] = []

    async def until_a_signal() -> T:
        task = asyncio.current_task()

        def stop(number: int) -> None:
            if task and not came:  # once is enough
                task.cancel()
            came.append(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await main

    try:
        return asyncio.run(until_a_signal())
    except asyncio.CancelledError:
        if came:
            sys.exit(128 + came[0])
        raise


class Client:
    """A connection to the coordinators, for the tasks of one event loop.

    The parameters are those of :class:`ringfence.Client`.
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

        def connect(address: str) -> grpc.aio.Channel:
            if credentials is None:
                return grpc.aio.insecure_channel(address, options)
            return grpc.aio.secure_channel(address, credentials, options)

        self._coordinators = _channels.Coordinators(addresses, connect, token)
        self._label = _channels.default_label() if label is None else label
        self._timeout = timeout
        # The loop has weak references only.
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Calls whose callers wait for a lock.
        self._waits: set[asyncio.Task[Any]] = set()
        self._keepers: set[asyncio.Task[Any]] = set()
        #: The locks to give back when it is closed.
        self._holds: set[Hold] = set()

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
        """A lock, for one ``async with`` at a time: see :meth:`ringfence.Client.lock`.

        ``on_danger`` is called by the loop, and must not block.
        """
        terms = Terms(key_bytes(key), namespace, self._label, lease, hold_for, on_danger)
        return Lock(self, terms, wait)

    def semaphore(
        self, key: Union[str, bytes], capacity: int, *, permits: int = 1, **terms: Any
    ) -> Lock:
        """Permits of a semaphore: see :meth:`ringfence.Client.semaphore`."""
        return self.lock(key, **terms)._in_mode(
            lock_pb2.LOCK_MODE_PERMITS, permits=permits, capacity=capacity
        )

    def rw_lock(
        self, key: Union[str, bytes], *, prefer: Optional[Side] = None, **terms: Any
    ) -> RwLock:
        """A read-write lock: see :meth:`ringfence.Client.rw_lock`."""
        return RwLock(self.lock(key, **terms), prefer)

    def account(self, name: str, *, namespace: str = "") -> Account:
        """An account of the counters. Nothing is sent yet."""
        return Account(self, counter_pb2.Account(namespace=namespace, name=name))

    def latch(self, name: str) -> Latch:
        """A countdown latch. Nothing is sent yet."""
        return Latch(self, name)

    async def close(self) -> None:
        """Gives held locks back, which are lost then, and closes the connections. Waits for a lock end with an error."""
        releases = [self._release(hold) for hold in self._holds if hold.lose()]
        ended = [*self._keepers, *self._waits]
        for task in ended:
            task.cancel()
        # Releases under way, too. Each ends within a few `timeout`.
        await asyncio.gather(*self._tasks, *ended, *releases, return_exceptions=True)
        for channel in self._coordinators.channels:
            await channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _spawn(self, work: Any, tasks: set[asyncio.Task[Any]]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _run(
        self,
        rule: Rule,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        tell: Optional[Callable[[Danger], object]] = None,
    ) -> Any:
        """Carries out the steps of a rule, and returns its result."""
        answer: Any = None
        error: Optional[RingfenceError] = None
        while True:
            try:
                step = rule.throw(error) if error else rule.send(answer)
            except StopIteration as end:
                return end.value
            answer = error = None
            if isinstance(step, Pause):
                await pause(step.seconds)
            elif isinstance(step, Call):
                try:
                    answer = await self._call(step)
                except RingfenceError as failure:
                    error = failure
            elif tell:
                tell(step)

    async def _call(self, step: Call) -> Any:
        index, call = self._coordinators.pick(step.service, step.method)
        metadata = self._coordinators.metadata
        sent = call(
            step.request, timeout=step.timeout, metadata=metadata, wait_for_ready=step.reconnects
        )
        reply = self._spawn(_reply(sent), self._waits if step.undo else self._tasks)
        try:
            return await asyncio.shield(reply)
        except grpc.RpcError as failure:
            error = from_rpc(failure)
            stays = step.stay and error.may_have_taken_effect
            if step.move_on or (error.elsewhere and not stays):
                self._coordinators.move_on(index)
            raise error from None
        except BaseException:  # the task is cancelled
            if reply.cancelled():
                raise RingfenceError("the client was closed meanwhile") from None
            self._spawn(self._give_up(step, reply), self._tasks)
            raise

    async def _give_up(self, step: Call, reply: asyncio.Task[Any]) -> None:
        if step.undo:
            await asyncio.wait({reply}, timeout=_rules.GIVE_UP_AFTER)
        reply.cancel()
        await asyncio.wait({reply})
        answered = not reply.cancelled() and not reply.exception()
        undo = step.undo and step.undo(reply.result() if answered else None)
        if undo:
            await self._run(undo)

    async def _acquire(self, terms: Terms, wait: Optional[float]) -> Guard:
        ask = _rules.acquire(terms, wait, self._timeout, len(self._coordinators))
        return Guard(self, await self._run(ask))

    async def _release(self, hold: Hold) -> Outcome:
        rule = _rules.release(hold, self._timeout, len(self._coordinators))
        # Goes on if the task is cancelled meanwhile.
        outcome: Outcome = await asyncio.shield(self._spawn(self._run(rule), self._tasks))
        return outcome

    async def _keep(self, hold: Hold, wake: asyncio.Event) -> None:
        async def pause(seconds: float) -> None:
            try:
                await asyncio.wait_for(wake.wait(), seconds)
            except asyncio.TimeoutError:
                pass

        def tell(danger: Danger) -> None:
            if hold.terms.on_danger:
                asyncio.get_running_loop().call_soon(hold.terms.on_danger, danger)

        await self._run(_rules.keep(hold, self._timeout, len(self._coordinators)), pause, tell)


async def _reply(sent: Any) -> Any:
    return await sent


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

    async def acquire(self) -> Guard:
        """Waits for the lock. :class:`ringfence.NotAcquired` if ``wait`` is over."""
        return await self._client._acquire(self._terms, self._wait)

    async def try_acquire(self) -> Optional[Guard]:
        """Asks once. None: another holder has the lock."""
        try:
            return await self._client._acquire(self._terms, 0.0)
        except NotAcquired:
            return None

    async def __aenter__(self) -> Guard:
        if self._entered:
            raise RuntimeError("this Lock is in an `async with` already: call Client.lock again")
        self._entered = await self.acquire()
        return self._entered

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        guard, self._entered = self._entered, None
        if guard:
            await guard.__aexit__(kind, error, trace)


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
        self._wake = wake = asyncio.Event()
        self._lost = lost = asyncio.Event()
        loop = asyncio.get_running_loop()

        client._holds.add(hold)

        def ended(_: object) -> None:
            client._holds.discard(hold)
            hold.lose()  # unless it is released: nothing renews it any more
            if hold.lost:
                lost.set()

        client._spawn(client._keep(hold, wake), client._keepers).add_done_callback(ended)

        def drop() -> None:
            hold.dropped = True
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake.set)

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
        """Raises :class:`ringfence.LockLost` if the lock is not held any more."""
        if not self.held:
            raise LockLost("the lock is no longer held")

    async def lost(self) -> None:
        """Waits until the lock is lost. Never returns after a release."""
        await self._lost.wait()

    async def run_while_held(self, work: Awaitable[T]) -> T:
        """The result of `work`. :class:`ringfence.LockLost` once the lock is lost: `work` is cancelled."""
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise LockLost("the lock was lost during the work")
            self.check()
            return task.result()
        finally:
            lost.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def downgrade(self) -> None:
        """Makes a writer a reader: stop writing before. The token stays. :class:`ringfence.LockLost` if it is lost."""
        client = self._client
        await client._run(_rules.downgrade(self._hold, client._timeout, len(client._coordinators)))

    async def release(self) -> Outcome:
        """Releases the lock. A repeat, or a lost lock, is ``Outcome.LOST``."""
        ended = self._hold.end()
        self._wake.set()
        return await self._client._release(self._hold) if ended else Outcome.LOST

    async def __aenter__(self) -> Guard:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Releases. :class:`ringfence.LockLost` if the block ended well, but not under the lock."""
        released = self._hold.released
        if await self.release() is Outcome.LOST and not released and kind is None:
            raise LockLost("the lock was lost before the end of the block")


class Account:
    """An account of the counters: see :class:`ringfence.Account`."""

    def __init__(self, client: Client, account: counter_pb2.Account) -> None:
        self._client = client
        self._account = account

    async def _run(self, method: str, request: Any) -> Any:
        client = self._client
        many = len(client._coordinators)
        rule = _rules.count("CounterService", method, request, client._timeout, many)
        return await client._run(rule)

    async def create(self, durability: str, segments: int = 0) -> None:
        """Creates it, or finds it with the same terms. Default: 4 segments.

        What an acknowledged change survives: "memory" (nothing: a shard that restarts may have forgotten the
        last changes, and says so), "disk" (a restart), or "replicas:N" (the loss of the shard).
        """
        await self._run(*_requests.create(self._account, durability, segments))

    async def deposit(self, request: RequestId, amount: int) -> None:
        """Adds an amount. A repeat of the request has no second effect."""
        await self._run(*_requests.deposit(self._account, request, amount))

    async def deduct(self, request: RequestId, amount: int) -> None:
        """Takes an amount. :class:`ringfence.Insufficient` if the whole account has less."""
        await self._run(*_requests.deduct(self._account, request, amount))

    async def balance(self, exact: bool = False) -> Balance:
        """Its balance; with ``exact``, of one instant, which costs more."""
        return Balance.of(await self._run(*_requests.balance(self._account, exact)))

    async def reserve(self, request: RequestId, amount: int, deadline: float) -> Reservation:
        """Sets an amount aside until ``deadline``, in seconds since 1970: the same in each repeat."""
        answer = await self._run(*_requests.reserve(self._account, request, amount, deadline))
        return Reservation(answer.state)

    async def confirm(self, request: RequestId) -> Reservation:
        """Spends what was reserved by that request, unless it has ended before."""
        return Reservation((await self._run(*_requests.confirm(self._account, request))).state)

    async def cancel(self, request: RequestId) -> Reservation:
        """Gives back what was reserved by that request, unless it has ended before."""
        return Reservation((await self._run(*_requests.cancel(self._account, request))).state)

    async def transfer(self, request: RequestId, amount: int, to: str) -> None:
        """Moves an amount to another account of the namespace."""
        await self._run(*_requests.transfer(self._account, request, amount, to))


class Latch:
    """A countdown latch: see :class:`ringfence.Latch`."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def _run(self, method: str, request: Any) -> Any:
        client = self._client
        many = len(client._coordinators)
        rule = _rules.count("LatchService", method, request, client._timeout, many)
        return await client._run(rule)

    async def set(self, count: int, durability: str) -> None:
        """Sets it, closed. To set it again to the same count has no effect. Durability: as of an account."""
        await self._run(*_requests.set_latch(self._name, count, durability))

    async def count_down(self, request: RequestId) -> None:
        """Counts down by one. A repeat of the request within 24 hours has no second effect."""
        await self._run(*_requests.count_down(self._name, request))

    async def remaining(self) -> int:
        """How often it is still to be counted down. 0: it is open."""
        return int((await self._run(*_requests.get_latch(self._name))).remaining)

    async def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it is open, for at most ``timeout`` seconds. Returns whether it is. It may be set
        meanwhile."""
        client = self._client
        many = len(client._coordinators)
        rule = _rules.wait_latch(self._name, timeout, client._timeout, many)
        return bool(await client._run(rule))
