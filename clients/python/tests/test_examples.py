"""The programs in examples, on a real coordinator."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from typing import Any, Iterator

import pytest

import ringfence
from ringfence import Client

from conftest import DEADLINE, ROOT, Coordinator, eventually

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


ORDERS = """CREATE TABLE orders (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, buyer TEXT NOT NULL,
        amount BIGINT NOT NULL, state TEXT NOT NULL DEFAULT 'new');
    CREATE TABLE outbox (of BIGINT PRIMARY KEY REFERENCES orders, made_ms BIGINT NOT NULL)"""


@pytest.fixture
def postgresql() -> Iterator[str]:
    """A server of one's own, on a socket in memory."""
    *_, programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    # It refuses to run as root.
    user = {"user": "postgres"} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if user:
            shutil.chown(folder, "postgres")
        data = ["-D", f"{folder}/data"]
        initdb = [programs / "initdb", *data, "--username=postgres", "--auth=trust", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
        settings = ["-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        server = subprocess.Popen([programs / "postgres", *data, *settings], cwd=folder, **user)
        try:
            eventually((pathlib.Path(folder) / ".s.PGSQL.5432").exists)
            yield f"host={folder} user=postgres"
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait()


def test_orders_are_paid_once_and_a_planted_difference_is_found(
    shared: Coordinator, client: Client, postgresql: str
) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is missing")
    new = ringfence.RequestId.new
    client.account("shop").create("memory")
    for buyer in range(3):
        client.account(f"buyer/{buyer}").create("memory")
        client.account(f"buyer/{buyer}").deposit(new(), 200)
    environment = {**os.environ, "DATABASE": postgresql, "RINGFENCE": shared.address}

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(EXAMPLES / "payments.py"), *arguments]
        return subprocess.Popen(command, text=True, env=environment, stdout=subprocess.PIPE)

    def run(*arguments: str) -> list[str]:
        out, _ = start(*arguments).communicate(timeout=60)
        return out.splitlines()

    def connected() -> object:
        with contextlib.suppress(psycopg.OperationalError):
            return psycopg.connect(postgresql, autocommit=True)

    eventually(connected)
    with psycopg.connect(postgresql, autocommit=True) as database:
        database.execute(ORDERS)
        run("place", "buyer/1", "30")
        place = """WITH placed AS (INSERT INTO orders (buyer, amount)
                SELECT 'buyer/' || n %% 3, 1 + n %% 30 FROM generate_series(1, 60) n RETURNING id)
            INSERT INTO outbox (of, made_ms) SELECT id, %s FROM placed"""
        database.execute(place, [new().created_at_ms])
        for _ in range(3):
            worker = start("pay")
            assert worker.stdout and worker.stdout.readline()
            worker.kill()
            worker.wait()
        run("pay")
        assert database.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
        paid = "SELECT sum(amount)::BIGINT FROM orders WHERE state = 'paid'"
        assert database.execute(paid).fetchone() == (client.account("shop").balance().available,)
        assert run("reconcile") == ["differences: 0"]
        first = "SELECT min(id) FROM orders WHERE state = 'paid'"
        database.execute(f"UPDATE orders SET amount = amount + 1 WHERE id = ({first})")
        client.account("shop").deposit(new(), 7)
        assert run("reconcile")[-1] == "differences: 2"


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
