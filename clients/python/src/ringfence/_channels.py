"""Channels to the coordinators, and the one in use."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import pathlib
import socket
import threading
from typing import Any, Awaitable, Callable, Iterator, Optional, Sequence, Union

from ._clock import now
from .errors import InvalidInput, RingfenceError, Unauthenticated
from .v1 import admin_pb2, counter_pb2, latch_pb2, lock_pb2

_log = logging.getLogger("ringfence")

#: The bearer token of the next call.
Token = Callable[[], Union[str, Awaitable[str]]]

_ANSWERS: dict[tuple[str, str], Any] = {
    ("LockService", "Acquire"): lock_pb2.AcquireResponse,
    ("LockService", "Renew"): lock_pb2.RenewResponse,
    ("LockService", "Release"): lock_pb2.ReleaseResponse,
    ("LockService", "Downgrade"): lock_pb2.DowngradeResponse,
    ("LockService", "Inspect"): lock_pb2.InspectResponse,
    ("LockService", "List"): lock_pb2.ListResponse,
    ("AdminService", "ForceRelease"): admin_pb2.ForceReleaseResponse,
    ("CounterService", "CreateAccount"): counter_pb2.CreateAccountResponse,
    ("CounterService", "Deposit"): counter_pb2.DepositResponse,
    ("CounterService", "Deduct"): counter_pb2.DeductResponse,
    ("CounterService", "GetBalance"): counter_pb2.GetBalanceResponse,
    ("CounterService", "Reserve"): counter_pb2.ReserveResponse,
    ("CounterService", "Confirm"): counter_pb2.ConfirmResponse,
    ("CounterService", "Cancel"): counter_pb2.CancelResponse,
    ("CounterService", "Transfer"): counter_pb2.TransferResponse,
    ("CounterService", "BatchChange"): counter_pb2.BatchChangeResponse,
    ("CounterService", "Find"): counter_pb2.FindResponse,
    ("CounterService", "GetHistory"): counter_pb2.GetHistoryResponse,
    ("CounterService", "ListAccounts"): counter_pb2.ListAccountsResponse,
    ("CounterService", "GetAccount"): counter_pb2.GetAccountResponse,
    ("CounterService", "ResegmentAccount"): counter_pb2.ResegmentAccountResponse,
    ("CounterService", "LabelAccount"): counter_pb2.LabelAccountResponse,
    ("CounterService", "CloseAccount"): counter_pb2.CloseAccountResponse,
    ("CounterService", "DeleteAccount"): counter_pb2.DeleteAccountResponse,
    ("LatchService", "SetLatch"): latch_pb2.SetLatchResponse,
    ("LatchService", "CountDownLatch"): latch_pb2.CountDownLatchResponse,
    ("LatchService", "GetLatch"): latch_pb2.GetLatchResponse,
    ("LatchService", "WaitLatch"): latch_pb2.WaitLatchResponse,
}

#: The form of a bearer token.
_TEXT = "a line of printable ASCII"

#: Methods whose answers are streams.
_STREAMS = {"List", "ListAccounts"}


def options(timeout: float) -> Sequence[tuple[str, int]]:
    """Options of a channel: a silent coordinator is noticed, and a restarted one is used at once."""
    ms = int(timeout * 1000)
    return [
        ("grpc.keepalive_time_ms", ms),
        ("grpc.keepalive_timeout_ms", ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.ping_timeout_ms", ms),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", ms),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]


def token_of(
    token: Union[str, Token, None], token_file: Union[str, os.PathLike[str], None]
) -> Optional[Token]:
    """The bearer token of each call, from the arguments of a client."""
    if token_file is not None:
        if token is not None:
            raise InvalidInput.of("token_file", repr(os.fspath(token_file)), "unset beside token")
        return _TokenFile(pathlib.Path(token_file))
    if token is None or callable(token):
        return token
    fixed = token
    headers(fixed)
    return lambda: fixed


class _TokenFile:
    """Reads the file for each call. While it is missing or empty, as in a rotation, the last token stays."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._token = path.read_text().strip()
        if not self._token:
            raise InvalidInput.of("token_file", f"{str(path)!r}, which is empty", f"a file of {_TEXT}")
        headers(self._token)

    def __call__(self) -> str:
        with contextlib.suppress(OSError):
            self._token = self._path.read_text().strip() or self._token
        return self._token


@contextlib.contextmanager
def token_errors() -> Iterator[None]:
    """An error of the caller's `token` is one of the call, so that a renewal is repeated."""
    try:
        yield
    except Exception as error:
        raise Unauthenticated(
            f"there is no token for the call: {type(error).__name__}",
            reason="UNAUTHENTICATED",
            may_have_taken_effect=False,
        ) from error


def headers(token: object) -> Sequence[tuple[str, str]]:
    """The metadata of a call."""
    if not (isinstance(token, str) and token.isascii() and token.isprintable()):
        raise InvalidInput.of("token", f"a {type(token).__name__} that no header can have", _TEXT)
    return [("authorization", f"Bearer {token}")]


