"""The client for asyncio. Each held lock has a task that renews it.

Every call may be cancelled. A cancelled acquisition is taken back in the background; a grant that
is on its way at that moment ends with its lease at the latest.
"""

from ._client import Client, run
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
    "run",
]
