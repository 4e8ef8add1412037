"""A task of Celery that runs once at a time per feed, on any number of workers.

    RINGFENCE=127.0.0.1:7420 BROKER=redis://127.0.0.1 celery -A celery_task worker
"""

from __future__ import annotations

import functools
import os

import ringfence
from celery import Celery

app = Celery("celery_task", broker=os.environ.get("BROKER"))

#: The feeds that were imported here, with the tokens that they were imported under.
imported: list[tuple[str, int]] = []


@functools.lru_cache(maxsize=None)
def client() -> ringfence.Client:
    """The client of this process. Made at the first task: a worker forks before, and a fork inherits none."""
    return ringfence.Client(os.environ["RINGFENCE"].split(","))


@app.task(name="import_feed")
def import_feed(feed: str) -> str:
    guard = client().lock(f"feed/{feed}").try_acquire()
    if guard is None:
        return "runs already"
    with guard:  # renewed for as long as the task runs; if it was lost, the task fails with LockLost
        imported.append((feed, guard.token))
        return "imported"
