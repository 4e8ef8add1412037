"""Locks and counters of Ringfence, through a coordinator (``ringfence serve``).

>>> with ringfence.Client("127.0.0.1:7420") as client:
...     with client.lock("order/42") as guard:
...         charge(order=42, fence=guard.token)
"""

import logging

from . import aio
from ._blocking import (
    Account,
    Client,
    Election,
    Guard,
    Latch,
    Leadership,
    Lock,
    MultiGuard,
    MultiLock,
    RwLock,
    exit_on_signal,
)
from ._durations import Duration
from ._requests import Balance, Key, RequestId, Reservation
from ._rules import Danger, Outcome
from ._views import (
    AccountState,
    HeldLock,
    Holder,
    Leader,
    LockKind,
    LockState,
    LostSegment,
    Segment,
    Waiter,
)
from .errors import (
    AccountClosed,
    AccountExists,
    Contended,
    IdConflict,
    IdInFuture,
    IdTooOld,
    Insufficient,
    InvalidInput,
    LimitReached,
    LockLost,
    NoAccount,
    NotAcquired,
    NotAllowed,
    OtherKind,
    OutOfRange,
    RequestCancelled,
    RingfenceError,
    SegmentLost,
    ShardUnavailable,
    ShardUnusable,
    TransferRefused,
    TransferUnfinished,
    Unauthenticated,
    Unavailable,
    UnknownReservation,
)

logging.getLogger("ringfence").addHandler(logging.NullHandler())

__all__ = [
    "Account",
    "AccountClosed",
    "AccountExists",
    "AccountState",
    "Balance",
    "Client",
    "Contended",
    "Danger",
    "Duration",
    "Election",
    "Guard",
    "HeldLock",
    "Holder",
    "IdConflict",
    "IdInFuture",
    "IdTooOld",
    "Insufficient",
    "InvalidInput",
    "Key",
    "Latch",
    "Leader",
    "Leadership",
    "LimitReached",
    "Lock",
    "LockKind",
    "LockLost",
    "LockState",
    "LostSegment",
    "MultiGuard",
    "MultiLock",
    "NoAccount",
    "NotAcquired",
    "NotAllowed",
    "OtherKind",
    "OutOfRange",
    "Outcome",
    "RequestCancelled",
    "RequestId",
    "Reservation",
    "RingfenceError",
    "RwLock",
    "Segment",
    "SegmentLost",
    "ShardUnavailable",
    "ShardUnusable",
    "TransferRefused",
    "TransferUnfinished",
    "Unauthenticated",
    "Unavailable",
    "UnknownReservation",
    "Waiter",
    "aio",
    "exit_on_signal",
]
