//! The blocking API, on real servers.

use std::{
    panic::resume_unwind,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use ringfence_client::{
    AcquireError, BuildError, LatchError, ReleaseAnswer, Waiting,
    blocking::{Client, Guard, Lock},
    counter::{Amount, CounterError, Durability, Terms},
};
use ringfence_test_support::Servers;
use tokio::runtime::Builder;

use super::{DEADLINE, SECOND};

/// The time limit of a test's calls.
const CALLS_MAX: Duration = DEADLINE;

/// Makes `calls`, and fails if one of them blocks for ever: nothing ends it then but the end of this process, as of its
/// servers.
fn that_end(calls: impl FnOnce() + Send + 'static) {
    let (ends, end) = mpsc::channel::<()>();
    let calling = thread::spawn(move || {
        let _ends = ends;
        calls();
    });
    let ended = end.recv_timeout(CALLS_MAX);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "a call blocks");
    calling.join().unwrap_or_else(|panic| resume_unwind(panic));
}

/// Servers, whose own runtime stands still.
fn servers() -> Servers {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Servers::spawn(2))
}

fn client(servers: &Servers) -> Client {
    Client::build(servers.builder()).unwrap()
}

fn is_free(client: &Client, key: &str) -> bool {
    client.lock(key).inspect().unwrap().holder.is_none()
}

/// A service that keeps its lock, and a guard that is kept.
struct Service {
    lock: Lock,
    guard: Option<Guard>,
}

#[test]
fn a_thread_without_a_runtime_locks_and_releases() {
    that_end(|| {
        let servers = servers();
        let (client, other) = (client(&servers), client(&servers));
        let guard = client.lock(("order", 42)).acquire().unwrap();
        assert!(guard.is_held() && guard.remaining() > Duration::ZERO);
        let refused = other.lock("order/42").try_acquire();
        assert!(
            matches!(refused, Err(AcquireError::Held { .. })),
            "{refused:?}"
        );
        let late = other.lock("order/42").wait(SECOND / 10).acquire();
        assert!(matches!(late, Err(AcquireError::TimedOut { .. })));
        let token = guard.token();
        assert_eq!(guard.release(), ReleaseAnswer::Held);
        let next = other.lock("order/42").acquire().unwrap();
        assert!(next.token() > token);

        let both = client
            .multi_lock(["a", "b"])
            .wait(DEADLINE)
            .acquire()
            .unwrap();
        assert_eq!(both.tokens().len(), 2);
        assert!(!is_free(&other, "a") && both.is_held());
        assert_eq!(both.release(), ReleaseAnswer::Held);
        assert_eq!(client.close(), 0);
    });
}

#[test]
fn a_dropped_guard_of_a_thread_is_released_and_a_waiter_gets_the_lock() {
    that_end(|| {
        let servers = servers();
        let (client, other) = (client(&servers), client(&servers));
        let mut service = Service {
            lock: client.lock("key"),
            guard: None,
        };
        service.guard = Some(service.lock.acquire().unwrap());
        let (waits, waiting) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let told = move |_: Waiting| {
                let _ = waits.send(());
            };
            let lock = other.lock("key").on_wait(told).wait(DEADLINE);
            lock.acquire().map(Guard::release)
        });
        waiting.recv_timeout(DEADLINE).unwrap();
        drop(service.guard.take());
        assert_eq!(waiter.join().unwrap().unwrap(), ReleaseAnswer::Held);
    });
}

/// Renewed by the client's thread, while the caller's thread does something else.
#[test]
fn a_lock_is_renewed_while_its_thread_works_and_its_loss_is_told() {
    that_end(|| {
        let servers = servers();
        let client = client(&servers);
        let guard = client.lock("key").lease(6 * SECOND).acquire().unwrap();
        let deadline = guard.deadline();
        let (told, loss) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                guard.lost();
                told.send(guard.is_held()).unwrap();
            });
            while guard.deadline() == deadline {
                loss.recv_timeout(SECOND / 10).unwrap_err();
            }
            assert!(guard.is_held());
            client.lock("key").force_release("test").unwrap();
            assert!(!loss.recv_timeout(DEADLINE).unwrap());
        });
        assert!(!guard.is_held() && guard.remaining().is_zero());
        assert_eq!(guard.release(), ReleaseAnswer::Lost);
    });
}

