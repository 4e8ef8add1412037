"""What users give: keys, terms, ids of requests; and what they get: balances."""

from __future__ import annotations

import enum
import time
import uuid
from dataclasses import dataclass
from typing import Any, Optional, Tuple, Union

from ._durations import Duration, seconds
from .errors import InvalidInput
from .v1 import admin_pb2, counter_pb2, latch_pb2, lock_pb2


#: A key of a lock: 1 to 512 bytes. Text stands for its UTF-8.
Key = Union[str, bytes]


def key_bytes(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else key


@dataclass(frozen=True)
class RequestId:
    """The id of a change. Keep it: a repeat with the same id has no second effect."""

    #: The time of the request, in ms since 1970.
    created_at_ms: int
    #: No other request of the account has this name at that time. 1 to 128 bytes.
    name: str

    @classmethod
    def new(cls, name: Optional[str] = None) -> RequestId:
        """An id of now. The default for the name is random."""
        return cls(time.time_ns() // 1_000_000, name or uuid.uuid4().hex)

    def message(self) -> counter_pb2.RequestId:
        message = counter_pb2.RequestId(name=self.name)
        message.created_at.FromMilliseconds(self.created_at_ms)
        return message


@dataclass(frozen=True)
class Balance:
    """A balance, in the smallest unit."""

    #: The amount that can be spent, with the part that moves between segments.
    available: int
    #: The amount set aside in addition, by reservations and transfers.
    held: int
    #: How often a shard may have lost its last changes, and the account went on.
    losses: int
    #: The number of segments that are lost. Their amounts do not count.
    lost_segments: int
    #: Whether an amount that moved during the call counts twice. Never, if the balance is exact.
    counts_twice: bool

    @classmethod
    def of(cls, answer: counter_pb2.GetBalanceResponse) -> Balance:
        return cls(
            answer.available,
            answer.held,
            answer.losses,
            answer.lost_segments,
            answer.counts_twice,
        )


class Reservation(enum.Enum):
    """The state of a reservation."""

    #: The amount is set aside.
    HELD = counter_pb2.RESERVATION_STATE_HELD
    #: The amount was spent.
    CONFIRMED = counter_pb2.RESERVATION_STATE_CONFIRMED
    #: The amount was given back.
    CANCELLED = counter_pb2.RESERVATION_STATE_CANCELLED
    #: The amount came back at the deadline.
    EXPIRED = counter_pb2.RESERVATION_STATE_EXPIRED


Request = Tuple[str, Any]


def inspect(key: Key, namespace: str) -> Request:
    return "Inspect", lock_pb2.InspectRequest(namespace=namespace, key=key_bytes(key))


def force_release(key: Key, reason: str, namespace: str) -> Request:
    message = admin_pb2.ForceReleaseRequest(
        namespace=namespace, key=key_bytes(key), reason=reason
    )
    return "ForceRelease", message


def create(
    account: counter_pb2.Account,
    durability: str,
    segments: int,
    idempotency_for: Optional[Duration],
    idempotency_at_least: Optional[Duration],
    skew: Optional[Duration],
    ids_max: int,
) -> Request:
    kind, replicas = _survives(durability)
    message = counter_pb2.CreateAccountRequest(
        account=account, segments=segments, durability=kind, replicas=replicas, ids_max=ids_max
    )
    set_duration(message.idempotency_for, seconds("idempotency_for", idempotency_for))
    set_duration(
        message.idempotency_at_least, seconds("idempotency_at_least", idempotency_at_least)
    )
    set_duration(message.skew, seconds("skew", skew))
    return "CreateAccount", message


def set_duration(field: Any, length: Optional[float]) -> None:
    """Sets the field, even to zero, unless the length is None."""
    if length is not None:
        field.FromNanoseconds(round(length * 1e9))
        field.SetInParent()


def _survives(durability: str) -> Tuple[counter_pb2.Durability, int]:
    """The durability, and its number of replicas."""
    kind, _, count = durability.partition(":")
    if kind == "replicas" and count.isdecimal():
        return counter_pb2.DURABILITY_REPLICAS, int(count)
    if durability == "memory":
        return counter_pb2.DURABILITY_MEMORY, 0
    if durability == "disk":
        return counter_pb2.DURABILITY_DISK, 0
    raise InvalidInput.of("durability", repr(durability), '"memory", "disk" or "replicas:N"')


def deposit(account: counter_pb2.Account, request: RequestId, amount: int) -> Request:
    message = counter_pb2.DepositRequest(account=account, id=request.message(), amount=amount)
    return "Deposit", message


def deduct(account: counter_pb2.Account, request: RequestId, amount: int) -> Request:
    message = counter_pb2.DeductRequest(account=account, id=request.message(), amount=amount)
    return "Deduct", message


def balance(account: counter_pb2.Account, exact: bool) -> Request:
    return "GetBalance", counter_pb2.GetBalanceRequest(account=account, exact=exact)


def reserve(
    account: counter_pb2.Account, request: RequestId, amount: int, deadline: float
) -> Request:
    message = counter_pb2.ReserveRequest(account=account, id=request.message(), amount=amount)
    message.deadline.FromMilliseconds(round(deadline * 1000))
    return "Reserve", message


def confirm(account: counter_pb2.Account, request: RequestId) -> Request:
    return "Confirm", counter_pb2.ConfirmRequest(account=account, id=request.message())


def cancel(account: counter_pb2.Account, request: RequestId) -> Request:
    return "Cancel", counter_pb2.CancelRequest(account=account, id=request.message())


def transfer(account: counter_pb2.Account, request: RequestId, amount: int, to: str) -> Request:
    message = counter_pb2.TransferRequest(
        account=account, id=request.message(), amount=amount, to=to
    )
    return "Transfer", message


def get_account(account: counter_pb2.Account) -> Request:
    return "GetAccount", counter_pb2.GetAccountRequest(account=account)


def resegment(account: counter_pb2.Account, segments: int) -> Request:
    message = counter_pb2.ResegmentAccountRequest(account=account, segments=segments)
    return "ResegmentAccount", message


def close_account(account: counter_pb2.Account) -> Request:
    return "CloseAccount", counter_pb2.CloseAccountRequest(account=account)


def set_latch(name: str, count: int, durability: str) -> Request:
    kind, replicas = _survives(durability)
    message = latch_pb2.SetLatchRequest(
        name=name, count=count, durability=kind, replicas=replicas
    )
    return "SetLatch", message


def count_down(name: str, request: RequestId) -> Request:
    return "CountDownLatch", latch_pb2.CountDownLatchRequest(name=name, id=request.message())


def get_latch(name: str) -> Request:
    return "GetLatch", latch_pb2.GetLatchRequest(name=name)
