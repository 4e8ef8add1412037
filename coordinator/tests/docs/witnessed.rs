//! Leases by a clock that processes put forward, and processes that go on whatever fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock, Instant, sleep_until},
    ids::Nonce,
    limits::{MARGIN, RHO_PERMILLE},
    name::LockKey,
    shard::{LockLane, LockLink, Op, Reply, Request, Shard},
};
use tokio::time::{sleep, timeout};

use super::races::{Belief, LONG, WITHIN, acquire, arm, key, nonce, request};

/// The lease of holders that crash.
pub(super) const LEASE: Duration = Duration::from_millis(300);

/// The deadline of a lease that was asked for at `sent`, as an engine counts it.
pub(super) fn deadline(sent: Instant) -> Instant {
    sent + LEASE * (1000 - RHO_PERMILLE) / 1000 - MARGIN
}

/// Holders that never release, in processes that ask at different rates: each has the lock until its deadline, and alone.
pub(super) async fn a_lock_is_free_after_its_lease_and_not_before_its_deadline(
    fixture: &dyn Fixture,
    process: impl Fn() -> Arc<dyn Shard>,
) {
    const TAKEN: u64 = 16;
    arm(&*fixture.shard(), fixture.topology()).await;
    let (belief, taken) = (Belief::default(), AtomicU64::new(0));
    let pauses = [3, 40, 150, 700].map(Duration::from_millis);
    let processes = pauses.into_iter().zip(1..).map(async |(pause, number)| {
        let shard = process();
        let link = shard.connect_locks(LockLane::Work, None).await;
        let (mut link, mut sequence) = (link.unwrap(), 0);
        while taken.load(Relaxed) < TAKEN {
            sequence += 1;
            let (key, nonce) = (key(0), nonce(number, sequence));
            let asked = [request(&key, acquire(nonce, LEASE, false))];
            let sent = BootClock.now();
            if let Reply::Granted { token, .. } = link.call(&asked).await.unwrap().replies[0] {
                let deadline = deadline(sent);
                // A late answer is none.
                if BootClock.now() < deadline {
                    belief.begins_until(&key, (nonce, deadline), token);
                    taken.fetch_add(1, Relaxed);
                    sleep_until(&BootClock, deadline).await;
                }
            }
            sleep(pause).await;
        }
    });
    let taken = timeout(WITHIN, join_all(processes)).await;
    taken.expect("it is taken often enough");
}

/// A process has seen the clock unchanged since before the grant of a process that knows nothing of that, and counts all the
/// time since then. However slow the machine is, that is less than slack and lease together.
pub(super) async fn a_tick_that_counts_time_from_before_a_grant_ends_no_lease(
    fixture: &dyn Fixture,
    process: impl Fn() -> Arc<dyn Shard>,
) {
    arm(&*fixture.shard(), fixture.topology()).await;
    let connect = async || {
        let shard = process();
        shard.connect_locks(LockLane::Work, None).await.unwrap()
    };
    let ask = |place, number| {
        [request(
            &key(place),
            acquire(nonce(number, 1), LEASE, false),
        )]
    };
    let mut idle = connect().await;
    idle.call(&ask(1, 1)).await.unwrap();
    sleep(LEASE * 4).await;
    let granted = connect().await.call(&ask(0, 2)).await.unwrap();
    assert!(
        matches!(granted.replies[..], [Reply::Granted { .. }]),
        "{granted:?}"
    );
    let held = idle.call(&ask(0, 1)).await.unwrap();
    assert!(matches!(held.replies[..], [Reply::Held { .. }]), "{held:?}");
}

/// Links of a process that goes on after any error: it connects again, and asks again.
pub(super) struct Stubborn {
    shard: Arc<dyn Shard>,
    link: Option<Box<dyn LockLink>>,
    pub(super) failed: u64,
}

impl Stubborn {
    pub(super) fn on(shard: Arc<dyn Shard>) -> Self {
        Self {
            shard,
            link: None,
            failed: 0,
        }
    }

    pub(super) async fn call(&mut self, asked: &[Request]) -> Vec<Reply> {
        let mut former = None;
        loop {
            let link = match self.link.take() {
                Some(link) => Ok(link),
                None => {
                    self.shard
                        .connect_locks(LockLane::Work, former.clone())
                        .await
                }
            };
            let Ok(mut link) = link else {
                self.failed += 1;
                continue;
            };
            match link.call(asked).await {
                Ok(answers) => {
                    self.link = Some(link);
                    return answers.replies;
                }
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    former = Some((link.life().clone(), link.connection()));
                    self.failed += 1;
                }
            }
        }
    }
}

/// Waits for so many more grants.
pub(super) async fn grants(granted: &AtomicU64, more: u64) {
    let until = granted.load(Relaxed) + more;
    ringfence_test_support::eventually("locks are granted", async || {
        granted.load(Relaxed) >= until
    })
    .await;
}

pub(super) async fn hold_once(
    its: &mut Stubborn,
    key: &LockKey,
    nonce: Nonce,
    belief: &Belief,
    granted: &AtomicU64,
) {
    let asked = [request(key, acquire(nonce, LONG, false))];
    if let Reply::Granted { token, .. } = its.call(&asked).await[0] {
        belief.begins(key, nonce, token);
        granted.fetch_add(1, Relaxed);
        tokio::task::yield_now().await;
        belief.ends(key, nonce);
    }
    its.call(&[request(key, Op::Release { nonce })]).await;
}
