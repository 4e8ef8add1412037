//! Tasks of one process hand a grant on among them over the service, until another process waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_client::{Client, Coordinators, ReleaseAnswer};
use ringfence_test_support::eventually;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::scene::Scene;

const TASKS: u64 = 16;

/// What the holders of one key have seen.
#[derive(Default)]
struct Seen {
    inside: AtomicBool,
    token: AtomicU64,
    pairs: AtomicU64,
    stop: AtomicBool,
}

async fn over(scene: &Scene) -> Client {
    let client = Client::builder().coordinators(Coordinators::new(&scene.url));
    client.build().await.unwrap()
}

/// Tasks that hold the lock for `hold` and release it, each `pairs` times or until told to stop.
fn tasks(client: &Client, seen: &Arc<Seen>, pairs: u64, hold: Duration) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (lock, seen) = (client.lock("key"), seen.clone());
        tasks.spawn(async move {
            for _ in 0..pairs {
                if seen.stop.load(SeqCst) {
                    return;
                }
                let guard = lock.acquire().await.unwrap();
                assert!(!seen.inside.swap(true, SeqCst));
                let token = guard.token().get();
                assert!(seen.token.swap(token, SeqCst) < token);
                sleep(hold).await;
                seen.inside.store(false, SeqCst);
                assert_eq!(guard.release().await, ReleaseAnswer::Held);
                seen.pairs.fetch_add(1, SeqCst);
            }
        });
    }
    tasks
}

async fn end(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_hand_a_grant_on_without_a_request() {
    const PAIRS: u64 = 64;
    let scene = Scene::set().await;
    let (client, seen) = (over(&scene).await, Arc::default());
    let before = scene.script_calls().await;
    end(tasks(&client, &seen, PAIRS, Duration::ZERO)).await;
    let calls = scene.script_calls().await - before;
    assert!(
        calls < TASKS * PAIRS / 8,
        "{calls} for {} pairs",
        TASKS * PAIRS
    );
    // Its token is above those of all hand-offs.
    let next = scene.other.lock("key").acquire().await.unwrap();
    assert!(next.token().get() > seen.token.load(SeqCst));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_gets_a_lock_that_others_hand_on() {
    let scene = Scene::set().await;
    let client = over(&scene).await;
    // By way of the same coordinator, and at the shard.
    for other in [over(&scene).await, scene.other.clone()] {
        let seen = Arc::<Seen>::default();
        // The tokens of a grant last for longer than this test waits, and so do pings.
        let running = tasks(&client, &seen, u64::MAX, Duration::from_millis(100));
        let handed = || async { seen.pairs.load(SeqCst) > 2 };
        eventually("the lock is handed on", handed).await;
        for _ in 0..2 {
            let lock = other.lock("key");
            let next = timeout(Duration::from_secs(120), lock.acquire()).await;
            let guard = next.unwrap().unwrap();
            assert!(!seen.inside.swap(true, SeqCst));
            let token = guard.token().get();
            assert!(seen.token.swap(token, SeqCst) < token);
            seen.inside.store(false, SeqCst);
            assert_eq!(guard.release().await, ReleaseAnswer::Held);
        }
        seen.stop.store(true, SeqCst);
        end(running).await;
    }
}
