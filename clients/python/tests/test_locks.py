"""Locks of the blocking client."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import pathlib
import signal
import threading
import time

import grpc
import pytest

import ringfence
from ringfence import Change, Client, Decision, EffectKind, LockLost, NotAcquired, Outcome, Reservation, _rules
from ringfence._clock import now

from conftest import (
    LONG,
    SECRET,
    VIEW,
    Coordinator,
    Redis,
    Relay,
    eventually,
    holder,
    slow_answers,
)

LEASE = 1.2


def add_one(address: str, key: str, path: pathlib.Path, times: int) -> None:
    """Adds one to the number in a file, again and again, in steps that exclude nothing."""
    with Client(address) as client:
        for _ in range(times):
            with client.lock(key) as guard:
                number, token = map(int, path.read_text().split())
                assert guard.token > token
                time.sleep(0.001)
                path.write_text(f"{number + 1} {guard.token}")


def test_processes_exclude_each_other_and_tokens_rise(
    shared: Coordinator, key: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "number"
    path.write_text("0 0")
    context = multiprocessing.get_context("spawn")
    arguments = (shared.address, key, path, 100)
    processes = [context.Process(target=add_one, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert path.read_text().startswith("200 ")


def test_a_guard_is_lost_before_another_gets_the_lock_of_a_stopped_coordinator(
    serve: type[Coordinator], client: Client, key: str
) -> None:
    stopped, dangers = serve(), []
    with Client(stopped.address) as other:
        guard = other.lock(key, lease=LEASE, on_danger=dangers.append).acquire()
        lost_at = []
        watcher = threading.Thread(target=lambda: lost_at.append(guard.wait_lost() and now()))
        watcher.start()
        time.sleep(LEASE)  # some renewals
        assert guard.held and not dangers
        stopped.signal(signal.SIGSTOP)
        with client.lock(key, wait=20):
            granted_at = now()
            assert not guard.held
        watcher.join(20)
        assert lost_at[0] < granted_at
        (danger,) = dangers
        assert danger.key == key.encode() and danger.token == guard.token
        assert isinstance(danger.error, ringfence.Unavailable)
        with pytest.raises(LockLost):
            guard.check()
        assert guard.release() is Outcome.LOST


def test_a_lease_counts_from_before_the_request(shared: Coordinator, key: str) -> None:
    delay = LEASE / 5
    with Client(slow_answers(shared.address, delay)) as client:
        client.account(key).create("memory")  # connects
        guard = client.lock(key, lease=LEASE).acquire()
        # The answer was late, and so is that of every renewal.
        for _ in range(20):
            assert guard.remaining <= LEASE - delay
            time.sleep(LEASE / 20)
        assert guard.held


def test_a_lock_whose_answer_was_lost_is_granted_to_the_repeat(
    shared: Coordinator, serve: type[Coordinator], key: str
) -> None:
    relay = Relay(shared.address)
    with Client([relay.address, serve().address]) as client:
        client.account(key).create("memory")  # connects
        for wait, losses in ((20.0, 1), (0.0, 1), (20.0, 2)):  # the lease is 30 s
            relay.loses = losses
            guard = client.lock(key, wait=wait).acquire()
            assert relay.loses == 0
            assert guard.release() is Outcome.HELD


def test_an_idle_connection_that_went_silent_is_noticed(shared: Coordinator, key: str) -> None:
    relay = Relay(shared.address)
    with Client(relay.address, timeout=0.5) as client:
        client.account(key).create("memory")
        relay.forgets.set()
        assert relay.left.wait(60)


def test_a_release_waits_for_the_connection(shared: Coordinator, key: str) -> None:
    relay = Relay(shared.address)
    with Client(relay.address, timeout=20) as client:
        guard = client.lock(key).acquire()
        relay.down()
        threading.Timer(0.5, relay.up).start()
        assert guard.release() is Outcome.HELD


def test_a_lock_goes_on_at_another_coordinator(
    serve: type[Coordinator], client: Client, key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))
    with Client([one.address, two.address]) as both:
        with both.lock(key, lease=LEASE) as guard:
            one.kill()
            ends = now() + 2 * LEASE
            while now() < ends:
                assert guard.held
                assert client.lock(key).try_acquire() is None
                time.sleep(LEASE / 20)
        with client.lock(key) as next_guard:
            assert next_guard.token > guard.token


def test_a_lock_is_kept_while_its_coordinator_gives_no_answers(
    serve: type[Coordinator], client: Client, key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))
    lease = 3 * LEASE  # a part of it is lost at the silent one
    with Client([one.address, two.address], timeout=0.5) as both:
        with both.lock(key, lease=lease) as guard:
            one.signal(signal.SIGSTOP)
            ends = now() + 1.5 * lease
            while now() < ends:
                assert guard.held
                assert client.lock(key).try_acquire() is None
                time.sleep(lease / 20)
            with both.lock(f"{key}/other", wait=20) as other:
                assert other.held
            two.signal(signal.SIGSTOP)
            one.signal(signal.SIGCONT)
            time.sleep(1.5 * lease)
            assert guard.held


def test_a_wait_goes_on_at_another_coordinator(serve: type[Coordinator], key: str) -> None:
    one, two = serve(), serve()
    with Client(two.address) as other, Client([one.address, two.address], timeout=0.5) as both:
        held = other.lock(key).acquire()
        granted = []
        waiter = threading.Thread(
            target=lambda: granted.append(both.lock(key).acquire()), daemon=True
        )
        waiter.start()
        time.sleep(0.1)
        one.signal(signal.SIGSTOP)
        time.sleep(2)
        assert not granted
        held.release()
        waiter.join(20)
        assert granted[0].release() is Outcome.HELD


def test_without_a_coordinator_an_acquisition_fails(serve: type[Coordinator], key: str) -> None:
    gone = serve()
    gone.kill()
    with Client(gone.address, timeout=0.2) as client:
        for wait in (0.0, 0.3, None):
            with pytest.raises(ringfence.Unavailable):
                client.lock(key, wait=wait).acquire()


def test_an_outage_counts_from_its_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(_rules, "now", lambda: clock[0])
    timeout = 1.0
    rule = _rules.acquire(_rules.Terms(b"key", "", "label", None, None, None), None, timeout, 1)
    down = ringfence.Unavailable("restarting", retryable=True, elsewhere=True)
    assert isinstance(next(rule), _rules.Call)
    clock[0] += 9 * timeout  # It waited for so long, and was served.
    for _ in range(20):
        assert isinstance(rule.throw(down), _rules.Pause)
        clock[0] += timeout / 10
        assert isinstance(next(rule), _rules.Call)
    clock[0] += timeout
    with pytest.raises(ringfence.Unavailable):
        rule.throw(down)


def test_a_fork_is_refused_at_once(client: Client, key: str) -> None:
    with client.lock(key):
        child = os.fork()
        if child == 0:
            try:
                client.lock(key, wait=1.0).acquire()
            except ringfence.RingfenceError as error:
                refused = "create a client in each process" in str(error) and not error.retryable
                os._exit(7 if refused else 1)
            os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7


def test_a_wait_has_an_end(client: Client, key: str) -> None:
    with client.lock(key):
        began = now()
        with pytest.raises(NotAcquired) as caught:
            client.lock(key, wait=0.3).acquire()
        assert 0.3 <= now() - began
        assert caught.value.reason == "TIMED_OUT" and caught.value.retryable
        assert not caught.value.may_have_taken_effect
        assert client.lock(key).try_acquire() is None


def test_an_exception_releases(client: Client, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        with client.lock(key):
            1 / 0
    guard = client.lock(key).try_acquire()
    assert guard and guard.release() is Outcome.HELD
    assert guard.release() is Outcome.LOST


def test_a_lock_that_was_taken_away_is_told(client: Client, redis: Redis, key: str) -> None:
    with pytest.raises(LockLost):
        with client.lock(key, lease=LEASE) as guard:
            redis.ringfence("locks", "release", key, "--reason", "test")
            assert guard.wait_lost(20) and not guard.held and guard.remaining == 0


def test_a_fixed_hold_ends_and_warns(client: Client, key: str) -> None:
    warned = threading.Event()
    lock = client.lock(key, lease=LEASE, hold_for=1.5 * LEASE, on_danger=lambda _: warned.set())
    guard = lock.acquire()
    assert warned.wait(20) and guard.held
    assert guard.wait_lost(20)


def test_a_lock_is_renewed_in_time_as_the_view_of_its_coordinator_ends(
    short_views: tuple[Redis, Coordinator], key: str
) -> None:
    redis, coordinator = short_views
    with Client(coordinator.address) as client:

        def hold(number: int) -> ringfence.Guard:
            time.sleep(VIEW / 40)
            return client.lock(f"{key}/{number}", lease=LONG).acquire()

        guards = [hold(number) for number in range(30)]  # at all times of a view
        eventually(lambda: hold(30).remaining > 0.9 * VIEW)
        # The coordinator cannot renew its view until less is left of it than a third, the usual time between renewals.
        redis.process.send_signal(signal.SIGSTOP)
        time.sleep(0.6 * VIEW)
        redis.process.send_signal(signal.SIGCONT)
        time.sleep(VIEW / 2)
        assert all(guard.held for guard in guards)
        assert {guard.release() for guard in guards} == {Outcome.HELD}


def test_after_a_long_wait_the_lease_is_a_whole_one(client: Client, key: str) -> None:
    held = client.lock(key).acquire()
    threading.Timer(2 * LEASE, held.release).start()
    with client.lock(key, lease=LEASE) as guard:
        assert guard.remaining > LEASE / 2


HOLDS = """
import sys, threading, time, ringfence
_, address, key = sys.argv
client = ringfence.Client(address)
def hold():
    guard = client.lock(key).acquire()
    print("held", flush=True)
    return guard
