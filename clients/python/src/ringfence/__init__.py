"""Locks and counters of Ringfence, through a coordinator (``ringfence serve``).

>>> with ringfence.Client("127.0.0.1:7420") as client:
...     with client.lock("order/42") as guard:
...         charge(order=42, fence=guard.token)
"""

from . import aio
from ._blocking import Account, Client, Guard, Latch, Lock, RwLock, exit_on_signal
from ._requests import Balance, RequestId, Reservation
from ._rules import Danger, Outcome
from .errors import Insufficient, LockLost, NotAcquired, RingfenceError, Unavailable

__all__ = [
    "Account",
    "Balance",
    "Client",
    "Danger",
    "Guard",
    "Insufficient",
    "Latch",
    "Lock",
    "LockLost",
    "NotAcquired",
    "Outcome",
    "RequestId",
    "Reservation",
    "RingfenceError",
    "RwLock",
    "Unavailable",
    "aio",
    "exit_on_signal",
]
