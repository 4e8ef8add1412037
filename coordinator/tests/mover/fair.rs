//! Processes that want one lock with replicas all the time share it evenly, in the order in which they ask.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_coordinator::{
    engine::{AcquireError, Engine, Wait},
    ids::{ClientId, MapVersion, Nonce},
    name::{Label, LockKey},
    shard::{List, LockLane, LockMode, Op, Reply, Request, Shard as _},
};
use ringfence_ring::Replicas;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    replicated::{ask, scene_of},
    stage::{FOR_EVER, Stage},
};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const GRANTS: usize = 400;

/// Each process takes the lock again as soon as it has released it, until it was granted `GRANTS` times in all. Returns
/// how often each process had it.
async fn share(engines: &[Engine], hold: Duration) -> Vec<usize> {
    let counts: Vec<_> = engines.iter().map(|_| AtomicUsize::new(0)).collect();
    let counts: Arc<[_]> = counts.into();
    let mut tasks = JoinSet::new();
    for (process, engine) in engines.iter().cloned().enumerate() {
        let counts = counts.clone();
        tasks.spawn(async move {
            while counts
                .iter()
                .map(|count| count.load(Relaxed))
                .sum::<usize>()
                < GRANTS
            {
                let guard = ask(&engine, "key", Wait::For(FOR_EVER)).await.unwrap();
                counts[process].fetch_add(1, Relaxed);
                sleep(hold).await;
                guard.release().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    counts.iter().map(|count| count.load(Relaxed)).collect()
}

/// Jain's index of fairness: 1 if all have the same, and 1/n if one of n has everything.
fn jain(counts: &[usize]) -> f64 {
    let count = |count: &usize| *count as f64;
    let sum: f64 = counts.iter().map(count).sum();
    let of_squares: f64 = counts.iter().map(|its| count(its).powi(2)).sum();
    sum * sum / (counts.len() as f64 * of_squares)
}

fn set_latency(stage: &Stage, shards: usize, latency: Duration) {
    for shard in 0..shards {
        stage.faults(shard).latency(latency / 2..latency * 3 / 2);
    }
}

#[tokio::test(start_paused = true)]
async fn processes_that_ask_again_at_once_share_a_lock_evenly() {
    for replicas in [Replicas::Three, Replicas::Five] {
        let shards = replicas.get() as usize;
        for (latency, hold) in [(0, 0), (0, 3), (1, 0), (1, 3), (20, 0)] {
            let (stage, engines) = scene_of::<4>(shards, replicas).await;
            set_latency(&stage, shards, latency * MILLISECOND);
            let counts = share(&engines, hold * MILLISECOND).await;
            assert!(
                jain(&counts) >= 0.99,
                "{replicas:?}, latency {latency} ms, hold {hold} ms: {counts:?}"
            );
        }
    }
}

/// The key at its first rank, and the index of its shard.
async fn lead(stage: &Stage, engine: &Engine) -> (usize, LockKey) {
    let guard = ask(engine, "key", Wait::No).await.unwrap();
    sleep(MILLISECOND).await;
    let mut found = Vec::new();
    for index in 0..3 {
        let mut control = stage.shard(index).connect_control(None).await.unwrap();
        let page = control.list(&List::default()).await.unwrap();
        found.push((page.locks[0].key.clone(), index));
    }
    guard.release().await;
    let (key, index) = found.into_iter().min_by_key(|(key, _)| key.slot()).unwrap();
    (index, key)
}

#[tokio::test(start_paused = true)]
async fn the_order_is_not_kept_by_a_lead_that_does_not_answer() {
    let (stage, [one, other]) = scene_of(3, Replicas::Three).await;
    let (index, _) = lead(&stage, &one).await;
    stage.faults(index).stall();
    for engine in [&one, &other] {
        let guard = timeout(SECOND, ask(engine, "key", Wait::For(10 * SECOND)));
        let guard = guard.await.expect("without the lead").unwrap();
        guard.release().await;
    }
}

/// Its client has died, and a release of the other replicas was its last act.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_left_at_the_lead_does_not_hold_the_lock() {
    let (stage, [one, other]) = scene_of(3, Replicas::Three).await;
    let (index, key) = lead(&stage, &one).await;
    let shard = stage.shard(index);
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let nonce = Nonce {
        client: ClientId(99),
        sequence: 1,
    };
    let acquire = Request {
        key,
        map: MapVersion::UNKNOWN,
        declared: stage.record().declared,
        op: Op::Acquire {
            nonce,
            label: Label::new("left"),
            lease: stage.record().constants.max_lease(),
            mode: LockMode::Exclusive,
            preferred: false,
            tokens: 1,
            ticket: None,
            proof: None,
        },
    };
    let answers = link.call(&[acquire]).await.unwrap();
    assert!(
        matches!(answers.replies[0], Reply::Granted { .. }),
        "{answers:?}"
    );
    let refused = ask(&one, "key", Wait::No).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }), "{refused:?}");
    for engine in [&one, &other] {
        let guard = timeout(3 * SECOND, ask(engine, "key", Wait::For(FOR_EVER)));
        let guard = guard.await.expect("before the record ends").unwrap();
        guard.release().await;
    }
}
