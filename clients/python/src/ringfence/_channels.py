"""Channels to the coordinators, and the one in use."""

from __future__ import annotations

import os
import socket
from typing import Any, Callable, Optional, Sequence, Union

from .errors import RingfenceError
from .v1 import counter_pb2, latch_pb2, lock_pb2

_ANSWERS: dict[tuple[str, str], Any] = {
    ("LockService", "Acquire"): lock_pb2.AcquireResponse,
    ("LockService", "Renew"): lock_pb2.RenewResponse,
    ("LockService", "Release"): lock_pb2.ReleaseResponse,
    ("LockService", "Downgrade"): lock_pb2.DowngradeResponse,
    ("CounterService", "CreateAccount"): counter_pb2.CreateAccountResponse,
    ("CounterService", "Deposit"): counter_pb2.DepositResponse,
    ("CounterService", "Deduct"): counter_pb2.DeductResponse,
    ("CounterService", "GetBalance"): counter_pb2.GetBalanceResponse,
    ("CounterService", "Reserve"): counter_pb2.ReserveResponse,
    ("CounterService", "Confirm"): counter_pb2.ConfirmResponse,
    ("CounterService", "Cancel"): counter_pb2.CancelResponse,
    ("CounterService", "Transfer"): counter_pb2.TransferResponse,
    ("LatchService", "SetLatch"): latch_pb2.SetLatchResponse,
    ("LatchService", "CountDownLatch"): latch_pb2.CountDownLatchResponse,
    ("LatchService", "GetLatch"): latch_pb2.GetLatchResponse,
    ("LatchService", "WaitLatch"): latch_pb2.WaitLatchResponse,
}


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


class Coordinators:
    """The calls of each coordinator. All locks of a client use the same coordinator."""

    def __init__(
        self,
        addresses: Union[str, Sequence[str]],
        connect: Callable[[str], Any],
        token: Optional[str],
    ) -> None:
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        if not listed:
            raise ValueError("addresses is empty, must have at least one coordinator")
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.channels = [connect(address) for address in listed]
        self._calls = [
            {
                (service, method): channel.unary_unary(
                    f"/ringfence.v1.{service}/{method}",
                    request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=answer.FromString,
                )
                for (service, method), answer in _ANSWERS.items()
            }
            for channel in self.channels
        ]
        self._current = 0
        self.process = os.getpid()

    def __len__(self) -> int:
        return len(self.channels)

    def pick(self, service: str, method: str) -> tuple[int, Any]:
        """The coordinator in use, and its call. Raises an error in a fork, which has no connections."""
        if os.getpid() != self.process:
            raise RingfenceError(
                f"the client is of process {self.process}, and this is a fork of it: "
                "create a client in each process",
                reason="INVALID_INPUT",
                may_have_taken_effect=False,
            )
        index = self._current
        return index, self._calls[index][service, method]

    def move_on(self, failed: int) -> None:
        """Uses the next coordinator, unless another call has moved on already."""
        if self._current == failed:
            self._current = (failed + 1) % len(self.channels)


def default_label() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"
