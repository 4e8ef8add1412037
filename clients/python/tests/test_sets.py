"""Decorators, several locks at once, and elections."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import ringfence
from ringfence import Client, InvalidInput, LockLost, NotAcquired, Outcome, aio

from conftest import DEADLINE, Coordinator, eventually


def is_free(client: Client, key: str, namespace: str = "") -> bool:
    return not client.inspect(key, namespace=namespace).holders


def test_a_decorated_function_acquires_anew_in_each_call(client: Client, key: str) -> None:
    alone = threading.Lock()

    @client.lock(key)
    def work(number: int, *, by: int = 1) -> int:
        """Adds."""
        assert alone.acquire(blocking=False)
        assert client.lock(key).try_acquire() is None
        alone.release()
        return number + by

    assert work.__name__ == "work" and work.__doc__ == "Adds."
    sums: list[int] = []
    threads = [
        threading.Thread(target=lambda: sums.extend(work(each, by=10) for each in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(sums) == sorted(4 * [10, 11, 12, 13, 14])
    assert is_free(client, key)


def test_a_decorated_function_keeps_its_errors_and_tells_a_loss(client: Client, key: str) -> None:
    @client.rw_lock(key).write()
    def fails() -> None:
        1 / 0

    with pytest.raises(ZeroDivisionError):
        fails()
    assert is_free(client, key)
    lost = f"{key}/lost"

    def is_held() -> bool:
        return any(hold.terms.key == lost.encode() for hold in list(client._holds))

    @client.lock(lost, lease=1)
    def late() -> None:
        client.force_release(lost, "test")
        eventually(lambda: not is_held())

    with pytest.raises(LockLost):
        late()


def test_a_function_that_goes_on_after_its_call_is_no_decorated_one(client: Client) -> None:
    async def coroutine() -> None: ...

    def generator() -> Any:
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="goes on after its call"):
            client.lock("key")(function)
    with pytest.raises(TypeError, match="no coroutine function"):
        aio.Lock(None, None, None)(lambda: None)  # type: ignore[arg-type]


def test_a_decorated_coroutine_acquires_anew_and_ends_with_its_lock(
    shared: Coordinator, key: str
) -> None:
    async def work() -> None:
        inside: list[int] = []
        async with aio.Client(shared.address) as client:

            @client.lock(key)
            async def add(number: int) -> int:
                """Adds."""
                inside.append(number)
                assert len(inside) == 1
                assert await client.lock(key).try_acquire() is None
                inside.remove(number)
                return number + 1

            assert add.__name__ == "add" and add.__doc__ == "Adds."
            assert await asyncio.gather(*map(add, range(5))) == [1, 2, 3, 4, 5]

            cancelled = asyncio.Event()

            @client.lock(key, lease=1)
            async def long() -> None:
                try:
                    await client.force_release(key, "test")
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise

            with pytest.raises(LockLost):
                await long()
            assert cancelled.is_set()

    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_several_locks_are_all_held_or_none(client: Client, key: str) -> None:
    one, two, three = (f"{key}/{number}" for number in (1, 2, 3))
    with client.multi_lock([three, one, two, one]) as several:
        assert several.held and 0 < several.remaining <= 30
        assert set(several.tokens) == {one, two, three} and all(several.tokens.values())
        assert not any(is_free(client, each) for each in (one, two, three))
    assert all(is_free(client, each) for each in (one, two, three))
    assert several.release() is Outcome.LOST and not several.held
    with client.lock(three):
        assert client.multi_lock([one, two, three]).try_acquire() is None
        assert is_free(client, one) and is_free(client, two)
        with pytest.raises(NotAcquired):
            client.multi_lock([one, two, three], wait=0.2).acquire()
        assert is_free(client, one) and is_free(client, two)


def test_several_locks_share_one_wait(
    client: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, waits = ringfence.Lock._acquire, []

    def record(lock: ringfence.Lock, wait: float, lost: threading.Event) -> ringfence.Guard:
        waits.append(wait)
        return acquire(lock, wait, lost)

    monkeypatch.setattr(ringfence.Lock, "_acquire", record)
    with client.multi_lock([f"{key}/1", f"{key}/2"], wait=60):
        assert 60 >= waits[0] > waits[1] >= 0


def test_sets_of_locks_are_acquired_in_one_order(client: Client, key: str) -> None:
    first, second = f"{key}/1", f"{key}/2"
    outcomes: list[Outcome] = []

    def acquire(*keys: str) -> None:
        outcomes.append(client.multi_lock(keys).acquire().release())

    held = client.lock(second).acquire()
    threads = [threading.Thread(target=acquire, args=(second, first), daemon=True)]
    threads[0].start()
    # It waits for the second, and has the first: another order could wait in a circle with it.
    eventually(lambda: not is_free(client, first))
    threads.append(threading.Thread(target=acquire, args=(first, second), daemon=True))
    threads[1].start()
    eventually(lambda: client.inspect(first).waiters)
    held.release()
    for thread in threads:
        thread.join(DEADLINE)
    assert outcomes == 2 * [Outcome.HELD]


def test_a_set_of_locks_is_lost_with_one_of_them(client: Client, key: str) -> None:
    one, two = f"{key}/1", f"{key}/2"
    with pytest.raises(LockLost):
        with client.multi_lock([one, two], lease=1) as both:
            client.force_release(one, "test")
            assert both.wait_lost(DEADLINE) and not both.held and both.remaining == 0
            with pytest.raises(LockLost):
                both.check()
    assert is_free(client, two)
    # The first is lost while it waits for the second.
    held = client.lock(two).acquire()
    errors: list[Exception] = []

    def acquire() -> None:
        try:
            client.multi_lock([one, two], lease=6).acquire()
        except LockLost as error:
            errors.append(error)

    waiter = threading.Thread(target=acquire, daemon=True)
    waiter.start()
    eventually(lambda: not is_free(client, one) and client.inspect(two).waiters)
    client.force_release(one, "test")
    eventually(lambda: len(client._holds) == 1)  # the keeper has seen it
    held.release()
    waiter.join(DEADLINE)
    assert len(errors) == 1 and is_free(client, two)


def test_keys_of_a_set_are_checked(client: Client) -> None:
    with pytest.raises(InvalidInput, match="keys is 0 different keys, must be 1 to 64"):
        client.multi_lock([])
    with pytest.raises(InvalidInput, match="keys is 65 different keys"):
        client.multi_lock(map(str, range(65)))
    with pytest.raises(TypeError, match="must be several keys"):
        client.multi_lock("key")


def test_tasks_have_several_locks(shared: Coordinator, client: Client, key: str) -> None:
    one, two = f"{key}/1", f"{key}/2"

    async def work() -> None:
        async with aio.Client(shared.address) as tasks:
            async with tasks.multi_lock([two, one]) as both:
                assert both.held and list(both.tokens) == [one, two]
                assert await both.run_while_held(asyncio.sleep(0, "done")) == "done"
            assert is_free(client, one) and is_free(client, two)
            async with tasks.lock(two):
                assert await tasks.multi_lock([one, two]).try_acquire() is None
                assert is_free(client, one)
                waiter = asyncio.create_task(tasks.multi_lock([one, two]).acquire())
                while not (await tasks.inspect(one)).holders:
                    await asyncio.sleep(0.01)
                await tasks.inspect(two)  # over the connection on which the grant has come by then
                waiter.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiter
                assert is_free(client, one)
            with pytest.raises(LockLost):
                async with tasks.multi_lock([one, two], lease=1) as both:
                    await tasks.force_release(two, "test")
                    await both.run_while_held(asyncio.sleep(600))
            assert is_free(client, one)

    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_a_cancelled_release_of_a_set_goes_on(
    shared: Coordinator, client: Client, key: str
) -> None:
    one, two = f"{key}/1", f"{key}/2"

    async def work() -> None:
        async with aio.Client(shared.address) as tasks:
            both = await tasks.multi_lock([one, two]).acquire()
            release = asyncio.create_task(both.release())
            await asyncio.sleep(0)  # it has begun
            release.cancel()
            with pytest.raises(asyncio.CancelledError):
                await release
            assert not both.held
            while not (is_free(client, one) and is_free(client, two)):
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_candidates_lead_one_after_the_other(
    shared: Coordinator, client: Client, key: str
) -> None:
    election = client.election(key)
    assert election.leader() is None
    leadership = election.campaign()
    assert leadership.is_leader and leadership.held
    assert election.try_acquire() is None
    with Client(shared.address, label="other") as other:
        followers: list[ringfence.Leadership] = []
        candidate = threading.Thread(
            target=lambda: followers.append(other.election(key).campaign()), daemon=True
        )
        candidate.start()
        eventually(lambda: client.inspect(key, namespace="election").waiters)
        assert leadership.resign() is Outcome.HELD and not leadership.is_leader
        candidate.join(DEADLINE)
        assert followers[0].is_leader and followers[0].token > leadership.token
        leader = election.leader()
        assert leader and leader.label == "other" and leader.first_token <= followers[0].token
    leadership = client.election(f"{key}/lost", lease=1).campaign()
    client.force_release(f"{key}/lost", "test", namespace="election")
    assert leadership.wait_lost(DEADLINE) and not leadership.is_leader


def test_tasks_are_candidates(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with aio.Client(shared.address) as client:
            election = client.election(key)
            async with election as leadership:
                leader = await election.leader()
                assert leadership.is_leader and leader and leader.first_token <= leadership.token
                assert await client.election(key).try_acquire() is None
                assert await leadership.resign() is Outcome.HELD
            assert await election.leader() is None
            leadership = await client.election(key, lease=1).campaign()
            await client.force_release(key, "test", namespace="election")
            await leadership.lost()
            assert not leadership.is_leader

    asyncio.run(asyncio.wait_for(work(), DEADLINE))
