"""The blocking client itself, and the end of its process."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import weakref
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import grpc

from .. import _channels, _requests, _rules
from .._clock import now
from .._durations import Duration, seconds, timeout_seconds
from .._requests import Change, Changed, Key, key_bytes
from .._rules import Call, Danger, Hold, Outcome, Pause, Rule, Side, Terms
from .._views import AccountListing, HeldLock, Holder, ListedAccount, Listing, LockState
from ..errors import RingfenceError, from_rpc
from ..v1 import counter_pb2, lock_pb2
from ._counters import Account, Latch
from ._locks import Election, Lock, MultiLock, RwLock

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
        The bearer token of the caller, or a function that returns it: called for each call, in any thread,
        so it should be quick. If it fails, the call fails with :class:`Unauthenticated`.
    ``token_file``
        A file with the token, read for each call: the next one has a token that was rotated. While the file
        is missing or empty, the last token stays.
    ``credentials``
        ``grpc.ssl_channel_credentials(…)`` for TLS. Default: without TLS.
    ``label``
        The name of the holder that other callers see. Default: host name and process id.
    ``timeout``
        How long to wait for an answer, in addition to a wait for a lock: a ``timedelta``, or seconds.
        0.001 s to 24 h.

    A fork does not inherit a client: create it afterwards, in each process. When the process ends in
    order, it gives held locks back.
    """

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        *,
        token: Union[str, Callable[[], str], None] = None,
        token_file: Union[str, os.PathLike[str], None] = None,
        credentials: Optional[grpc.ChannelCredentials] = None,
        label: Optional[str] = None,
        timeout: Duration = 5.0,
    ) -> None:
        self._timeout = timeout_seconds(timeout)
        self._token = _channels.token_of(token, token_file)
        options = _channels.options(self._timeout)

        def connect(target: str, more: Sequence[Tuple[str, str]]) -> grpc.Channel:
            if credentials is None:
                return grpc.insecure_channel(target, [*options, *more])
            return grpc.secure_channel(target, credentials, [*options, *more])

        self._coordinators = _channels.Coordinators(addresses, connect)
        self._label = _channels.default_label() if label is None else label
        #: The locks to give back at the end, and what wakes their threads.
        self._holds: dict[Hold, threading.Event] = {}
        _clients.add(self)

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
        """A lock, for one ``with`` at a time, or as a decorator. Nothing is sent yet.

        Durations are of type ``timedelta``, or in seconds.

        ``key``
            1 to 512 bytes. Text stands for its UTF-8.
        ``wait``
            The longest time to wait for it. Default: no limit.
        ``lease``
            The time until it is free again if this process disappears. It is renewed every third of
            it. At least 0.1 s. Default: the longest that the coordinators allow.
        ``hold_for``
            The longest time to hold it: renewals do not extend it. At least 0.1 s. Default: no limit.
        ``on_danger``
            Called in a thread of its own when a third of the lease is left, because renewals fail or
            ``hold_for`` ends.
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

    def rw_lock(self, key: Key, *, prefer: Optional[Side] = None, **terms: Any) -> RwLock:
        """A read-write lock: many readers, or one writer.

        ``prefer``
            ``"readers"`` or ``"writers"``: requests of that side go before all waiters that are not
            preferred, and in their own order. The other side may wait as long as they keep coming. Let
            all users of a key prefer the same side. Default: all are served in the order of arrival.
        ``terms``
            As in :meth:`lock`.
        """
        return RwLock(self.lock(key, **terms), prefer)

    def multi_lock(
        self, keys: Iterable[Key], *, wait: Optional[Duration] = None, **terms: Any
    ) -> MultiLock:
        """Locks of 1 to 64 different keys, to be held together or not at all. Nothing is sent yet.

        They are acquired one after the other, in the order of their keys, which is the same in all
        processes: no two of them wait for each other. The order of the Rust client is another one: set a
        ``wait`` where both acquire the same keys. If one is lost during the wait for another, the end of
        that wait is :class:`LockLost`, and none is held.

        ``wait``
            The longest time to wait for all of them together. Default: no limit.
        ``terms``
            As in :meth:`lock`, for each of them.
        """
        return MultiLock(self, keys, seconds("wait", wait), terms)

    def election(self, name: Key, **terms: Any) -> Election:
        """An election: its leader is the holder of the lock of that name in the namespace ``election``.

        ``terms``
            As in :meth:`lock`. After a crash of the leader, the next one is elected when the lease ends.
        """
        lock = self.lock(name, namespace=_rules.ELECTION, **terms)
        return Election(self, lock._terms, lock._wait)

    def inspect(self, key: Key, *, namespace: str = "") -> LockState:
        """The holders of a lock and its waiters."""
        return LockState.of(self._ask("LockService", *_requests.inspect(key, namespace)))

    def locks(self, prefix: Key = "", *, namespace: str = "") -> Iterator[HeldLock]:
        """The held locks of all shards, in no order. Nothing is sent before the first is asked for.

        It is not a snapshot: a lock that is held all the time comes at least once. The coordinator sends
        all locks of the namespace, and the client leaves out those without the prefix. If a shard could not
        be read to its end, the iterator ends with :class:`ShardUnavailable`. Needs the role ``read`` of the
        whole namespace.

        ``prefix``
            The beginning of their keys. Default: all keys.
        ``namespace``
            Default: all namespaces.
        """
        listing = Listing(key_bytes(prefix))
        request = lock_pb2.ListRequest(namespace=namespace)
        for page in self._pages("LockService", "List", request):
            yield from listing.page(page)
        listing.end()

    def force_release(self, key: Key, reason: str, *, namespace: str = "") -> Tuple[Holder, ...]:
        """Takes a lock from all of its holders, and returns them. Needs the role ``force_release``.

        The next token is greater, so a resource that checks tokens refuses the former holders. If an
        answer is lost, it is not repeated, because a repeat could take the lock from the next holder:
        see ``may_have_taken_effect`` of the error.

        ``reason``
            For the log of the coordinator: 1 to 1,024 bytes.
        """
        request = _requests.force_release(key, reason, namespace)
        answer = self._ask("AdminService", *request, repeatable=False)
        return tuple(map(Holder.of, answer.holders))

    def account(self, name: str, *, namespace: str = "") -> Account:
        """An account of the counters. Nothing is sent yet."""
        return Account(self, counter_pb2.Account(namespace=namespace, name=name))

    def accounts(
        self,
        prefix: str = "",
        *,
        namespace: str = "",
        in_doubt: bool = False,
        lost: bool = False,
        held: bool = False,
        unfinished: bool = False,
    ) -> Iterator[ListedAccount]:
        """The accounts of a namespace, in no order. Nothing is sent before the first is asked for.

        It is not a snapshot: an account that exists all the time comes at least once. With ``in_doubt``, ``lost``,
        ``held`` or ``unfinished``, those come that have a segment in doubt, a lost one, money set aside, or a transfer
        that is not finished, and those that could not be read. If a shard could not be read to its end, the iterator ends with :class:`ringfence.ShardUnavailable`. Needs
        the role ``read`` of the whole namespace.
        """
        request = _requests.accounts(prefix, namespace, in_doubt, lost, held, unfinished)
        listing = AccountListing()
        for page in self._pages("CounterService", *request):
            yield from listing.page(page)
        listing.end()

    def change(self, changes: Iterable[Change]) -> List[Changed]:
        """Makes changes of any accounts, and returns an answer for each, in the same order.

        They are made at the same time, in no order, and one that fails fails alone: its answer has the error, and the
        method raises none. A call to the coordinator has up to 1,000 of them. Those that a repeat may help are repeated
        as long as ``timeout`` allows.
        """
        many = len(self._coordinators)
        made: List[Changed] = self._run(_rules.change(list(changes), self._timeout, many))
        return made

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

    def _ask(
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
        return self._run(_rules.ask(service, method, request, limit, many, repeatable))

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
        for channel in self._coordinators.unused():
            channel.close()
        place, call = self._coordinators.pick(step.service, step.method)
        metadata = self._metadata()
        sent = call.future(step.request, step.timeout, metadata, wait_for_ready=step.reconnects)
        try:
            answer = sent.result()
            self._coordinators.answers(place, answer)
            return answer
        except grpc.RpcError as failure:
            error = from_rpc(failure)
            self._coordinators.failed(place, error, step.move_on, step.stay)
            raise error from None
        except BaseException:  # KeyboardInterrupt, for example
            self._give_up(step, sent)
            raise

    def _pages(self, service: str, method: str, request: Any) -> Iterator[Any]:
        """A list. Until its first page has come, it begins again at the next coordinator."""
        for others in reversed(range(len(self._coordinators))):
            place, call = self._coordinators.pick(service, method)
            pages = call(request, metadata=self._metadata())
            try:
                for page in pages:
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

    def _metadata(self) -> Sequence[Tuple[str, str]]:
        if self._token is None:
            return []
        with _channels.token_errors():
            return _channels.headers(self._token())

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

    def _acquire(self, terms: Terms, wait: Optional[float]) -> Hold:
        ask = _rules.acquire(terms, wait, self._timeout, len(self._coordinators))
        hold: Hold = self._run(ask)
        return hold

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
            if (hold.close() or hold.released) and now() < ends:
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
