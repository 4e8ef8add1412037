//! Leases by a clock that processes put forward, and processes that go on whatever fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock, Instant, sleep_until},
    ids::{Epoch, Nonce, Token},
    limits::{MARGIN, RHO_PERMILLE, TICKET_KEEP},
    name::LockKey,
    shard::{Grace, LockLane, LockLink, Op, Reply, Request, Shard},
};
use tokio::time::{sleep, timeout};

use super::races::{Belief, LONG, WITHIN, acquire, arm, arm_with, key, nonce, renewal, request};
use crate::slow::MachineClock;

/// The lease of holders that crash.
pub(super) const LEASE: Duration = Duration::from_millis(300);

/// The lease of a holder that is gone, and that of the turns of waiters.
const CLAIM: Duration = Duration::from_secs(2);

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

/// Two machines, whose clocks differ by a day.
pub(super) struct Machines {
    pub(super) one: Arc<MachineClock>,
    other: Arc<MachineClock>,
}

impl Machines {
    pub(super) fn new() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            one: MachineClock::up_for("one", day),
            other: MachineClock::up_for("other", 2 * day),
        }
    }

    fn advance(&self, length: Duration) {
        self.one.advance(length);
        self.other.advance(length);
    }
}

/// A process that asks once for a lock, and is gone before it could put the shard's clock forward.
async fn asks_once(shard: Arc<dyn Shard>, place: usize, number: u64) -> Reply {
    let link = shard.connect_locks(LockLane::Work, None).await;
    let ask = acquire(nonce(number, 1), LONG, false);
    let asked = [request(&key(place), ask)];
    let answers = link.unwrap().call(&asked).await.unwrap();
    answers.replies[0].clone()
}

/// Time goes on, second by second, until such a process gets the lock. How long that takes.
async fn until_granted(
    machines: &Machines,
    process: impl Fn(Arc<dyn Clock>) -> Arc<dyn Shard>,
) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    let mut passed = Duration::ZERO;
    for number in 1000.. {
        let shard = process(machines.one.clone());
        if let Reply::Granted { .. } = asks_once(shard, 0, number).await {
            break;
        }
        assert!(passed < LONG * 4, "it is never granted");
        machines.advance(SECOND);
        passed += SECOND;
    }
    passed
}

/// No process stays for long enough to put the shard's clock forward. While the holder lives, and for its lease after that,
/// nobody gets the lock, on whichever machine.
pub(super) async fn a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once(
    fixture: &dyn Fixture,
    machines: &Machines,
    process: impl Fn(Arc<dyn Clock>) -> Arc<dyn Shard>,
) {
    arm(&*fixture.shard(), fixture.topology()).await;
    let shard = process(machines.one.clone());
    let link = shard.connect_locks(LockLane::Work, None).await;
    let mut holder = link.unwrap();
    let asked = [request(&key(0), acquire(nonce(1, 1), LONG, false))];
    let granted = holder.call(&asked).await.unwrap().replies.remove(0);
    let Reply::Granted { token, .. } = granted else {
        panic!("{granted:?}")
    };
    for round in 0..12 {
        for clock in [machines.one.clone(), machines.other.clone()] {
            let reply = asks_once(process(clock), 0, 2 + round).await;
            assert!(matches!(reply, Reply::Held { .. }), "{reply:?}");
        }
        machines.advance(LONG / 3);
        let renew = [request(&key(0), renewal(token, LONG))];
        let renewed = holder.call(&renew).await.unwrap().replies.remove(0);
        assert!(matches!(renewed, Reply::Renewed { .. }), "{renewed:?}");
    }
    // Processes that go on with the lock while the shard's clock stands still: the second one writes what the first one wrote.
    for _ in 0..2 {
        let shard = process(machines.other.clone());
        let link = shard.connect_locks(LockLane::Work, None).await;
        let renew = [request(&key(0), renewal(token, LONG))];
        let renewed = link.unwrap().call(&renew).await.unwrap().replies.remove(0);
        assert!(matches!(renewed, Reply::Renewed { .. }), "{renewed:?}");
        let reply = asks_once(process(machines.one.clone()), 0, 100).await;
        assert!(matches!(reply, Reply::Held { .. }), "{reply:?}");
        machines.advance(LONG / 2);
    }
    let passed = until_granted(machines, process).await;
    assert!(passed >= LONG / 2 && passed <= LONG * 5 / 4, "{passed:?}");
}

/// As [`a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once`].
pub(super) async fn a_recovery_period_ends_for_processes_that_ask_once(
    fixture: &dyn Fixture,
    machines: &Machines,
    process: impl Fn(Arc<dyn Clock>) -> Arc<dyn Shard>,
) {
    let grace = Grace::Full(LONG);
    arm_with(&*fixture.shard(), fixture.topology(), Epoch(5), grace).await;
    let other = asks_once(process(machines.other.clone()), 0, 2).await;
    assert!(matches!(other, Reply::Grace { .. }), "{other:?}");
    let passed = until_granted(machines, process).await;
    assert!(passed >= LONG && passed <= LONG * 5 / 4, "{passed:?}");
}

/// A lock that was given back, but goes to waiters that are gone: whoever gets it, the tickets of the others end meanwhile.
pub(super) async fn tickets_of_dead_waiters_end_for_processes_that_ask_once(
    fixture: &dyn Fixture,
    machines: &Machines,
    process: impl Fn(Arc<dyn Clock>) -> Arc<dyn Shard>,
) {
    arm(&*fixture.shard(), fixture.topology()).await;
    let shard = process(machines.one.clone());
    for number in 1..10 {
        let link = shard.connect_locks(LockLane::Work, None).await;
        let mut ask = acquire(nonce(number, 1), CLAIM, number > 1);
        if let Op::Acquire { ticket, .. } = &mut ask {
            ticket.iter_mut().for_each(|ticket| ticket.claim = CLAIM);
        }
        let asked = [request(&key(0), ask)];
        link.unwrap().call(&asked).await.unwrap();
    }
    let passed = until_granted(machines, process).await;
    // The clock may be late by 2 s in each end: that of the lease, that of the tickets, and that of the turn before.
    let longest = CLAIM + TICKET_KEEP + CLAIM + Duration::from_secs(6);
    assert!(passed >= CLAIM && passed <= longest * 5 / 4, "{passed:?}");
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

/// A lock that is held all the time, and renewed as a holder does, however long the others need.
pub(super) struct Kept {
    its: Stubborn,
    key: LockKey,
    token: Token,
    pub(super) renewals: Arc<AtomicU64>,
}

impl Kept {
    pub(super) async fn on(shard: Arc<dyn Shard>) -> Self {
        let (mut its, key) = (Stubborn::on(shard), key(5));
        let ask = [request(&key, acquire(nonce(1, 1), LONG, false))];
        let Reply::Granted { token, .. } = its.call(&ask).await[0] else {
            panic!("it is free")
        };
        Self {
            its,
            key,
            token,
            renewals: Arc::default(),
        }
    }

    /// Renews it until after `ended`.
    pub(super) async fn keep(&mut self, ended: &AtomicBool) {
        let renew = [request(&self.key, renewal(self.token, LONG))];
        loop {
            let last = ended.load(Relaxed);
            let renewed = self.its.call(&renew).await;
            let is_whole = matches!(
                renewed[..],
                [Reply::Renewed {
                    reclaimed: false,
                    ..
                }]
            );
            assert!(is_whole, "{renewed:?}");
            self.renewals.fetch_add(1, Relaxed);
            if last {
                break;
            }
            sleep(LONG / 30).await;
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