begun = threading.Event()
def in_thread(guard):
    begun.set()
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "way",
    [
        "kept = hold()",
        "with client: kept = hold()",
        "kept = hold(); 1 / 0",
        "threading.Thread(target=lambda: in_thread(hold()), daemon=True).start(); begun.wait()",
    ],
)
def test_a_process_that_ends_hands_its_lock_over(
    shared: Coordinator, client: Client, key: str, way: str
) -> None:
    process = holder(HOLDS + way, shared.address, key)
    client.lock(key, wait=20).acquire().release()  # the lease is 30 s
    process.wait(60)


@pytest.mark.parametrize("way", ["with hold(): time.sleep(600)", "kept = hold(); time.sleep(600)"])
def test_a_signal_hands_the_lock_over(
    shared: Coordinator, client: Client, key: str, way: str
) -> None:
    process = holder(f"{HOLDS}ringfence.exit_on_signal()\n{way}", shared.address, key)
    process.send_signal(signal.SIGTERM)
    client.lock(key, wait=20).acquire().release()  # the lease is 30 s
    assert process.wait(60) == 128 + signal.SIGTERM


def test_a_guard_that_is_garbage_releases(client: Client, key: str) -> None:
    guard = client.lock(key).acquire()
    assert client.lock(key).try_acquire() is None
    del guard
    gc.collect()
    client.lock(key, wait=20).acquire().release()


