"""Calls of operators: inspect, list, release by force; and the segments of accounts."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import ringfence
from ringfence import Client, LockKind, Outcome, aio, _rules, _views
from ringfence.v1 import counter_pb2, lock_pb2

from conftest import DEADLINE, Coordinator, eventually


def test_a_lock_is_inspected(shared: Coordinator, client: Client, key: str) -> None:
    free = client.inspect(key)
    assert free == ringfence.LockState((), ())
    with Client(shared.address, label="one") as one, Client(shared.address, label="two") as two:
        waiter = threading.Thread(target=lambda: two.lock(key).acquire().release(), daemon=True)
        with one.lock(key) as guard:
            waiter.start()
            eventually(lambda: client.inspect(key).waiters)
            (waiting,) = client.inspect(key).waiters
            assert waiting == ringfence.Waiter("two", 1, LockKind.MUTEX, 1, 1, True)
            (holder,) = client.inspect(key).holders
            assert 0 < holder.held_for <= DEADLINE
            assert holder.label == "one" and holder.first_token == guard.token
            assert holder.kind is LockKind.MUTEX and holder.exclusive and holder.permits == 1
            assert 0 < holder.remaining <= 30
        waiter.join(DEADLINE)
        with one.semaphore(key, 5, permits=2), two.semaphore(key, 5):
            holders = client.inspect(key).holders
            assert sorted(holder.permits for holder in holders) == [1, 2]
            assert {holder.kind for holder in holders} == {LockKind.SEMAPHORE}


def test_locks_are_listed_by_prefix_and_namespace(client: Client, key: str) -> None:
    with client.multi_lock([f"{key}/a", f"{key}/b"]), client.lock("a", namespace=f"list{id(key)}"):
        listed = {lock.key.decode(): lock for lock in client.locks(f"{key}/")}
        assert set(listed) == {f"{key}/a", f"{key}/b"}
        assert all(lock.namespace == "default" for lock in listed.values())
        assert all(lock.holder.label == client._label for lock in listed.values())
        (other,) = client.locks(namespace=f"list{id(key)}")
        assert other.key == b"a" and other.waiting == 0 and other.others == 0
        assert {lock.key for lock in client.locks()} >= {b"a", f"{key}/a".encode()}
        next(client.locks())  # and no more


def test_a_list_begins_again_at_another_coordinator(
    serve: type[Coordinator], client: Client, key: str
) -> None:
    gone, present = serve(), serve()
    gone.kill()

    async def work() -> list[bytes]:
        async with aio.Client([gone.address, present.address]) as both:
            return [lock.key async for lock in both.locks(key)]

    with client.lock(key), Client([gone.address, present.address]) as both:
        assert [lock.key for lock in both.locks(key)] == [key.encode()]
        assert asyncio.run(work()) == [key.encode()]


def test_a_list_that_ends_early_says_so() -> None:
    lock = lock_pb2.HeldLock(namespace="default", key=b"key")
    listing = _views.Listing(b"")
    assert [each.key for each in listing.page(lock_pb2.ListResponse(locks=[lock]))] == [b"key"]
    listing.end()
    assert list(listing.page(lock_pb2.ListResponse(shard="b", error="no answer"))) == []
    with pytest.raises(ringfence.ShardUnavailable, match="list of shard b ends early: no answer"):
        listing.end()


def test_a_lock_is_released_by_force(client: Client, key: str) -> None:
    assert client.force_release(key, "test") == ()
    guard = client.lock(key).acquire()
    (holder,) = client.force_release(key, "test")
    assert holder.first_token == guard.token
    with client.lock(key, wait=0) as later:
        assert later.token > guard.token
    assert guard.release() is Outcome.LOST
    with pytest.raises(ringfence.InvalidInput, match="reason") as caught:
        client.force_release(key, "")
    assert caught.value.field == "reason" and caught.value.limit


def test_a_release_by_force_is_not_repeated_after_a_lost_answer() -> None:
    request = lock_pb2.ReleaseRequest()
    for effect in (True, False):
        rule = _rules.ask("AdminService", "ForceRelease", request, 60, 1, repeatable=False)
        assert isinstance(next(rule), _rules.Call)
        error = ringfence.Unavailable("lost", retryable=True, may_have_taken_effect=effect)
        if effect:
            with pytest.raises(ringfence.Unavailable):
                rule.throw(error)
        else:
            assert isinstance(rule.throw(error), _rules.Pause)


def test_an_account_has_segments_and_an_end(client: Client, key: str) -> None:
    account = client.account(key)
    with pytest.raises(ringfence.NoAccount):
        account.inspect()
    account.create("memory", segments=2, idempotency_for=3600, skew=5, ids_max=1000)
    with pytest.raises(ringfence.AccountExists):
        account.create("memory", segments=2)
    account.deposit(ringfence.RequestId.new(), 7)
    state = account.inspect()
    assert state.homes == 2 and [segment.index for segment in state.segments] == [0, 1]
    assert sum(segment.available for segment in state.segments) == 7 and state.lost == ()
    assert not any(segment.in_doubt or segment.losses for segment in state.segments)
    account.resegment(3)
    assert account.inspect().homes == 3
    for _ in range(2):
        account.close_permanently()
    with pytest.raises(ringfence.AccountClosed):
        account.deposit(ringfence.RequestId.new(), 1)
    with pytest.raises(ringfence.NotDeletable):
        account.delete()
    account.deduct(ringfence.RequestId.new(), 7)
    for _ in range(2):
        account.delete()
    with pytest.raises(ringfence.NoAccount):
        account.inspect()


def test_a_lost_segment_has_the_amount_of_its_last_sweep() -> None:
    answer = counter_pb2.GetAccountResponse()
    answer.segments.lost.add(index=3)
    seen = answer.segments.lost.add(index=4).last_seen
    seen.amount, seen.losses = 9, 1
    seen.at.FromMilliseconds(1500)
    state = ringfence.AccountState.of(answer)
    assert state.homes is None and state.segments == ()
    assert state.lost == (
        ringfence.LostSegment(3, None, None, None),
        ringfence.LostSegment(4, 9, 1.5, 1),
    )


def test_tasks_make_the_calls_of_operators(shared: Coordinator, key: str) -> None:
    async def work() -> None:
        async with aio.Client(shared.address) as client:
            guard = await client.lock(key).acquire()
            (holder,) = (await client.inspect(key)).holders
            assert holder.first_token == guard.token
            assert [lock.key async for lock in client.locks(key)] == [key.encode()]
            (former,) = await client.force_release(key, "test")
            assert former.first_token == guard.token
            assert await guard.release() is Outcome.LOST
            account = client.account(key)
            await account.create("memory", segments=1)
            assert len((await account.inspect()).segments) == 1
            await account.close_permanently()
            with pytest.raises(ringfence.AccountClosed):
                await account.deposit(ringfence.RequestId.new(), 1)
            await account.delete()

    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def test_accounts_are_listed_by_what_they_need(shared: Coordinator, client: Client, key: str) -> None:
    names = [f"{key}/{nth}" for nth in range(5)]
    for name in names:
        client.account(name).create("memory", segments=1)
    held = client.account(names[3])
    held.deposit(ringfence.RequestId.new(), 10)
    held.reserve(ringfence.RequestId.new(), 4, time.time() + 60)
    listed = {account.name: account for account in client.accounts(f"{key}/")}
    assert sorted(listed) == names
    (segment,) = listed[names[3]].segments
    assert (segment.available, segment.held, listed[names[3]].error) == (6, 4, None)
    assert [account.name for account in client.accounts(f"{key}/", held=True)] == [names[3]]
    assert not list(client.accounts(f"{key}/", in_doubt=True, lost=True))

    async def work() -> None:
        async with aio.Client(shared.address) as other:
            found = [account.name async for account in other.accounts(f"{key}/", held=True)]
            assert found == [names[3]]

    asyncio.run(asyncio.wait_for(work(), DEADLINE))
