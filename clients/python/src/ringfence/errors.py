"""Errors. Each says whether a repeat may succeed, and whether the call may have taken effect."""

from __future__ import annotations

from typing import Any, Optional

import grpc
from google.rpc import status_pb2

from .v1 import error_pb2


class RingfenceError(Exception):
    """A call that failed."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "UNSPECIFIED",
        retryable: bool = False,
        may_have_taken_effect: bool = True,
        retry_after: Optional[float] = None,
        elsewhere: bool = False,
    ) -> None:
        super().__init__(message)
        #: The name of the reason: ``ErrorReason`` of the API, without its prefix.
        self.reason = reason
        #: Whether the same call may succeed if it is repeated.
        self.retryable = retryable
        #: Whether the call may have taken effect, or may yet.
        self.may_have_taken_effect = may_have_taken_effect
        #: The earliest time to repeat the call, in seconds from the answer, if it is known.
        self.retry_after = retry_after
        #: Whether this coordinator cannot serve, but another one may.
        self.elsewhere = elsewhere


class InvalidInput(RingfenceError, ValueError):
    """An argument cannot be used."""

    def __init__(
        self, message: str, *, field: str = "", value: str = "", limit: str = "", **facts: Any
    ) -> None:
        super().__init__(message, **{"reason": "INVALID_INPUT", **facts})
        #: The argument, by its name in the API.
        self.field = field
        #: The refused value, or its length. Never a secret.
        self.value = value
        #: The allowed values.
        self.limit = limit

    @classmethod
    def of(cls, field: str, value: str, limit: str) -> InvalidInput:
        """An error that was found before anything was sent."""
        message = f"{field} is {value}, must be {limit}"
        return cls(message, field=field, value=value, limit=limit, may_have_taken_effect=False)


class Unavailable(RingfenceError):
    """No coordinator answered in time, or it stops."""


class ShardUnavailable(Unavailable):
    """The shard of the key cannot serve at the moment."""


class ShardUnusable(RingfenceError):
    """The shard cannot serve until an operator changes its configuration or its memory."""


class Unauthenticated(RingfenceError):
    """The caller has no valid token and no valid certificate."""


class NotAllowed(RingfenceError):
    """The roles of the caller do not allow the call."""


class LimitReached(RingfenceError):
    """A limit is reached, of calls, waiters, locks or request ids. See ``retry_after``."""


class NotAcquired(RingfenceError):
    """The lock was not granted within the time to wait. The reason is HELD or TIMED_OUT."""


class LockLost(RingfenceError):
    """The lock is not held any more: its lease has ended, or it was released by force."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message, **{"reason": "LOCK_LOST", **facts, "retryable": True})


class OtherKind(RingfenceError):
    """The key is held as another kind: a lock, a semaphore, or a read-write lock."""


class Insufficient(RingfenceError):
    """The whole account has less than the amount."""


class RequestCancelled(RingfenceError):
    """The reservation was cancelled before it arrived."""


class UnknownReservation(RingfenceError):
    """No reservation with that request id is known."""


class TransferRefused(RingfenceError):
    """The destination refused the transfer. The amount is back in the source account."""


class OtherUnit(RingfenceError):
    """The destination of the transfer has another unit. Nothing was taken."""


class NotDeletable(RingfenceError):
    """The account is open, or not empty, or has a credit line and several segments."""


class TransferUnfinished(RingfenceError):
    """The transfer has left the source and has not arrived. Repeat it with the same request id."""


class NoAccount(RingfenceError):
    """The account does not exist, or the latch is not set."""


class AccountExists(RingfenceError):
    """The account, or the latch, exists with other terms."""


class AccountClosed(RingfenceError):
    """The account takes no new money."""


class SegmentLost(RingfenceError):
    """A segment of the account is lost, or in doubt, until a person accepts that."""


class Contended(RingfenceError):
    """Other callers changed the account all the time, or kept it frozen."""


class IdConflict(RingfenceError):
    """The request id was used before, for another request."""


class IdTooOld(RingfenceError):
    """The request id is too old: ``may_have_taken_effect`` says whether the request took effect."""


class IdInFuture(RingfenceError):
    """The creation time of the request id is in the future: compare the clocks."""


