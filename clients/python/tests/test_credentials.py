"""Tokens that change, and events that are logged."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import pathlib
import signal
from typing import Callable

import grpc
import pytest

import ringfence
from ringfence import Client, InvalidInput, Outcome, Unauthenticated, _channels, aio

from conftest import DEADLINE, SECRET, Coordinator, eventually

#: A lease whose renewals begin soon.
LEASE = 15.0


def guarded(serve: type[Coordinator]) -> str:
    """The address of a coordinator that knows the token `s3cret`."""
    digest = hashlib.sha256(b"s3cret").hexdigest()
    return serve(f'[principals.job]\nsha256 = "{digest}"\nacquire = ["*"]\nread = ["*"]').address


def test_a_token_in_a_file_is_read_again(
    serve: type[Coordinator], tmp_path: pathlib.Path, key: str
) -> None:
    path = tmp_path / "token"
    with pytest.raises(FileNotFoundError):
        Client("127.0.0.1:1", token_file=path)
    path.write_text("\n")
    with pytest.raises(InvalidInput, match="token_file is .* empty, must be a file"):
        Client("127.0.0.1:1", token_file=path)
    path.write_text("former\n")
    with pytest.raises(InvalidInput, match="unset beside token"):
        Client("127.0.0.1:1", token_file=path, token="s3cret")
    with Client(guarded(serve), token_file=str(path)) as client:
        with pytest.raises(Unauthenticated):
            client.inspect(key)
        path.write_text("s3cret\n")
        client.inspect(key)
        assert list(client.locks(key)) == []
        # Not while it is rotated.
        for rotate in (lambda: path.write_text(""), path.unlink):
            rotate()
            client.inspect(key)
        path.write_text("former\n")
        with pytest.raises(Unauthenticated):
            client.inspect(key)


def test_a_function_gives_the_token_of_each_call(serve: type[Coordinator], key: str) -> None:
    address = guarded(serve)
    tokens = iter(["s3cret", "wrong", "s3cret", "two\nlines"])
    with Client(address, token=lambda: next(tokens)) as client:
        client.inspect(key)
        with pytest.raises(Unauthenticated):
            client.inspect(key)
        client.inspect(key)
        with pytest.raises(Unauthenticated, match="no token for the call: InvalidInput") as caught:
            client.inspect(key)
        assert "two" not in str(caught.value.__cause__)
        with pytest.raises(Unauthenticated, match="no token for the call: StopIteration"):
            client.inspect(key)

    async def token() -> str:
        return "s3cret"

    async def work() -> None:
        for each in (token, lambda: "s3cret"):
            async with aio.Client(address, token=each) as tasks, tasks.lock(key) as guard:
                assert guard.held
                assert [lock.key async for lock in tasks.locks(key)] == [key.encode()]

    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_a_lock_is_kept_when_a_token_comes_late(serve: type[Coordinator], key: str) -> None:
    calls: list[str] = []

    def token() -> str:
        calls.append("")
        if len(calls) in (2, 3):  # the first renewals
            raise OSError("s3cret is away")
        return "s3cret"

    with Client(guarded(serve), token=token) as client:
        guard = client.lock(key, lease=LEASE).acquire()
        eventually(lambda: len(calls) >= 4)
        assert guard.held and guard.release() is Outcome.HELD


def warnings(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "ringfence"
        and record.levelno == logging.WARNING
        and part in record.getMessage()
    ]


def test_failing_renewals_and_a_loss_are_logged_once(
    serve: type[Coordinator], caplog: pytest.LogCaptureFixture, key: str
) -> None:
    coordinator = serve()
    with Client(coordinator.address, token="s3cret") as client:
        guard = client.lock(key, lease=6).acquire()
        coordinator.kill()
        assert guard.wait_lost(DEADLINE)
        (failed,) = warnings(caplog, "renewals of lock")
        (lost,) = warnings(caplog, "is lost")
        shown = f"lock {key!r}, token {guard.token} "
        assert shown in failed and "UNAVAILABLE" in failed and shown in lost
        assert not warnings(caplog, "goes on at") and not warnings(caplog, "s3cret")


def test_a_loss_by_force_is_logged_and_an_end_is_not(
    client: Client, shared: Coordinator, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    async def work() -> None:
        async with aio.Client(shared.address) as tasks:
            kept = await tasks.lock(f"{key}/task").acquire()
            async with tasks.lock(f"{key}/released"):
                pass
            guard = await tasks.lock(key, lease=6).acquire()
            await tasks.force_release(key, "test")
            await guard.lost()
        assert not kept.held

    asyncio.run(asyncio.wait_for(work(), DEADLINE))
    with Client(shared.address) as other:
        with other.lock(f"{key}/released"):
            pass
        closed = other.lock(f"{key}/closed").acquire()
    assert closed.wait_lost(DEADLINE)
    (lost,) = warnings(caplog, "")
    assert f"lock {key!r}, token " in lost and "is lost" in lost


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_move_is_logged_once(
    serve: type[Coordinator],
    caplog: pytest.LogCaptureFixture,
    key: str,
    number: signal.Signals,
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))
    with Client([one.address, two.address]) as client:
        guards = [client.lock(f"{key}/{each}").acquire() for each in range(3)]
        one.signal(number)

        def moved() -> list[str]:
            client.lock(f"{key}/other").acquire().release()
            return warnings(caplog, "goes on at")

        eventually(moved)
        (told,) = moved()
        assert one.address in told and f"goes on at {two.address}" in told
        assert {guard.release() for guard in guards} == {Outcome.HELD}


def test_calls_that_fail_together_move_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ringfence")
    coordinators = _channels.Coordinators(["one", "two", "three"], grpc.insecure_channel)
    one, _ = coordinators.pick("LockService", "Renew")
    for _ in range(2):
        coordinators.failed(one, ringfence.Unavailable("gone", elsewhere=True))
    assert coordinators.pick("LockService", "Renew")[0].name == "two"
    assert [record.getMessage() for record in caplog.records if record.name == "ringfence"] == [
        "coordinator one failed, goes on at two: gone"
    ]


def test_an_answer_is_no_failure_of_its_coordinator(
    shared: Coordinator, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    with Client([shared.address, shared.address]) as client:
        with pytest.raises(ringfence.NoAccount):
            client.account(key).deduct(ringfence.RequestId.new(), 1)
        with client.lock(key), pytest.raises(ringfence.NotAcquired):
            client.lock(key, wait=0).acquire()
    assert not warnings(caplog, "")


def test_while_no_coordinator_answers_one_warning_is_enough(
    serve: Callable[[], Coordinator], caplog: pytest.LogCaptureFixture, key: str
) -> None:
    caplog.set_level(logging.DEBUG, "ringfence")
    one, two = serve(), serve()
    with Client([one.address, two.address], timeout=0.5) as client:
        client.inspect(key)
        for each in (one, two):
            each.kill()
        with pytest.raises(ringfence.Unavailable):
            client.inspect(key)
    moves = [record for record in caplog.records if "goes on at" in record.getMessage()]
    assert len(moves) > 1 and len(warnings(caplog, "goes on at")) == 1
