"""What users give: keys, terms, ids of requests; and what they get: balances."""

from __future__ import annotations

import enum
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple, Union

from ._durations import Duration, seconds
from .errors import InvalidInput, RingfenceError, from_failure
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
    #: 16 bytes of your choice, or none: the log of the account keeps them with the effect of a deposit, deduction,
    #: reservation or transfer. They are not part of the id. Refused if the account has no log.
    reference: bytes = field(default=b"", compare=False)

    @classmethod
    def new(cls, name: Optional[str] = None, reference: bytes = b"") -> RequestId:
        """An id of now. The default for the name is random."""
        return cls(time.time_ns() // 1_000_000, name or uuid.uuid4().hex, reference)

    def message(self) -> counter_pb2.RequestId:
        message = counter_pb2.RequestId(name=self.name)
        message.created_at.FromMilliseconds(self.created_at_ms)
        return message


@dataclass(frozen=True)
class Balance:
    """A balance, in the smallest unit."""

    #: What the account has: available and held, without its credit line. Below 0 if it uses that.
    ledger: int
    #: The amount that can be spent, with the part that moves between segments and the credit line.
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
            answer.ledger,
            answer.available,
            answer.held,
            answer.losses,
            answer.lost_segments,
            answer.counts_twice,
        )


@dataclass(frozen=True)
class BalanceAfter:
    """The balance of an account just after a request, or at a repeat of it."""

    #: What the account has: available and held, without its credit line.
    ledger: int
    #: The amount that can be spent, with the credit line.
    available: int
    #: The amount set aside in addition.
    held: int


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


class Decision(enum.Enum):
    """A decision on a request."""

    #: A decision of a later release.
    UNKNOWN = counter_pb2.DECISION_UNSPECIFIED
    #: Applied: the deposit or the deduction took effect.
    DONE = counter_pb2.DECISION_DONE
    #: Refused: the whole account had too little.
    INSUFFICIENT = counter_pb2.DECISION_INSUFFICIENT
    #: Open: the amount is set aside.
    HELD = counter_pb2.DECISION_HELD
    #: Applied: the reserved amount was spent.
    CONFIRMED = counter_pb2.DECISION_CONFIRMED
    #: Refused: the reservation was cancelled.
    CANCELLED = counter_pb2.DECISION_CANCELLED
    #: Refused: the reservation came back at its deadline.
    EXPIRED = counter_pb2.DECISION_EXPIRED
    #: Open: the transfer has left and has not arrived. A repeat finishes it.
    SENT = counter_pb2.DECISION_SENT
    #: Applied: the transfer arrived.
    DELIVERED = counter_pb2.DECISION_DELIVERED
    #: Refused: the destination refused the transfer, and the amount is back.
    RETURNED = counter_pb2.DECISION_RETURNED
    #: Open: several accounts are being paid, and each has promised to receive its leg. A repeat finishes it.
    COMMITTED = counter_pb2.DECISION_COMMITTED
    #: The account has never seen the request. It may be on its way: repeat it, or cancel it, so that it is refused when
    #: it arrives.
    NEVER_SEEN = counter_pb2.DECISION_NEVER_SEEN
    #: The id is older than what the account remembers: the request was applied, refused, or never seen.
    FORGOTTEN = counter_pb2.DECISION_FORGOTTEN

    @classmethod
    def _missing_(cls, value: object) -> Decision:
        return cls.UNKNOWN


@dataclass(frozen=True)
class Found:
    """What was decided on a request."""

    decision: Decision
    #: HELD, SENT: the amount.
    amount: Optional[int] = None
    #: HELD: the time at which the amount comes back by itself, in seconds since 1970.
    deadline: Optional[float] = None
    #: SENT: the destination.
    to: Optional[str] = None
    #: FORGOTTEN: requests created at this time or before may be forgotten, in seconds since 1970.
    forgotten_until: Optional[float] = None
    #: COMMITTED: the amount for each account.
    legs: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: counter_pb2.FindResponse) -> Found:
        def at(field: str) -> Optional[float]:
            time: Any = getattr(answer, field)
            return float(time.ToMicroseconds() / 1e6) if answer.HasField(field) else None

        return cls(
            Decision(answer.decision),
            answer.amount or None,
            at("deadline"),
            answer.to or None,
            at("forgotten_until"),
            {leg.to: leg.amount for leg in answer.legs},
        )


