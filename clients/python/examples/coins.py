"""Deducts coins from rows of SQLite, under a lock whose token the row checks.

    python coins.py coins.db 42 30 127.0.0.1:7420      # 30 coins of account 42
    python coins.py coins.db 42 30 --times 20 127.0.0.1:7420 127.0.0.1:7430

As many of it as you like may run at a time. The table:

    CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0)
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time

import ringfence


class TooFew(Exception):
    """The account has fewer coins."""


class TooLate(Exception):
    """A later holder of the lock has presented its token."""


def deduct(database: sqlite3.Connection, account: int, amount: int, token: int) -> int:
    """Reads, decides, and writes: more than one statement can say. Returns the balance that is left."""
    # Presents the token before it reads: from now on, a former holder cannot write.
    present = "UPDATE account SET fence = ? WHERE id = ? AND fence <= ?"
    if database.execute(present, (token, account, token)).rowcount != 1:
        raise TooLate
    read = "SELECT balance FROM account WHERE id = ?"
    left = int(database.execute(read, (account,)).fetchone()[0]) - amount
    if left < 0:
        raise TooFew
    time.sleep(0.002)  # the order is checked ...
    write = "UPDATE account SET balance = ? WHERE id = ? AND fence <= ?"
    if database.execute(write, (left, account, token)).rowcount != 1:
        raise TooLate
    return left


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("account", type=int)
    parser.add_argument("amount", type=int)
    parser.add_argument("coordinators", nargs="+", help="HOST:PORT")
    parser.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args()
    ringfence.exit_on_signal()  # SIGTERM ends the `with` below: the next process has the lock at once
    # Each statement is a transaction of its own: the lock holds them together, not the database.
    database = sqlite3.connect(arguments.file, timeout=30, isolation_level=None)
    account, amount = arguments.account, arguments.amount
    with ringfence.Client(arguments.coordinators) as client:
        for _ in range(arguments.times):
            try:
                with client.lock(f"account/{account}", wait=30) as guard:
                    print("left", deduct(database, account, amount, guard.token), flush=True)
            except TooFew:
                print("too few coins", flush=True)
            except (TooLate, ringfence.LockLost):
                sys.exit("too late: another holder has the lock")


if __name__ == "__main__":
    main()