def test_bad_input_names_the_limit(client: Client, key: str) -> None:
    with pytest.raises(ringfence.RingfenceError, match="lease is .*at least 100ms") as caught:
        client.lock(key, lease=0.001).acquire()
    assert caught.value.reason == "INVALID_INPUT" and not caught.value.retryable


def test_a_lock_is_in_one_with_at_a_time(client: Client, key: str) -> None:
    lock = client.lock(key)
    with lock:
        with pytest.raises(RuntimeError, match="Client.lock"):
            lock.__enter__()
    with lock:
        pass


def test_principals_have_tokens_over_tls(
    serve: type[Coordinator], certificate: tuple[str, str], key: str
) -> None:
    cert, secret = certificate
    digest = hashlib.sha256(b"s3cret").hexdigest()
    more = f'[tls]\ncert = "{cert}"\nkey = "{secret}"\n'
    more += f'[principals.job]\nsha256 = "{digest}"\nacquire = ["*"]'
    address = serve(more).address
    credentials = grpc.ssl_channel_credentials(pathlib.Path(cert).read_bytes())
    with Client(address, credentials=credentials, token="s3cret") as client:
        with client.lock(key) as guard:
            assert guard.held
    with Client(address, credentials=credentials, token="wrong") as client:
        with pytest.raises(ringfence.RingfenceError) as caught:
            client.lock(key).acquire()
        assert caught.value.reason == "UNAUTHENTICATED"
    with Client(address, timeout=0.2) as client, pytest.raises(ringfence.Unavailable):
        client.lock(key, wait=0).acquire()


