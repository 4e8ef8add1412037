"""The client for asyncio itself, and the end of its process."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import grpc
import grpc.aio

from .. import _channels, _requests, _rules
from .._durations import Duration, seconds, timeout_seconds
from .._requests import Change, Changed, Key, key_bytes
from .._rules import Call, Danger, Hold, Outcome, Pause, Rule, Side, Terms
from .._views import AccountListing, HeldLock, Holder, ListedAccount, Listing, LockState
from ..errors import RingfenceError, from_rpc
from ..v1 import counter_pb2, lock_pb2
from ._counters import Account, Latch
from ._locks import Election, Lock, MultiLock, RwLock

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

    The parameters are those of :class:`ringfence.Client`. A function ``token`` must not block; it may be
    a coroutine function.
    """

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        *,
        token: Union[str, _channels.Token, None] = None,
        token_file: Union[str, os.PathLike[str], None] = None,
        credentials: Optional[grpc.ChannelCredentials] = None,
        label: Optional[str] = None,
        timeout: Duration = 5.0,
    ) -> None:
        self._timeout = timeout_seconds(timeout)
        self._token = _channels.token_of(token, token_file)
        options = _channels.options(self._timeout)

        def connect(target: str, more: Sequence[Tuple[str, str]]) -> grpc.aio.Channel:
            if credentials is None:
                return grpc.aio.insecure_channel(target, [*options, *more])
            return grpc.aio.secure_channel(target, credentials, [*options, *more])

        self._coordinators = _channels.Coordinators(addresses, connect)
        self._label = _channels.default_label() if label is None else label
        # The loop has weak references only.
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Calls whose callers wait for a lock.
        self._waits: set[asyncio.Task[Any]] = set()
        self._keepers: set[asyncio.Task[Any]] = set()
        #: The locks to give back when it is closed.
        self._holds: set[Hold] = set()

    def lock(
        self,
        key: Key,
        *,
        wait: Optional[Duration] = None,
        lease: Optional[Duration] = None,
        hold_for: Optional[Duration] = None,
        namespace: str = "",
        on_danger: Optional[Callable[[Danger], object]] = None,
    ) -> Lock:
        """A lock, for one ``async with`` at a time, or as a decorator: see :meth:`ringfence.Client.lock`.

        ``on_danger`` is called by the loop, and must not block.
        """
        terms = Terms(
            key_bytes(key),
            namespace,
            self._label,
            seconds("lease", lease),
            seconds("hold_for", hold_for),
            on_danger,
        )
        return Lock(self, terms, seconds("wait", wait))

    def semaphore(self, key: Key, capacity: int, *, permits: int = 1, **terms: Any) -> Lock:
        """Permits of a semaphore: see :meth:`ringfence.Client.semaphore`."""
        return self.lock(key, **terms)._in_mode(
            lock_pb2.LOCK_MODE_PERMITS, permits=permits, capacity=capacity
        )

    def rw_lock(self, key: Key, *, prefer: Optional[Side] = None, **terms: Any) -> RwLock:
        """A read-write lock: see :meth:`ringfence.Client.rw_lock`."""
        return RwLock(self.lock(key, **terms), prefer)

    def multi_lock(
        self, keys: Iterable[Key], *, wait: Optional[Duration] = None, **terms: Any
    ) -> MultiLock:
        """Locks of several keys, all or none: see :meth:`ringfence.Client.multi_lock`."""
        return MultiLock(self, keys, seconds("wait", wait), terms)

    def election(self, name: Key, **terms: Any) -> Election:
        """An election: see :meth:`ringfence.Client.election`."""
        lock = self.lock(name, namespace=_rules.ELECTION, **terms)
        return Election(self, lock._terms, lock._wait)

    async def inspect(self, key: Key, *, namespace: str = "") -> LockState:
        """The holders of a lock and its waiters."""
        return LockState.of(await self._ask("LockService", *_requests.inspect(key, namespace)))

    async def locks(self, prefix: Key = "", *, namespace: str = "") -> AsyncIterator[HeldLock]:
        """The held locks of all shards: see :meth:`ringfence.Client.locks`."""
        listing = Listing(key_bytes(prefix))
        request = lock_pb2.ListRequest(namespace=namespace)
        async for page in self._pages("LockService", "List", request):
            for lock in listing.page(page):
                yield lock
        listing.end()

    async def force_release(
        self, key: Key, reason: str, *, namespace: str = ""
    ) -> Tuple[Holder, ...]:
        """Takes a lock from all of its holders: see :meth:`ringfence.Client.force_release`."""
        request = _requests.force_release(key, reason, namespace)
        answer = await self._ask("AdminService", *request, repeatable=False)
        return tuple(map(Holder.of, answer.holders))

    def account(self, name: str, *, namespace: str = "") -> Account:
        """An account of the counters. Nothing is sent yet."""
        return Account(self, counter_pb2.Account(namespace=namespace, name=name))

    async def accounts(
        self,
        prefix: str = "",
        *,
        namespace: str = "",
        in_doubt: bool = False,
        lost: bool = False,
        held: bool = False,
        unfinished: bool = False,
    ) -> AsyncIterator[ListedAccount]:
        """The accounts of a namespace: see :meth:`ringfence.Client.accounts`."""
        request = _requests.accounts(prefix, namespace, in_doubt, lost, held, unfinished)
        listing = AccountListing()
        async for page in self._pages("CounterService", *request):
            for account in listing.page(page):
                yield account
        listing.end()

    async def change(self, changes: Iterable[Change]) -> List[Changed]:
        """Makes changes of any accounts: see :meth:`ringfence.Client.change`."""
        many = len(self._coordinators)
        made: List[Changed] = await self._run(_rules.change(list(changes), self._timeout, many))
        return made

    def latch(self, name: str) -> Latch:
        """A countdown latch. Nothing is sent yet."""
        return Latch(self, name)

    async def close(self) -> None:
        """Gives held locks back, which are lost then, and closes the connections. Waits for a lock end with an error."""
        for hold in self._holds:
            if hold.close():
                self._release(hold)
        ended = [*self._keepers, *self._waits]
        for task in ended:
            task.cancel()
        # Releases under way, too. Each ends within a few `timeout`.
        await asyncio.gather(*self._tasks, *ended, return_exceptions=True)
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

    async def _ask(
        self,
        service: str,
        method: str,
        request: Any,
        within: Optional[float] = None,
        repeatable: bool = True,
    ) -> Any:
        """Makes a call. ``within``: of long work, in seconds, instead of the client's ``timeout``."""
        many = 1 if within else len(self._coordinators)
        limit = within or self._timeout
        return await self._run(_rules.ask(service, method, request, limit, many, repeatable))

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
        for channel in self._coordinators.unused():
            self._spawn(channel.close(), self._tasks)
        place, call = self._coordinators.pick(step.service, step.method)
        metadata = await self._metadata()
        sent = call(
            step.request, timeout=step.timeout, metadata=metadata, wait_for_ready=step.reconnects
        )
        reply = self._spawn(_reply(sent), self._waits if step.undo else self._tasks)
        try:
            answer = await asyncio.shield(reply)
            self._coordinators.answers(place, answer)
            return answer
        except grpc.RpcError as failure:
            error = from_rpc(failure)
            self._coordinators.failed(place, error, step.move_on, step.stay)
            raise error from None
        except BaseException:  # the task is cancelled
            if reply.cancelled():
                raise RingfenceError("the client was closed meanwhile") from None
            self._spawn(self._give_up(step, reply), self._tasks)
            raise

    async def _pages(self, service: str, method: str, request: Any) -> AsyncIterator[Any]:
        """A list. Until its first page has come, it begins again at the next coordinator."""
        for others in reversed(range(len(self._coordinators))):
            place, call = self._coordinators.pick(service, method)
            pages = call(request, metadata=await self._metadata())
            try:
                async for page in pages:
                    others = 0
                    yield page
                return
            except grpc.RpcError as failure:
                error = from_rpc(failure)
                self._coordinators.failed(place, error)
                if not (others and error.retryable):
                    raise error from None
            finally:
                pages.cancel()

    async def _metadata(self) -> Sequence[Tuple[str, str]]:
        if self._token is None:
            return []
        with _channels.token_errors():
            token = self._token()
            return _channels.headers(await token if inspect.isawaitable(token) else token)

    async def _give_up(self, step: Call, reply: asyncio.Task[Any]) -> None:
        if step.undo:
            await asyncio.wait({reply}, timeout=_rules.GIVE_UP_AFTER)
        reply.cancel()
        await asyncio.wait({reply})
        answered = not reply.cancelled() and not reply.exception()
        undo = step.undo and step.undo(reply.result() if answered else None)
        if undo:
            await self._run(undo)

    async def _acquire(self, terms: Terms, wait: Optional[float]) -> Hold:
        ask = _rules.acquire(terms, wait, self._timeout, len(self._coordinators))
        hold: Hold = await self._run(ask)
        return hold

    def _release(self, hold: Hold) -> asyncio.Task[Outcome]:
        """A task, which goes on if its caller is cancelled."""
        rule = _rules.release(hold, self._timeout, len(self._coordinators))
        return self._spawn(self._run(rule), self._tasks)

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
