//! The blocking API, on real servers.

use std::{sync::mpsc, thread, time::Duration};

use ringfence_client::{
    AcquireError, BuildError, ReleaseAnswer, Waiting,
    blocking::{Client, Guard, Lock},
};
use ringfence_test_support::Servers;
use tokio::{runtime::Builder, time::Instant};

use super::SECOND;

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
        .wait(SECOND)
        .acquire()
        .unwrap();
    assert_eq!(both.tokens().len(), 2);
    assert!(!is_free(&other, "a") && both.is_held());
    assert_eq!(both.release(), ReleaseAnswer::Held);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_dropped_guard_of_a_thread_is_released_and_a_waiter_gets_the_lock() {
    let servers = servers();
    let (client, other) = (client(&servers), client(&servers));
    let mut service = Service {
        lock: client.lock("key").lease(2 * SECOND),
        guard: None,
    };
    service.guard = Some(service.lock.acquire().unwrap());
    let (waits, waiting) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let told = move |_: Waiting| {
            let _ = waits.send(());
        };
        let lock = other.lock("key").on_wait(told).wait(20 * SECOND);
        lock.acquire().map(Guard::release)
    });
    waiting.recv_timeout(20 * SECOND).unwrap();
    drop(service.guard.take());
    assert_eq!(waiter.join().unwrap().unwrap(), ReleaseAnswer::Held);
}

/// Renewed by the client's thread, while the caller's thread does something else.
#[test]
fn a_lock_is_renewed_while_its_thread_works_and_its_loss_is_told() {
    let servers = servers();
    let client = client(&servers);
    let guard = client.lock("key").lease(SECOND).acquire().unwrap();
    let deadline = guard.deadline();
    let (told, loss) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            guard.lost();
            told.send(guard.is_held()).unwrap();
        });
        loss.recv_timeout(3 * SECOND).unwrap_err();
        assert!(guard.is_held() && guard.deadline() > deadline);
        client.lock("key").force_release("test").unwrap();
        assert!(!loss.recv_timeout(10 * SECOND).unwrap());
    });
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert_eq!(guard.release(), ReleaseAnswer::Lost);
}

#[test]
fn calls_work_inside_runtimes_of_either_kind() {
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
}

#[test]
fn the_last_handle_leaves_no_lock_and_ends_its_thread() {
    let servers = servers();
    let watching = client(&servers);
    let client = client(&servers);
    let guard = client.lock("key").acquire().unwrap();
    drop(client);
    assert!(!is_free(&watching, "key") && guard.is_held());
    let began = Instant::now();
    drop(guard);
    assert!(began.elapsed() < 5 * SECOND);
    assert!(is_free(&watching, "key"));
    let none = Client::build(Client::builder());
    assert!(matches!(none, Err(BuildError::NoShards)));
}