def test_counters_change_once_per_request(client: Client, key: str) -> None:
    account = client.account(key)
    account.create("memory", segments=2)
    gift, order = ringfence.RequestId.new("gift"), ringfence.RequestId.new("order")
    for _ in range(2):
        account.deposit(gift, 100)
        account.deduct(order, 30)
    with pytest.raises(ringfence.Insufficient):
        account.deduct(ringfence.RequestId.new(), 71)
    balance = account.balance(exact=True)
    assert (balance.available, balance.held, balance.counts_twice) == (70, 0, False)
    eventually(lambda: account.balance().available == 70)


def test_a_latch_opens_by_distinct_requests(client: Client, key: str) -> None:
    latch = client.latch(key)
    assert not latch.wait(0)  # it is not set
    with pytest.raises(ringfence.RingfenceError) as caught:
        latch.set(0, "memory")
    assert caught.value.reason == "INVALID_INPUT"
    for _ in range(2):
        latch.set(2, "memory")
    with pytest.raises(ringfence.RingfenceError) as caught:
        latch.set(3, "memory")
    assert caught.value.reason == "ACCOUNT_EXISTS" and not caught.value.retryable
    first = ringfence.RequestId.new("1")
    for _ in range(3):
        latch.count_down(first)
        assert latch.remaining() == 1
    assert not latch.wait(0.2)
    opened = []
    waiter = threading.Thread(target=lambda: opened.append(latch.wait(20)))
    waiter.start()
    latch.count_down(ringfence.RequestId.new("2"))
    waiter.join(20)
    assert opened == [True]
    assert latch.remaining() == 0 and latch.wait(1)


def test_permits_are_taken_as_long_as_there_are_some(client: Client, key: str) -> None:
    permit = client.semaphore(key, 3)
    with client.semaphore(key, 3, permits=2, lease=LEASE) as two, permit as one:
        assert one.token > two.token
        time.sleep(2 * LEASE)  # both are renewed
        assert permit.try_acquire() is None
    with client.semaphore(key, 3, permits=3), pytest.raises(ringfence.RingfenceError) as caught:
        client.lock(key, wait=0).acquire()
    assert caught.value.reason == "OTHER_KIND"
    with pytest.raises(ringfence.RingfenceError, match="permits is 4, must be at most 3"):
        client.semaphore(key, 3, permits=4).acquire()


def test_readers_come_in_when_the_writer_becomes_one(client: Client, key: str) -> None:
    table = client.rw_lock(key, wait=20)
    writer = table.write().acquire()
    assert table.read().try_acquire() is None
    writer.downgrade()
    writer.downgrade()
    with table.read() as reader:
        assert writer.held and reader.token > writer.token
        assert table.write().try_acquire() is None
        assert writer.release() is Outcome.HELD
    with table.write() as next_writer, pytest.raises(ringfence.RingfenceError) as caught:
        client.lock(f"{key}/mutex").acquire().downgrade()
    assert caught.value.reason == "INVALID_INPUT" and next_writer.token > reader.token


def test_preferred_readers_go_before_a_writer_that_waits(client: Client, key: str) -> None:
    table = client.rw_lock(key, wait=20, prefer="readers")
    writers = threading.Thread(target=lambda: table.write().acquire().release())
    with table.read():
        writers.start()
        eventually(lambda: client.rw_lock(key).read().try_acquire() is None)
        with table.read():
            pass
    writers.join(20)
    assert not writers.is_alive()
    with pytest.raises(ValueError, match="prefer is 'writer', must be"):
        client.rw_lock(key, prefer="writer")  # type: ignore[arg-type]


