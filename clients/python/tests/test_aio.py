"""Locks of the client for asyncio."""

from __future__ import annotations

import asyncio
import random
import signal
import time

import pytest

import ringfence
from ringfence import Change, Decision, LockLost, NotAcquired, Outcome, Reservation
from ringfence._clock import now
from ringfence.aio import Client

from conftest import SECRET, Coordinator, Redis, holder

LEASE = 1.2


def test_tasks_exclude_each_other_and_tokens_rise(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        state = [0, 0]

        async def add() -> None:
            for _ in range(20):
                async with client.lock(key) as guard:
                    assert guard.token > state[1]
                    number = state[0]
                    await asyncio.sleep(0.001)
                    state[:] = [number + 1, guard.token]

        async with Client(shared.address) as client:
            await asyncio.gather(*(add() for _ in range(5)))
        assert state[0] == 100

    asyncio.run(work())


def test_a_guard_is_lost_before_another_gets_the_lock_of_a_stopped_coordinator(
    serve: type[Coordinator], shared: Coordinator, key: str
) -> None:
    stopped = serve()

    async def work() -> None:
        dangers: list[ringfence.Danger] = []
        async with Client(stopped.address) as one, Client(shared.address) as other:
            guard = await one.lock(key, lease=LEASE, on_danger=dangers.append).acquire()
            await asyncio.sleep(LEASE)
            assert guard.held and not dangers
            stopped.signal(signal.SIGSTOP)
            lost_at: list[float] = []

            async def watch() -> None:
                await guard.lost()
                lost_at.append(now())

            watcher = asyncio.create_task(watch())
            async with other.lock(key, wait=20):
                granted_at = now()
                assert not guard.held
            await watcher
            assert lost_at[0] < granted_at and len(dangers) == 1
            assert await guard.release() is Outcome.LOST

    asyncio.run(work())


def test_a_lock_goes_on_at_another_coordinator(
    serve: type[Coordinator], shared: Coordinator, key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))

    async def work() -> None:
        async with Client([one.address, two.address]) as both, Client(shared.address) as other:
            async with both.lock(key, lease=LEASE) as guard:
                one.kill()
                ends = now() + 2 * LEASE
                while now() < ends:
                    assert guard.held
                    assert await other.lock(key).try_acquire() is None
                    await asyncio.sleep(LEASE / 20)

    asyncio.run(work())


def test_a_lock_is_kept_while_its_coordinator_gives_no_answers(
    serve: type[Coordinator], shared: Coordinator, key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))

    lease = 3 * LEASE  # a part of it is lost at the silent one

    async def work() -> None:
        both = Client([one.address, two.address], timeout=0.5)
        async with both, Client(shared.address) as other:
            async with both.lock(key, lease=lease) as guard:
                one.signal(signal.SIGSTOP)
                ends = now() + 1.5 * lease
                while now() < ends:
                    assert guard.held
                    assert await other.lock(key).try_acquire() is None
                    await asyncio.sleep(lease / 20)
                async with both.lock(f"{key}/other", wait=20):
                    pass
                assert guard.held

    asyncio.run(work())