class OutOfRange(RingfenceError):
    """The amount does not fit into the segment, or below the ceiling; or the balance not into the answer."""


#: The class of each reason.
_CLASSES: dict[str, type[RingfenceError]] = {
    "UNSPECIFIED": RingfenceError,
    "INVALID_INPUT": InvalidInput,
    "DEADLINE": Unavailable,
    "STOPPING": Unavailable,
    "SHARD_UNAVAILABLE": ShardUnavailable,
    "SHARD_UNUSABLE": ShardUnusable,
    "OUT_OF_MEMORY": ShardUnusable,
    "MOVING": ShardUnavailable,
    "FOREIGN": RingfenceError,
    "INTERNAL": RingfenceError,
    "UNAUTHENTICATED": Unauthenticated,
    "NOT_ALLOWED": NotAllowed,
    "RATE_LIMITED": LimitReached,
    "RESIZE_REFUSED": RingfenceError,
    "HELD": NotAcquired,
    "TIMED_OUT": NotAcquired,
    "RECOVERING": ShardUnavailable,
    "TOO_MANY_WAITERS": LimitReached,
    "TOO_MANY_HELD": LimitReached,
    "TOO_LATE": LockLost,
    "LOCK_LOST": LockLost,
    "OTHER_KIND": OtherKind,
    "INSUFFICIENT": Insufficient,
    "CANCELLED": RequestCancelled,
    "UNKNOWN_RESERVATION": UnknownReservation,
    "TRANSFER_REFUSED": TransferRefused,
    "TRANSFER_UNFINISHED": TransferUnfinished,
    "NO_ACCOUNT": NoAccount,
    "ACCOUNT_EXISTS": AccountExists,
    "ACCOUNT_CLOSED": AccountClosed,
    "SEGMENT_LOST": SegmentLost,
    "CONTENDED": Contended,
    "ID_CONFLICT": IdConflict,
    "ID_TOO_OLD": IdTooOld,
    "ID_IN_FUTURE": IdInFuture,
    "TOO_MANY_IDS": LimitReached,
    "OUT_OF_RANGE": OutOfRange,
    "OTHER_UNIT": OtherUnit,
    "NOT_DELETABLE": NotDeletable,
}


#: Reasons from this one on are answers of accounts and latches, which look up the request's id first.
_OF_ACCOUNT = error_pb2.ERROR_REASON_INSUFFICIENT


def counts_earlier(error: RingfenceError) -> bool:
    """Whether the error tells what became of earlier attempts of its request, too."""
    values = error_pb2.ErrorReason
    name = f"ERROR_REASON_{error.reason}"
    return not error.retryable and name in values.keys() and values.Value(name) >= _OF_ACCOUNT


def from_rpc(error: grpc.RpcError) -> RingfenceError:
    """The error that the status of a failed call describes."""
    for name, value in error.trailing_metadata() or ():
        if name != "grpc-status-details-bin":
            continue
        for entry in status_pb2.Status.FromString(value).details:
            detail = error_pb2.ErrorDetail()
            if entry.Unpack(detail):
                return from_failure(detail, error.details() or "")
    # Not from a coordinator: gRPC itself, or a proxy.
    code = error.code()
    unanswered = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return (Unavailable if unanswered else RingfenceError)(
        f"{code.name}: {error.details()}", retryable=unanswered, elsewhere=unanswered
    )


def from_failure(detail: error_pb2.ErrorDetail, message: str) -> RingfenceError:
    """The error with these details."""
    try:
        reason = error_pb2.ErrorReason.Name(detail.reason)[len("ERROR_REASON_") :]
    except ValueError:  # a reason of a later release
        reason = "UNSPECIFIED"
    facts: dict[str, Any] = {}
    if detail.HasField("retry_after"):
        facts["retry_after"] = detail.retry_after.ToTimedelta().total_seconds()
    if reason == "INVALID_INPUT":
        invalid = detail.invalid_input
        facts.update(field=invalid.field, value=invalid.value, limit=invalid.limit)
    return _CLASSES.get(reason, RingfenceError)(
        message,
        reason=reason,
        retryable=detail.retryable,
        may_have_taken_effect=detail.effect != error_pb2.EFFECT_NONE,
        elsewhere=reason == "STOPPING",
        **facts,
    )