class EffectKind(enum.Enum):
    """What an effect changed."""

    #: A kind of a later release.
    UNKNOWN = counter_pb2.EFFECT_KIND_UNSPECIFIED
    #: Available + amount: a deposit.
    DEPOSITED = counter_pb2.EFFECT_KIND_DEPOSITED
    #: Available - amount: a deduction.
    DEDUCTED = counter_pb2.EFFECT_KIND_DEDUCTED
    #: Available - amount, held + amount: a reservation.
    RESERVED = counter_pb2.EFFECT_KIND_RESERVED
    #: Held - amount: a reservation was spent.
    CONFIRMED = counter_pb2.EFFECT_KIND_CONFIRMED
    #: Held - amount, available + amount: a reservation was cancelled.
    CANCELLED = counter_pb2.EFFECT_KIND_CANCELLED
    #: Held - amount, available + amount: a reservation came back at its deadline.
    EXPIRED = counter_pb2.EFFECT_KIND_EXPIRED
    #: Available - amount, held + amount: a transfer has left.
    SENT = counter_pb2.EFFECT_KIND_SENT
    #: Held - amount: the other account has the amount.
    DELIVERED = counter_pb2.EFFECT_KIND_DELIVERED
    #: Held - amount, available + amount: the other account refused the amount.
    RETURNED = counter_pb2.EFFECT_KIND_RETURNED
    #: Available + amount: a transfer from the other account.
    RECEIVED = counter_pb2.EFFECT_KIND_RECEIVED
    #: Available - amount: it went to another segment of the account.
    LENT = counter_pb2.EFFECT_KIND_LENT
    #: Available + amount: it came from another segment of the account.
    LANDED = counter_pb2.EFFECT_KIND_LANDED

    @classmethod
    def _missing_(cls, value: object) -> EffectKind:
        return cls.UNKNOWN


@dataclass(frozen=True)
class Effect:
    """A change of the amounts in a segment of an account."""

    #: The number of the segment, from 0.
    segment: int
    #: The number of the effect in the segment.
    number: int
    #: When it was made, by the clock of the shard, in seconds since 1970.
    at: float
    kind: EffectKind
    amount: int
    #: The amount in the segment that can be spent, after the effect.
    available: int
    #: The amount set aside in the segment, after the effect.
    held: int
    #: The request. None: LENT, LANDED.
    request: Optional[RequestId] = None
    #: The other account of a transfer.
    counterpart: Optional[str] = None
    #: LENT, LANDED: the other segment, and the number of the loan, the same at both.
    loan: Optional[Tuple[int, int]] = None
    #: Whether effects of the segment are missing before it: dropped because of their age or number, or lost by the
    #: server.
    follows_gap: bool = False
    #: The reference that came with the request.
    reference: Optional[bytes] = None

    @classmethod
    def of(cls, effect: counter_pb2.AccountEffect) -> Effect:
        request = None
        if effect.HasField("id"):
            created_at_ms = effect.id.created_at.ToMilliseconds()
            request = RequestId(created_at_ms, effect.id.name)
        kind = EffectKind(effect.kind)
        moves = kind in (EffectKind.LENT, EffectKind.LANDED)
        return cls(
            effect.segment,
            effect.number,
            effect.at.ToMicroseconds() / 1e6,
            kind,
            effect.amount,
            effect.available,
            effect.held,
            request,
            effect.counterpart or None,
            (effect.other_segment, effect.loan) if moves else None,
            effect.follows_gap,
            effect.reference or None,
        )


@dataclass(frozen=True)
class History:
    """A part of the log of an account."""

    #: Those of one segment are in their order, and all are in the order of their times.
    effects: List[Effect]
    #: The cursor for the next part. At the end of the log, ask again later for new effects.
    next: str
    #: Whether there were no more effects.
    end: bool
    #: The numbers of segments that are lost, with their logs.
    lost_segments: List[int]

    @classmethod
    def of(cls, answer: counter_pb2.GetHistoryResponse) -> History:
        effects = [Effect.of(effect) for effect in answer.effects]
        return cls(effects, answer.next, answer.end, list(answer.lost_segments))


