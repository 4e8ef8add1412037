"""Channels to the coordinators, and the one in use."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import socket
import threading
from typing import Any, Awaitable, Callable, Iterator, Optional, Sequence, Union

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
    ("CounterService", "GetAccount"): counter_pb2.GetAccountResponse,
    ("CounterService", "ResegmentAccount"): counter_pb2.ResegmentAccountResponse,
    ("CounterService", "CloseAccount"): counter_pb2.CloseAccountResponse,
    ("LatchService", "SetLatch"): latch_pb2.SetLatchResponse,
    ("LatchService", "CountDownLatch"): latch_pb2.CountDownLatchResponse,
    ("LatchService", "GetLatch"): latch_pb2.GetLatchResponse,
    ("LatchService", "WaitLatch"): latch_pb2.WaitLatchResponse,
}

#: The form of a bearer token.
_TEXT = "a line of printable ASCII"

#: Methods whose answers are streams.
_STREAMS = {"List"}


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


class Coordinators:
    """The calls of each coordinator. All locks of a client use the same coordinator."""

    def __init__(
        self, addresses: Union[str, Sequence[str]], connect: Callable[[str], Any]
    ) -> None:
        self._addresses = [addresses] if isinstance(addresses, str) else list(addresses)
        if not self._addresses:
            raise InvalidInput.of("addresses", "empty", "at least one coordinator")
        self.channels = [connect(address) for address in self._addresses]
        self._calls = [
            {
                (service, method): getattr(
                    channel, "unary_stream" if method in _STREAMS else "unary_unary"
                )(
                    f"/ringfence.v1.{service}/{method}",
                    request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=answer.FromString,
                )
                for (service, method), answer in _ANSWERS.items()
            }
            for channel in self.channels
        ]
        self._current = 0
        self._mutex = threading.Lock()
        #: Whether a coordinator has answered since the last move.
        self.answered = True
        self.process = os.getpid()

    def __len__(self) -> int:
        return len(self.channels)

    def pick(self, service: str, method: str) -> tuple[int, Any]:
        """The coordinator in use, and its call. Raises an error in a fork, which has no connections."""
        if os.getpid() != self.process:
            raise InvalidInput(
                f"the client is of process {self.process}, and this is a fork of it: "
                "create a client in each process",
                may_have_taken_effect=False,
            )
        index = self._current
        return index, self._calls[index][service, method]

    def failed(
        self, index: int, error: RingfenceError, move_on: bool = False, stay: bool = False
    ) -> None:
        """Uses the next coordinator if this one failed, unless another call has moved on already.

        `move_on` and `stay` are those of the call.
        """
        stays = stay and error.may_have_taken_effect
        with self._mutex:
            self.answered = self.answered or not error.elsewhere
            following = (index + 1) % len(self.channels)
            moves = move_on or (error.elsewhere and not stays)
            if not moves or self._current != index or following == index:
                return
            self._current = following
            # While none of them answers, one warning is enough.
            level = logging.WARNING if error.elsewhere and self.answered else logging.DEBUG
            self.answered = not error.elsewhere
        one, other = self._addresses[index], self._addresses[following]
        _log.log(level, "coordinator %s failed, goes on at %s: %s", one, other, error)


def default_label() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"
