"""The blocking client. Each held lock has a thread that renews it."""

from ._client import Client, exit_on_signal
from ._counters import Account, Latch
from ._locks import Election, Guard, Leadership, Lock, MultiGuard, MultiLock, RwLock

__all__ = [
    "Account",
    "Client",
    "Election",
    "Guard",
    "Latch",
    "Leadership",
    "Lock",
    "MultiGuard",
    "MultiLock",
    "RwLock",
    "exit_on_signal",
]
