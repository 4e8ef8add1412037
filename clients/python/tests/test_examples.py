"""The programs in examples, on a real coordinator."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
from typing import Any, Iterator

import pytest

from ringfence import Client

from conftest import DEADLINE, ROOT, Coordinator

EXAMPLES = ROOT / "clients/python/examples"


@pytest.fixture
def path() -> Iterator[pathlib.Path]:
    """A file in memory: SQLite waits for a disk after each statement, and tests share a busy one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield pathlib.Path(folder) / "coins.db"


def test_coins_are_deducted_once_and_a_late_holder_deducts_none(
    shared: Coordinator, path: pathlib.Path
) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        [table] = [line for line in (EXAMPLES / "coins.py").read_text().splitlines() if "TABLE" in line]
        database.execute(table)
        database.execute("INSERT INTO account (id, balance) VALUES (1, 300)")
        database.commit()

        def start(times: int) -> subprocess.Popen[str]:
            command = [sys.executable, str(EXAMPLES / "coins.py"), str(path), "1", "2"]
            command += ["--times", str(times), shared.address]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            return subprocess.Popen(command, text=True, env=dict(os.environ), **pipes)

        said: list[str] = []
        for process in [start(60) for _ in range(3)]:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
            said += out.splitlines()
        expected = [f"left {left}" for left in range(0, 300, 2)] + 30 * ["too few coins"]
        assert sorted(said) == sorted(expected)

        database.execute("UPDATE account SET balance = 10, fence = fence + 1000000000000")
        database.commit()
        late = start(1)
        _, err = late.communicate(timeout=60)
        assert late.returncode == 1 and "too late" in err
        assert database.execute("SELECT balance FROM account").fetchone() == (10,)


def example(name: str, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of an example, for a coordinator."""
    monkeypatch.setenv("RINGFENCE", coordinator.address)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(name)


def test_a_celery_task_runs_once_at_a_time(
    shared: Coordinator, client: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("celery", reason="celery is missing")
    tasks = example("celery_task", shared, monkeypatch)
    with client.lock(f"feed/{key}") as guard:
        assert tasks.import_feed.apply([key]).get() == "runs already"
    assert tasks.import_feed.apply([key]).get() == "imported"
    ((feed, token),) = tasks.imported
    assert feed == key and token > guard.token
    client.lock(f"feed/{key}", wait=0).acquire().release()
    tasks.client().close()


def test_a_request_holds_the_lock_of_its_order(
    shared: Coordinator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="fastapi is missing")
    httpx = pytest.importorskip("httpx", reason="httpx is missing")
    orders = example("fastapi_order", shared, monkeypatch)

    async def work() -> None:
        transport = httpx.ASGITransport(app=orders.app)
        web = httpx.AsyncClient(transport=transport, base_url="http://test", timeout=DEADLINE)
        async with orders.lifespan(orders.app), web:
            with client.lock("order/7") as guard:
                assert (await web.post("/orders/7/charge")).status_code == 423
            answer = (await web.post("/orders/7/charge")).json()
            assert answer["order"] == 7 and answer["token"] > guard.token
            client.lock("order/7", wait=0).acquire().release()

    asyncio.run(asyncio.wait_for(work(), DEADLINE))
