"""Errors. Each says whether a repeat may succeed, and whether the call may have taken effect."""

from __future__ import annotations

from typing import Callable, Optional

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


class NotAcquired(RingfenceError):
    """The lock was not granted within the time to wait. The reason is HELD or TIMED_OUT."""


class LockLost(RingfenceError):
    """The lock is not held any more: its lease has ended, or it was released by force."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message, reason="LOCK_LOST", retryable=True)


class Insufficient(RingfenceError):
    """The whole account has less than the amount."""


class Unavailable(RingfenceError):
    """No coordinator answered in time."""


_CLASSES: dict[str, Callable[..., RingfenceError]] = {
    "HELD": NotAcquired,
    "TIMED_OUT": NotAcquired,
    "LOCK_LOST": LockLost,
    "INSUFFICIENT": Insufficient,
}


def from_rpc(error: grpc.RpcError) -> RingfenceError:
    """The error that the status of a failed call describes."""
    for name, value in error.trailing_metadata() or ():
        if name != "grpc-status-details-bin":
            continue
        for entry in status_pb2.Status.FromString(value).details:
            detail = error_pb2.ErrorDetail()
            if entry.Unpack(detail):
                return _from_detail(detail, error.details() or "")
    # Not from a coordinator: gRPC itself, or a proxy.
    code = error.code()
    unanswered = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return (Unavailable if unanswered else RingfenceError)(
        f"{code.name}: {error.details()}", retryable=unanswered, elsewhere=unanswered
    )


def _from_detail(detail: error_pb2.ErrorDetail, message: str) -> RingfenceError:
    try:
        reason = error_pb2.ErrorReason.Name(detail.reason)[len("ERROR_REASON_") :]
    except ValueError:  # a reason of a later release
        reason = "UNSPECIFIED"
    retry_after = detail.retry_after
    return _CLASSES.get(reason, RingfenceError)(
        message,
        reason=reason,
        retryable=detail.retryable,
        may_have_taken_effect=detail.effect != error_pb2.EFFECT_NONE,
        retry_after=retry_after.ToTimedelta().total_seconds()
        if detail.HasField("retry_after")
        else None,
        elsewhere=reason == "STOPPING",
    )