class Change:
    """A change of an account, for :meth:`Client.change`. Amounts are in the smallest unit."""

    def __init__(self, message: counter_pb2.Change) -> None:
        self._message = message

    @classmethod
    def deposit(
        cls, account: str, request: RequestId, amount: int, *, namespace: str = ""
    ) -> Change:
        """Adds an amount."""
        _, message = deposit(_account(account, namespace), request, amount)
        return cls(counter_pb2.Change(deposit=message))

    @classmethod
    def deduct(
        cls, account: str, request: RequestId, amount: int, *, namespace: str = ""
    ) -> Change:
        """Takes an amount."""
        _, message = deduct(_account(account, namespace), request, amount)
        return cls(counter_pb2.Change(deduct=message))

    @classmethod
    def reserve(
        cls,
        account: str,
        request: RequestId,
        amount: int,
        deadline: float,
        *,
        namespace: str = "",
    ) -> Change:
        """Sets an amount aside until ``deadline``, in seconds since 1970: the same in each repeat."""
        _, message = reserve(_account(account, namespace), request, amount, deadline)
        return cls(counter_pb2.Change(reserve=message))

    @classmethod
    def confirm(
        cls, account: str, request: RequestId, amount: Optional[int] = None, *, namespace: str = ""
    ) -> Change:
        """As :meth:`Account.confirm`."""
        _, message = confirm(_account(account, namespace), request, amount)
        return cls(counter_pb2.Change(confirm=message))

    @classmethod
    def capture(
        cls,
        account: str,
        request: RequestId,
        capture: RequestId,
        legs: Mapping[str, int],
        *,
        namespace: str = "",
    ) -> Change:
        """As :meth:`Account.capture`."""
        _, message = capture_request(_account(account, namespace), request, capture, legs)
        return cls(counter_pb2.Change(confirm=message))

    @classmethod
    def cancel(cls, account: str, request: RequestId, *, namespace: str = "") -> Change:
        """Gives back what was reserved by that request, unless it has ended before."""
        _, message = cancel(_account(account, namespace), request)
        return cls(counter_pb2.Change(cancel=message))

    @classmethod
    def transfer(
        cls, account: str, request: RequestId, amount: int, to: str, *, namespace: str = ""
    ) -> Change:
        """Moves an amount to another account of the namespace."""
        _, message = transfer(_account(account, namespace), request, amount, to)
        return cls(counter_pb2.Change(transfer=message))

    @classmethod
    def transfer_legs(
        cls, account: str, request: RequestId, legs: Mapping[str, int], *, namespace: str = ""
    ) -> Change:
        """As :meth:`Account.transfer_legs`."""
        _, message = transfer_legs(_account(account, namespace), request, legs)
        return cls(counter_pb2.Change(transfer=message))


@dataclass(frozen=True)
class Changed:
    """The answer to a change."""

    #: Why it failed. None: it took effect, now or by an earlier call with the same id.
    error: Optional[RingfenceError] = None
    #: The state of the reservation, of a change that is about one.
    reservation: Optional[Reservation] = None
    #: The balance after it. None: the account has several segments, or the change failed.
    balance: Optional[BalanceAfter] = None

    @classmethod
    def of(cls, answer: Any) -> Changed:
        """The answer to a call, or to one change of many."""
        failure = getattr(answer, "failure", None)
        if failure is not None and answer.HasField("failure"):
            return cls(from_failure(failure.error, failure.message))
        state, balance = getattr(answer, "state", 0), None
        if answer.HasField("balance"):
            after = answer.balance
            balance = BalanceAfter(after.ledger, after.available, after.held)
        return cls(None, Reservation(state) if state else None, balance)


def _account(name: str, namespace: str) -> counter_pb2.Account:
    return counter_pb2.Account(namespace=namespace, name=name)


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
    effects_max: Optional[int],
    effects_for: Optional[Duration],
    floor: int,
    ceiling: Optional[int],
    unit: str,
) -> Request:
    kind, replicas = _survives(durability)
    message = counter_pb2.CreateAccountRequest(
        account=account,
        segments=segments,
        durability=kind,
        replicas=replicas,
        ids_max=ids_max,
        floor=floor,
        ceiling=ceiling,
        unit=unit,
    )
    if effects_max is not None:
        message.effects_max = effects_max
    set_duration(message.effects_for, seconds("effects_for", effects_for))
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
    message = counter_pb2.DepositRequest(
        account=account, id=request.message(), amount=amount, reference=request.reference
    )
    return "Deposit", message