def test_a_cancelled_acquisition_leaves_nothing_locked(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        chance = random.Random(1)
        async with Client(shared.address) as client:
            began = time.monotonic()
            await (await client.lock(key).acquire()).release()
            takes = time.monotonic() - began
            cancelled = granted = 0
            while min(cancelled, granted) < 20:
                name = f"{key}/{cancelled + granted}"
                attempt = asyncio.create_task(client.lock(name).acquire())
                await asyncio.sleep(chance.uniform(0, 2 * takes))
                attempt.cancel()
                try:
                    await (await attempt).release()
                    granted += 1
                except asyncio.CancelledError:
                    cancelled += 1
                # Less than the lease, which is 30 s.
                await (await client.lock(name, wait=20).acquire()).release()

    asyncio.run(work())


def test_work_is_cancelled_when_the_lock_is_lost(
    shared: Coordinator, redis: Redis, key: str
) -> None:
    async def work() -> None:
        async with Client(shared.address) as client:
            cancelled = asyncio.Event()

            async def long() -> None:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise

            with pytest.raises(LockLost):
                async with client.lock(key, lease=LEASE) as guard:
                    assert await guard.run_while_held(asyncio.sleep(0, "done")) == "done"
                    command = ("locks", "release", key, "--reason", "test")
                    await asyncio.to_thread(redis.ringfence, *command)
                    await guard.run_while_held(long())
            assert cancelled.is_set()

    asyncio.run(work())


def test_waits_end_exceptions_release_and_so_does_garbage(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with Client(shared.address) as client:
            with pytest.raises(ZeroDivisionError):
                async with client.lock(key):
                    with pytest.raises(NotAcquired):
                        await client.lock(key, wait=0.1).acquire()
                    1 / 0
            guard = await client.lock(key).try_acquire()
            assert guard
            del guard
            async with client.lock(key, wait=20) as guard:
                pass

    asyncio.run(work())


def test_a_closed_client_hands_its_locks_over(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        client = Client(shared.address)
        guard = await client.lock(key).acquire()
        await client.close()
        await asyncio.wait_for(guard.lost(), 20)
        assert not guard.held
        async with Client(shared.address) as other:
            await other.lock(key, wait=20).acquire()  # the lease is 30 s

    asyncio.run(work())


HOLDS = """
import asyncio, sys, ringfence
_, address, key = sys.argv
async def main():
    async with ringfence.aio.Client(address) as client, client.lock(key):
        print("held", flush=True)
        await asyncio.sleep(600)
ringfence.aio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_hands_the_lock_over(
    shared: Coordinator, key: str, number: signal.Signals
) -> None:
    process = holder(HOLDS, shared.address, key)
    process.send_signal(number)
    with ringfence.Client(shared.address) as client:
        client.lock(key, wait=20).acquire().release()  # the lease is 30 s
    assert process.wait(60) == 128 + number


def test_closing_a_client_ends_its_waits(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with Client(shared.address) as other, other.lock(key):
            client = Client(shared.address)
            waiter = asyncio.create_task(client.lock(key).acquire())
            await asyncio.wait({waiter}, timeout=0.5)
            await asyncio.wait_for(client.close(), 20)
            with pytest.raises(ringfence.RingfenceError, match="closed"):
                await asyncio.wait_for(waiter, 20)

    asyncio.run(work())


def test_a_latch_opens_by_distinct_requests(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with Client(shared.address) as client:
            latch = client.latch(key)
            await latch.set(1, "memory")
            assert await latch.remaining() == 1 and not await latch.wait(0.1)
            opened = asyncio.create_task(latch.wait(20))
            await latch.count_down(ringfence.RequestId.new())
            assert await opened

    asyncio.run(work())


def test_counters_change_once_per_request(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with Client(shared.address) as client:
            account = client.account(key)
            await account.create("memory")
            gift = ringfence.RequestId.new()
            for _ in range(2):
                await account.deposit(gift, 100)
            await account.deduct(ringfence.RequestId.new(), 1)
            assert (await account.balance(exact=True)).available == 99
            assert (await account.find(gift)).decision is Decision.DONE
            takes = [Change.deduct(key, ringfence.RequestId.new(), 60) for _ in range(2)]
            made = await client.change(takes)
            assert sorted(changed.error is None for changed in made) == [False, True]

    asyncio.run(work())


def test_every_kind_is_there(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with Client(shared.address) as client:
            async with client.semaphore(f"{key}/jobs", 3, permits=2):
                assert await client.semaphore(f"{key}/jobs", 3, permits=2).try_acquire() is None
            table = client.rw_lock(key, wait=20)
            async with table.write() as writer:
                assert await table.read().try_acquire() is None
                await writer.downgrade()
                async with table.read() as reader:
                    assert reader.token > writer.token
            account = client.account(key)
            await account.create("memory")
            await account.deposit(ringfence.RequestId.new(), 10)
            request = ringfence.RequestId.new()
            await account.reserve(request, 3, time.time() + 60)
            assert (await account.confirm(request)).reservation is Reservation.CONFIRMED
            with pytest.raises(ringfence.RingfenceError) as caught:
                await account.cancel(ringfence.RequestId.new("unknown"))
                await account.transfer(ringfence.RequestId.new(), 1, f"{key}/missing")
            assert caught.value.reason == "NO_ACCOUNT"

    asyncio.run(work())
