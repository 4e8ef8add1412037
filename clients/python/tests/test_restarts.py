"""Coordinators that are restarted one after the other, under load."""

from __future__ import annotations

import pathlib
import signal
import socket
import threading
from typing import Any, Callable

import pytest
from conftest import DEADLINE, SECRET, Coordinator, Redis, eventually

from ringfence import Client, Outcome, RingfenceError

#: One name has both.
HOSTS = "127.0.0.1", "127.0.0.2"
ROUNDS = 10


def test_a_holder_renews_elsewhere_once_its_coordinator_stops(
    serve: Callable[..., Coordinator], key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"\ngrace = "1h"') for _ in range(2))
    with Client([one.address, two.address]) as client:
        guard = client.lock(key, lease=3).acquire()
        one.signal(signal.SIGTERM)
        # It ends once nobody renews a lock there.
        one.process.wait(DEADLINE)
        assert guard.release() is Outcome.HELD


def test_ten_rolling_restarts_behind_one_name_fail_no_call_and_lose_no_lock(
    redis: Redis, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    find = socket.getaddrinfo

    def both(host: Any, *rest: Any, **named: Any) -> Any:
        hosts = HOSTS if host == "localhost" else [host]
        return [found for each in hosts for found in find(each, *rest, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with socket.create_server((HOSTS[0], 0)) as free:
        port = free.getsockname()[1]

    def start(host: str) -> Coordinator:
        settings = f'handle_secret = "{SECRET}"\ngrace = "1h"'
        return Coordinator(redis, tmp_path, settings, f"{host}:{port}")

    coordinators = [start(host) for host in HOSTS]
    stop, failures, acquired = threading.Event(), [], [0, 0, 0]

    def stops(own: Client) -> bool:
        try:
            own.lock(f"{key}/none", wait=0).acquire().release()
        except RingfenceError as error:
            return error.reason == "STOPPING"
        return False

    def acquire(worker: int) -> None:
        while not stop.is_set():
            try:
                with client.lock(f"{key}/{worker}", wait=10, lease=3):
                    acquired[worker] += 1
            except Exception as error:
                failures.append(error)

    with Client(f"localhost:{port}") as client:
        held = [client.lock(f"{key}/held/{each}", lease=3).acquire() for each in range(5)]
        workers = [threading.Thread(target=acquire, args=[each]) for each in range(len(acquired))]
        for worker in workers:
            worker.start()
        for number in range(ROUNDS):
            at = number % 2
            # It does not end before this lock is released.
            with Client(f"{HOSTS[at]}:{port}") as own, own.lock(f"{key}/own/{number}"):
                coordinators[at].signal(signal.SIGTERM)
                eventually(lambda: stops(own))
                before = list(acquired)
                eventually(lambda: failures or all(map(int.__lt__, before, acquired)))
            assert not failures
            coordinators[at].process.wait()
            coordinators[at] = start(HOSTS[at])
        stop.set()
        for worker in workers:
            worker.join()
        assert not failures
        assert {guard.release() for guard in held} == {Outcome.HELD}
    for coordinator in coordinators:
        coordinator.kill()