def deduct(account: counter_pb2.Account, request: RequestId, amount: int) -> Request:
    message = counter_pb2.DeductRequest(
        account=account, id=request.message(), amount=amount, reference=request.reference
    )
    return "Deduct", message


def balance(account: counter_pb2.Account, exact: bool) -> Request:
    return "GetBalance", counter_pb2.GetBalanceRequest(account=account, exact=exact)


def reserve(
    account: counter_pb2.Account, request: RequestId, amount: int, deadline: float
) -> Request:
    message = counter_pb2.ReserveRequest(
        account=account, id=request.message(), amount=amount, reference=request.reference
    )
    message.deadline.FromMilliseconds(round(deadline * 1000))
    return "Reserve", message


def confirm(account: counter_pb2.Account, request: RequestId, amount: Optional[int]) -> Request:
    if amount is not None and amount < 1:
        raise InvalidInput(f"amount is {amount}, must be at least 1, or None")
    message = counter_pb2.ConfirmRequest(account=account, id=request.message(), amount=amount or 0)
    return "Confirm", message


def capture_request(
    account: counter_pb2.Account, request: RequestId, capture: RequestId, legs: Mapping[str, int]
) -> Request:
    message = counter_pb2.ConfirmRequest(
        account=account,
        id=request.message(),
        legs=_legs(legs),
        capture_id=capture.message(),
    )
    return "Confirm", message


def _legs(legs: Mapping[str, int]) -> List[counter_pb2.Leg]:
    if not legs:
        raise InvalidInput("there are 0 legs, must be 1 to 16")
    return [counter_pb2.Leg(to=to, amount=amount) for to, amount in legs.items()]


def cancel(account: counter_pb2.Account, request: RequestId) -> Request:
    return "Cancel", counter_pb2.CancelRequest(account=account, id=request.message())


def transfer(account: counter_pb2.Account, request: RequestId, amount: int, to: str) -> Request:
    message = counter_pb2.TransferRequest(
        account=account,
        id=request.message(),
        amount=amount,
        to=to,
        reference=request.reference,
    )
    return "Transfer", message


def transfer_legs(
    account: counter_pb2.Account, request: RequestId, legs: Mapping[str, int]
) -> Request:
    message = counter_pb2.TransferRequest(
        account=account,
        id=request.message(),
        legs=_legs(legs),
        reference=request.reference,
    )
    return "Transfer", message


def find(account: counter_pb2.Account, request: RequestId) -> Request:
    return "Find", counter_pb2.FindRequest(account=account, id=request.message())


def history(
    account: counter_pb2.Account, cursor: str, since: Optional[float], limit: int
) -> Request:
    message = counter_pb2.GetHistoryRequest(account=account, cursor=cursor, limit=limit)
    if since is not None:
        message.since.FromMilliseconds(round(since * 1000))
    return "GetHistory", message


def accounts(
    prefix: str, namespace: str, in_doubt: bool, lost: bool, held: bool, unfinished: bool
) -> Request:
    conditions = [
        condition
        for wanted, condition in (
            (in_doubt, counter_pb2.ACCOUNT_CONDITION_IN_DOUBT),
            (lost, counter_pb2.ACCOUNT_CONDITION_LOST),
            (held, counter_pb2.ACCOUNT_CONDITION_HELD),
            (unfinished, counter_pb2.ACCOUNT_CONDITION_UNFINISHED),
        )
        if wanted
    ]
    message = counter_pb2.ListAccountsRequest(
        namespace=namespace, prefix=prefix, conditions=conditions
    )
    return "ListAccounts", message


def get_account(account: counter_pb2.Account) -> Request:
    return "GetAccount", counter_pb2.GetAccountRequest(account=account)


def resegment(account: counter_pb2.Account, segments: int) -> Request:
    message = counter_pb2.ResegmentAccountRequest(account=account, segments=segments)
    return "ResegmentAccount", message


def label(account: counter_pb2.Account, labels: Mapping[str, Optional[str]]) -> Request:
    message = counter_pb2.LabelAccountRequest(account=account)
    for name, value in labels.items():
        if value is None:
            message.remove.append(name)
        else:
            message.set[name] = value
    return "LabelAccount", message


def close_account(account: counter_pb2.Account) -> Request:
    return "CloseAccount", counter_pb2.CloseAccountRequest(account=account)


def delete_account(account: counter_pb2.Account) -> Request:
    return "DeleteAccount", counter_pb2.DeleteAccountRequest(account=account)


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
