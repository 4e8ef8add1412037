//! Messages that are lost, late, or without a receiver: every waiter has its turn all the same, and
//! alone.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_client::{Client, ReleaseAnswer, limits::RECHECK_MAX};
use ringfence_test_support::{Flow, Whose, eventually};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use super::{
    DEADLINE, SECOND,
    queue::{KEY, Waiter, queue, recorded},
    scene::Proxied,
};

const LEASE: Duration = Duration::from_secs(30);
const MILLISECOND: Duration = Duration::from_millis(1);
const HOLD: Duration = Duration::from_millis(5);
/// Processes that want the lock.
const PROCESSES: usize = 3;

fn notifications() -> Whose {
    Whose::lane("notify")
}

/// What nobody but the holder of the lock may touch.
#[derive(Debug, Default)]
struct Counter {
    value: AtomicUsize,
    /// When it was free again.
    free: Mutex<Option<Instant>>,
    longest: Mutex<Duration>,
}

impl Counter {
    /// Adds one in two steps: two tasks that do so at the same time lose one.
    async fn add(&self) {
        let before = self.value.load(SeqCst);
        if let Some(free) = self.free.lock().unwrap().take() {
            let mut longest = self.longest.lock().unwrap();
            *longest = longest.max(free.elapsed());
        }
        sleep(HOLD).await;
        self.value.store(before + 1, SeqCst);
        *self.free.lock().unwrap() = Some(Instant::now());
    }
}

/// Has several processes hand the lock around, `times` each, while there is `trouble`. How long it was free and waited
/// for, at most.
async fn hand_around(
    scene: &Proxied,
    times: usize,
    trouble: impl Future<Output = Infallible>,
) -> Duration {
    let (counter, mut tasks) = (Arc::new(Counter::default()), JoinSet::new());
    let held = scene.client.lock(KEY).acquire().await.unwrap();
    for _ in 0..PROCESSES {
        let (client, counter) = (scene.rival().await, Arc::clone(&counter));
        tasks.spawn(async move {
            for _ in 0..times {
                let lock = client.lock(KEY).wait(DEADLINE);
                let guard = lock.acquire().await.unwrap();
                counter.add().await;
                assert_eq!(guard.release().await, ReleaseAnswer::Held);
            }
        });
    }
    let all_wait = async || queue(&scene.client).await.len() == PROCESSES;
    eventually("all wait", all_wait).await;
    let all_listen = async || {
        let list: String = scene
            .servers
            .ask(0, &["CLIENT", "LIST", "TYPE", "pubsub"])
            .await;
        list.lines().count() > PROCESSES
    };
    eventually("all listen", all_listen).await;
    let all = timeout(DEADLINE, async {
        held.release().await;
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    tokio::select! {
        biased;
        never = trouble => match never {},
        all = all => all.expect("everybody has its turns"),
    }
    assert_eq!(counter.value.load(SeqCst), PROCESSES * times, "two had it");
    *counter.longest.lock().unwrap()
}

#[tokio::test]
async fn everybody_has_its_turn_though_subscribers_are_killed_again_and_again() {
    let scene = Proxied::new(LEASE).await;
    let killing = async {
        let mut often = interval(10 * MILLISECOND);
        loop {
            often.tick().await;
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
            scene.servers.ask::<u64>(0, &kill).await;
        }
    };
    hand_around(&scene, 4, killing).await;
}

/// This becomes of every message.
async fn come(scene: &Proxied, flow: Flow) -> Infallible {
    scene.proxy.replies(&notifications(), flow);
    pending().await
}

#[tokio::test]
async fn everybody_has_its_turn_though_no_message_comes() {
    let scene = Proxied::new(LEASE).await;
    let free = hand_around(&scene, 2, come(&scene, Flow::Hold)).await;
    assert!(free > RECHECK_MAX / 4, "somebody had to ask: {free:?}");
}

/// They reach a waiter that found its turn by asking, a holder, a former holder, or a waiter for
/// another lock.
#[tokio::test]
async fn everybody_has_its_turn_though_messages_are_late() {
    let scene = Proxied::new(LEASE).await;
    let late = Flow::Delay(SECOND * 3 / 5..SECOND);
    hand_around(&scene, 4, come(&scene, late)).await;
}

#[tokio::test]
async fn a_client_gets_notifications_again_after_it_reconnects() {
    let scene = Proxied::new(LEASE).await;
    let Proxied { client, proxy, .. } = &scene;
    let rival = scene.rival().await;
    proxy.replies(&notifications(), Flow::Hold);
    // Its turn comes by asking alone; and its connection ends, for a server that says nothing is not there.
    let guard = client.lock(KEY).acquire().await.unwrap();
    let (mut waiter, _) = Waiter::queued(&rival, LEASE).await;
    guard.release().await;
    drop(waiter.turn().await);
    let connections = proxy.counts(&notifications()).connections;
    let gone = async || proxy.counts(&notifications()).connections > connections;
    eventually("another connection", gone).await;
    proxy.heal();
    eventually("told as soon as it is free", async || {
        let guard = client.lock(KEY).acquire().await.unwrap();
        let (mut waiter, _) = Waiter::queued(&rival, LEASE).await;
        guard.release().await;
        let free = Instant::now();
        drop(waiter.turn().await);
        free.elapsed() < RECHECK_MAX / 10
    })
    .await;
}

/// A process that hands the lock on among its tasks learns of another waiter by its next renewal,
/// if by nothing else.
#[tokio::test]
async fn a_holder_that_hears_nothing_gives_way_by_its_next_renewal() {
    const LEASE: Duration = Duration::from_secs(6);
    let scene = Proxied::new(LEASE).await;
    let busy = Client::builder()
        .redis([scene.proxy.url()])
        .handoff(4, 1000 * SECOND);
    let busy = busy.build().await.unwrap();
    scene.proxy.replies(&notifications(), Flow::Hold);
    let (had, mut told) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let (client, had) = (busy.clone(), had.clone());
        tasks.spawn(async move {
            loop {
                let guard = client.lock(KEY).acquire().await.unwrap();
                had.send(guard.token()).unwrap();
                sleep(50 * MILLISECOND).await;
                drop(guard);
            }
        });
    }
    // The first one's record has tokens for nobody else.
    for _ in 0..3 {
        told.recv().await.unwrap();
    }
    let mut waiter = Waiter::start(&scene.client, LEASE);
    let guard = waiter.turn().await;
    assert!(recorded(&busy).await.is_some_and(|(_, left)| left <= LEASE));
    drop(guard);
    assert!(queue(&busy).await.len() <= 2);
}
