"""The programs in examples, on a real coordinator."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
from typing import Iterator

import pytest

from conftest import ROOT, Coordinator

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