class Place:
    """A coordinator: at a name, or at one of the addresses of a name."""

    def __init__(self, name: str, address: Optional[str] = None) -> None:
        self.name = name
        self.address = address
        #: None: it was not used yet.
        self.channel: Any = None
        self._calls: dict[tuple[str, str], Any] = {}

    def call(self, connect: Connect, service: str, method: str) -> Any:
        if self.channel is None:
            self.channel = connect(*self._target())
            self._calls = {each: self._method(*each) for each in _ANSWERS}
        return self._calls[service, method]

    def _target(self) -> tuple[str, Sequence[tuple[str, str]]]:
        if self.address is None:
            return self.name, []
        # What the coordinator reads, and what its certificate has to be for, stays the name.
        host = self.name.rpartition(":")[0]
        names = [("grpc.default_authority", self.name), ("grpc.ssl_target_name_override", host)]
        return self.address, names

    def _method(self, service: str, method: str) -> Any:
        kind = "unary_stream" if method in _STREAMS else "unary_unary"
        return getattr(self.channel, kind)(
            f"/ringfence.v1.{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_ANSWERS[service, method].FromString,
        )

    def __str__(self) -> str:
        return self.name if self.address is None else f"{self.name} ({self.address})"


#: Makes a channel to a target, with more options.
Connect = Callable[[str, Sequence[tuple[str, str]]], Any]


class Coordinators:
    """The calls of each coordinator. All locks of a client use the same coordinator.

    A name may have several addresses, with a coordinator at each. They are looked up by a thread: at the
    first call, and whenever a coordinator fails.
    """

    def __init__(self, addresses: Union[str, Sequence[str]], connect: Connect) -> None:
        self._names = [addresses] if isinstance(addresses, str) else list(addresses)
        if not self._names:
            raise InvalidInput.of("addresses", "empty", "at least one coordinator")
        self._connect = connect
        self._places = [Place(name) for name in self._names]
        self._current = self._places[0]
        #: Places of former addresses, with the time at which they were replaced.
        self._replaced: list[tuple[float, Place]] = []
        self._looks_up = threading.Event()
        self._is_looked_up = False
        self._mutex = threading.Lock()
        #: Whether a coordinator has answered since the last move.
        self.answered = True
        self.process = os.getpid()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def channels(self) -> list[Any]:
        """Those that were made."""
        with self._mutex:
            places = {*self._places, self._current, *(place for _, place in self._replaced)}
        return [place.channel for place in places if place.channel is not None]

    def pick(self, service: str, method: str) -> tuple[Place, Any]:
        """The coordinator in use, and its call. Raises an error in a fork, which has no connections."""
        if os.getpid() != self.process:
            raise InvalidInput(
                f"the client is of process {self.process}, and this is a fork of it: "
                "create a client in each process",
                may_have_taken_effect=False,
            )
        if not self._is_looked_up:
            self._look_up()
        with self._mutex:
            place = self._current
            return place, place.call(self._connect, service, method)

    def failed(
        self, place: Place, error: RingfenceError, move_on: bool = False, stay: bool = False
    ) -> None:
        """Uses the next coordinator if this one failed, unless another call has moved on already.

        `move_on` and `stay` are those of the call.
        """
        stays = stay and error.may_have_taken_effect
        if move_on or (error.elsewhere and not stays):
            self._leave(place, error)
        else:
            self.answered = self.answered or not error.elsewhere

    def answers(self, place: Place, answer: Any) -> None:
        """A coordinator has answered. The next call uses another one if it stops."""
        self.answered = True
        if getattr(answer, "stopping", False):
            self._leave(place, RingfenceError("it stops", elsewhere=True))

    def _leave(self, place: Place, error: RingfenceError) -> None:
        if error.elsewhere:
            self._look_up()
        with self._mutex:
            self.answered = self.answered or not error.elsewhere
            places = self._places
            following = places[(places.index(place) + 1) % len(places) if place in places else 0]
            if self._current is not place or following is place:
                return
            self._current = following
            # While none of them answers, one warning is enough.
            level = logging.WARNING if error.elsewhere and self.answered else logging.DEBUG
            self.answered = not error.elsewhere
        _log.log(level, "coordinator %s failed, goes on at %s: %s", place, following, error)

    def unused(self) -> list[Any]:
        """Channels to close: their addresses were replaced a while ago."""
        if not self._replaced:
            return []
        with self._mutex:
            old = [each for each in self._replaced if now() > each[0] + _KEPT]
            self._replaced = [each for each in self._replaced if each not in old]
        return [place.channel for _, place in old if place.channel is not None]

    def _look_up(self) -> None:
        """Finds the addresses of all names, in a thread, unless one does."""
        self._is_looked_up = True
        if any(map(_host, self._names)) and not self._looks_up.is_set():
            self._looks_up.set()
            threading.Thread(target=self._find, daemon=True).start()

    def _find(self) -> None:
        found = {name: _addresses(name) for name in self._names}
        self._looks_up.clear()
        with self._mutex:
            known = {(place.name, place.address): place for place in self._places}
            places = [
                known.get((name, address)) or Place(name, address)
                for name, addresses in found.items()
                for address in addresses or [each.address for each in self._places if each.name == name]
            ]
            self._replaced += [(now(), each) for each in self._places if each not in places]
            self._places = places


#: Channels to addresses that a name has no longer are kept so long, in seconds.
_KEPT = 60.0


def _host(name: str) -> Optional[str]:
    """The host of `host:port`. None: it is an address, or a target of gRPC with a scheme."""
    host, _, port = name.rpartition(":")
    if not port.isdecimal() or ":" in host:
        return None
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return None
    return host


def _addresses(name: str) -> list[Optional[str]]:
    """Targets for the addresses of a name; without any, they are not known. `None` is the name itself."""
    host = _host(name)
    if host is None:
        return [None]
    port = int(name.rpartition(":")[2])
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    targets = {
        f"ipv6:[{place[0]}]:{port}" if family == socket.AF_INET6 else f"ipv4:{place[0]}:{port}"
        for family, _, _, _, place in found
    }
    return [None] if len(targets) < 2 else [*sorted(targets)]


def default_label() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"