def test_a_writer_goes_on_at_another_coordinator_as_a_reader(
    serve: type[Coordinator], key: str
) -> None:
    one, two = (serve(f'handle_secret = "{SECRET}"') for _ in range(2))
    with Client([one.address, two.address]) as client:
        with client.rw_lock(key, lease=6).write() as writer:
            one.kill()
            writer.downgrade()
            deadline = writer._hold.deadline
            eventually(lambda: writer._hold.deadline > deadline)  # renewed as a reader
            with client.rw_lock(key, wait=20).read():
                assert writer.held
            assert client.rw_lock(key).write().try_acquire() is None


def test_limits_units_and_references_are_kept(client: Client, key: str) -> None:
    euros, dollars = client.account(f"{key}/euros"), client.account(f"{key}/dollars")
    euros.create("memory", floor=-10, ceiling=5, unit="EUR")
    dollars.create("memory", unit="USD")
    new = ringfence.RequestId.new
    taken = euros.deduct(new(reference=b"0123456789abcdef"), 4)
    assert taken.balance == ringfence.BalanceAfter(ledger=-4, available=6, held=0)
    with pytest.raises(ringfence.Insufficient):
        euros.deduct(new(), 7)
    with pytest.raises(ringfence.OutOfRange):
        euros.deposit(new(), 10)
    with pytest.raises(ringfence.OtherUnit):
        euros.transfer(new(), 1, f"{key}/dollars")
    with pytest.raises(ringfence.InvalidInput):
        euros.deposit(new(reference=b"short"), 1)
    assert euros.balance(exact=True).ledger == -4
    assert [effect.reference for effect in euros.history().effects] == [b"0123456789abcdef"]
    changed = client.change([Change.deposit(f"{key}/euros", new(), 9)])
    assert changed[0].balance == ringfence.BalanceAfter(ledger=5, available=15, held=0)
    euros.label({"owner": "7", "tier": "gold"})
    euros.label({"tier": None})
    found = euros.inspect()
    assert (found.unit, found.floor, found.ceiling) == ("EUR", -10, 5)
    assert found.labels == {"owner": "7"}
    listed = [each.labels for each in client.accounts(f"{key}/euros")]
    assert listed == [{"owner": "7"}]


def test_what_is_reserved_is_spent_or_comes_back(client: Client, key: str) -> None:
    account, other = client.account(key), client.account(f"{key}/other")
    for each in (account, other):
        each.create("memory", segments=2)
    account.deposit(ringfence.RequestId.new(), 100)
    spent, back = ringfence.RequestId.new(), ringfence.RequestId.new()
    until = time.time() + 60
    for request in (spent, spent, back):
        assert account.reserve(request, 30, until).reservation is Reservation.HELD
    assert account.confirm(spent).reservation is Reservation.CONFIRMED
    assert account.cancel(spent).reservation is Reservation.CONFIRMED
    assert account.cancel(back).reservation is Reservation.CANCELLED
    gift = ringfence.RequestId.new()
    for _ in range(2):
        account.transfer(gift, 20, f"{key}/other")
    balances = [each.balance(exact=True).available for each in (account, other)]
    assert balances == [50, 20]


def test_several_accounts_are_paid_or_none(client: Client, key: str) -> None:
    account, seller, fees = f"{key}/buyer", f"{key}/seller", f"{key}/fees"
    for name in (account, seller, fees):
        client.account(name).create("memory")
    buyer = client.account(account)
    buyer.deposit(ringfence.RequestId.new(), 100)
    legs = {seller: 20, fees: 1}
    gift = ringfence.RequestId.new()
    for _ in range(2):
        buyer.transfer_legs(gift, legs)
    order, part = ringfence.RequestId.new(), ringfence.RequestId.new()
    for held in (order, part):
        buyer.reserve(held, 30, time.time() + 60)
    for _ in range(2):
        captured = buyer.capture(order, ringfence.RequestId.new(), legs)
        assert captured.reservation is Reservation.CONFIRMED
    assert buyer.confirm(part, 5).reservation is Reservation.CONFIRMED
    client.account(fees).close_permanently()
    with pytest.raises(ringfence.TransferRefused):
        buyer.transfer_legs(ringfence.RequestId.new(), legs)
    with pytest.raises(ringfence.InvalidInput):
        buyer.transfer_legs(ringfence.RequestId.new(), {})
    (refused,) = client.change([Change.transfer_legs(account, ringfence.RequestId.new(), legs)])
    assert isinstance(refused.error, ringfence.TransferRefused)
    balances = [client.account(name).balance(exact=True).available for name in (account, seller, fees)]
    assert balances == [53, 40, 2]