#[test]
fn calls_work_inside_runtimes_of_either_kind() {
    that_end(|| {
        let servers = servers();
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder.enable_all().build().unwrap();
            runtime.block_on(async {
                let client = client(&servers);
                // More calls than a task may make before it has to yield.
                for round in 0..300 {
                    let guard = client.lock(("key", round % 3)).acquire().unwrap();
                    assert_eq!(guard.release(), ReleaseAnswer::Held);
                }
                drop(client.lock("kept").acquire().unwrap());
                let lock = client.asynchronous().lock("kept");
                drop(client.block_on(lock.acquire()).unwrap());
            });
        }
    });
}

#[test]
fn the_last_handle_leaves_no_lock_and_ends_its_thread() {
    that_end(|| {
        let servers = servers();
        let watching = client(&servers);
        let client = client(&servers);
        let guard = client.lock("key").acquire().unwrap();
        drop(client);
        assert!(!is_free(&watching, "key") && guard.is_held());
        drop(guard);
        assert!(is_free(&watching, "key"));
        let none = Client::build(Client::builder());
        assert!(matches!(none, Err(BuildError::NoShards)));
    });
}

#[test]
fn threads_lead_one_after_the_other_and_a_dropped_leadership_resigns() {
    that_end(|| {
        let servers = servers();
        let (one, two) = (client(&servers), client(&servers));
        let election = one.election("scheduler").label("one");
        let mut observer = two.election("scheduler").observe();
        assert_eq!(observer.changed().unwrap(), None);
        let first = election.campaign().unwrap();
        let seen = observer.changed().unwrap().expect("there is one");
        assert_eq!((seen.label.as_str(), seen.token), ("one", first.token()));
        let other = two.election("scheduler").wait(DEADLINE);
        let refused = other.try_campaign().map(|_| ());
        assert!(matches!(refused, Err(AcquireError::Held { .. })));
        assert!(first.is_held());
        let token = first.token();
        drop(first);
        let second = other.campaign().unwrap();
        assert!(second.token() > token);
        assert_eq!(second.resign(), ReleaseAnswer::Held);
        assert_eq!(election.leader().unwrap(), None);
    });
}

#[test]
fn a_thread_waits_for_a_latch_that_another_counts_down() {
    that_end(|| {
        let servers = servers();
        let (client, other) = (client(&servers), client(&servers));
        let latch = client.latch("latch").unwrap();
        latch.set(2, Durability::Memory).unwrap();
        let waiter = thread::spawn({
            let latch = other.latch("latch").unwrap();
            move || latch.opened_within(DEADLINE)
        });
        let request = client.counters().request("1").unwrap();
        latch.count_down(&request).unwrap();
        latch.count_down(&request).unwrap();
        assert_eq!(latch.remaining().unwrap(), 1);
        let late = latch.opened_within(SECOND / 10);
        assert!(matches!(late, Err(LatchError::TimedOut { .. })));
        let request = client.counters().request("2").unwrap();
        latch.count_down(&request).unwrap();
        waiter.join().unwrap().unwrap();
        latch.opened().unwrap();
        assert_eq!(latch.name().as_str(), "latch");
    });
}

#[test]
fn a_thread_moves_money_and_a_repeat_has_no_second_effect() {
    that_end(|| {
        let servers = servers();
        let client = client(&servers);
        let counters = client.counters_of("shop").unwrap();
        let terms = Terms::in_memory();
        let coins = counters.create("coins", terms, 2).unwrap();
        let savings = counters.create("savings", terms, 1).unwrap();
        let amount = |amount| Amount::new(amount).unwrap();
        coins.deposit(&counters.new_request(), amount(100)).unwrap();
        let order = counters.request("order").unwrap();
        for _ in 0..2 {
            coins.deduct(&order, amount(30)).unwrap();
        }
        let move_it = counters.new_request();
        coins.transfer(&move_it, amount(20), &savings).unwrap();
        let (held, deadline) = (counters.new_request(), counters.deadline_in(DEADLINE));
        coins.reserve(&held, amount(5), deadline).unwrap();
        coins.confirm(&held).unwrap();
        assert_eq!(coins.exact_balance().unwrap().available, 45);
        let opened = counters.open("savings").unwrap();
        assert_eq!(opened.balance().unwrap().available, 20);
        let short = coins.deduct(&counters.new_request(), amount(46));
        assert!(matches!(short, Err(CounterError::Insufficient)));
        assert_eq!(coins.segments().unwrap(), 2);
    });
}
