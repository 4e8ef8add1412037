"""Orders in PostgreSQL, paid from balances in Ringfence, by workers that may die at any instant.

    export DATABASE="host=localhost user=postgres" RINGFENCE=127.0.0.1:7420
    python payments.py place buyer/1 30   # an order, with its payment in the outbox
    python payments.py pay                # makes the payments of the outbox: any number of workers at a time
    python payments.py reconcile          # each night: what the orders and the log of the shop say differently

The tables are those of examples/payments.rs.
"""

from __future__ import annotations

import os
import sys
import time

import psycopg
import ringfence

# An order, and the time of its payment, in one transaction. The time is a part of the payment's id.
PLACE = """WITH placed AS (INSERT INTO orders (buyer, amount) VALUES (%s, %s) RETURNING id)
    INSERT INTO outbox (of, made_ms) SELECT id, %s FROM placed"""
NEXT = """SELECT id, buyer, amount, made_ms FROM orders JOIN outbox ON id = of
    ORDER BY id LIMIT 1 FOR UPDATE OF outbox SKIP LOCKED"""
FINISH = """WITH done AS (DELETE FROM outbox WHERE of = %(id)s)
    UPDATE orders SET state = %(state)s WHERE id = %(id)s"""


def pay(database: psycopg.Connection, client: ringfence.Client) -> None:
    """A worker that dies leaves its row there, and another one repeats the payment, with the same id: one effect."""
    while True:
        with database.transaction():
            if (row := database.execute(NEXT).fetchone()) is None:
                return
            order, buyer, amount, made_ms = row
            payment = ringfence.RequestId(made_ms, f"order-{order}")
            try:
                client.account(buyer).transfer(payment, amount, "shop")
                state = "paid"
            except ringfence.Insufficient:
                state = "refused"
            database.execute(FINISH, {"id": order, "state": state})
        print(state, order, flush=True)


def reconcile(database: psycopg.Connection, client: ringfence.Client) -> int:
    # Before the log: what is paid by now is in the log, and what is new may be there.
    begun, differences = time.time(), 0
    orders = {
        f"order-{order}": (amount, state)
        for order, amount, state in database.execute("SELECT id, amount, state FROM orders")
    }
    cursor, end = "", False
    while not end:
        page = client.account("shop").history(cursor)
        cursor, end = page.next, page.end
        for effect in page.effects:
            if effect.request is None:  # it moves between segments of the account
                continue
            order = orders.pop(effect.request.name, None)
            is_known = order is not None and order[0] == effect.amount and order[1] != "refused"
            if not is_known and not (order is None and effect.at >= begun):
                differences += 1
                print(effect.kind.name, effect.amount, effect.request.name, "the order is", order)
    for name, (amount, state) in orders.items():
        if state == "paid":
            differences += 1
            print(name, "is paid with", amount, "and the shop has not received it")
    return differences


if __name__ == "__main__":
    with psycopg.connect(os.environ["DATABASE"], autocommit=True) as database:
        with ringfence.Client(os.environ["RINGFENCE"].split(",")) as client:
            if sys.argv[1] == "place":
                database.execute(PLACE, [sys.argv[2], int(sys.argv[3]), int(time.time() * 1000)])
            elif sys.argv[1] == "pay":
                pay(database, client)
            else:
                print("differences:", reconcile(database, client))