def test_a_request_is_found(client: Client, key: str) -> None:
    account = client.account(key)
    account.create("memory")
    account.deposit(ringfence.RequestId.new(), 100)
    order, held = ringfence.RequestId.new("order"), ringfence.RequestId.new("held")
    assert account.find(order).decision is Decision.NEVER_SEEN
    account.deduct(order, 30)
    assert account.find(order) == ringfence.Found(Decision.DONE)
    until = (held.created_at_ms + 60_000) / 1000
    account.reserve(held, 5, until)
    assert account.find(held) == ringfence.Found(Decision.HELD, amount=5, deadline=until)
    account.cancel(held)
    assert account.find(held).decision is Decision.CANCELLED
    brief = client.account(f"{key}/brief")
    brief.create("memory", segments=1, idempotency_for=1, idempotency_at_least=1)
    old = ringfence.RequestId.new("old")
    brief.deposit(old, 1)

    def is_forgotten() -> bool:
        brief.deposit(ringfence.RequestId.new(), 1)
        found = brief.find(old)
        return found.decision is Decision.FORGOTTEN and found.forgotten_until is not None

    eventually(is_forgotten)


def test_the_log_has_every_effect_once(client: Client, key: str) -> None:
    account, other = client.account(key), client.account(f"{key}/other")
    account.create("memory", segments=1)
    other.create("memory", segments=1)
    gift, held, payment = (ringfence.RequestId.new(name) for name in ("gift", "held", "payment"))
    account.deposit(gift, 100)
    account.deposit(gift, 100)
    account.reserve(held, 5, held.created_at_ms / 1000 + 60)
    account.confirm(held)
    first = account.history(limit=2)
    kinds = [effect.kind for effect in first.effects]
    assert kinds == [EffectKind.DEPOSITED, EffectKind.RESERVED] and not first.end
    assert first.effects[0].request == gift
    account.transfer(payment, 30, f"{key}/other")
    rest = account.history(first.next)
    told = [(effect.kind, effect.available, effect.held) for effect in rest.effects]
    assert told == [
        (EffectKind.CONFIRMED, 95, 0),
        (EffectKind.SENT, 65, 30),
        (EffectKind.DELIVERED, 65, 0),
    ]
    assert rest.end and rest.effects[1].counterpart == f"{key}/other"
    assert account.history(rest.next).effects == []
    (received,) = other.history(since=gift.created_at_ms / 1000 - 60).effects
    assert (received.kind, received.request, received.counterpart) == (
        EffectKind.RECEIVED,
        payment,
        key,
    )
    unlogged = client.account(f"{key}/unlogged")
    unlogged.create("memory", effects_max=0)
    with pytest.raises(ringfence.InvalidInput):
        unlogged.history()


def test_many_changes_are_made_and_each_fails_alone(client: Client, key: str) -> None:
    other = f"{key}/other"
    for name in (key, other):
        client.account(name).create("memory", segments=2)
    new = ringfence.RequestId.new
    gifts = [Change.deposit(key, new(), 1) for _ in range(2500)]
    for _ in range(2):
        assert all(changed.error is None for changed in client.change(gifts))
    assert client.account(key).balance(exact=True).available == 2500
    held = new()
    made = client.change(
        [
            Change.deduct(key, new(), 9000),
            Change.reserve(key, held, 5, time.time() + 60),
            Change.deposit(f"{key}/missing", new(), 1),
            Change.transfer(key, new(), 7, other),
        ]
    )
    assert isinstance(made[0].error, ringfence.Insufficient)
    assert made[1].reservation is Reservation.HELD
    assert isinstance(made[2].error, ringfence.NoAccount)
    assert made[3] == ringfence.Changed()
    ended = client.change([Change.confirm(key, held), Change.cancel(key, held)])
    assert ended[0] == ended[1] and not ended[0].error
    assert ended[0].reservation in (Reservation.CONFIRMED, Reservation.CANCELLED)
    assert client.change([]) == []
