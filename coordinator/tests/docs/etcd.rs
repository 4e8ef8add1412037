//! Shards on etcd: leases by a clock that processes put forward, and nodes that are killed.

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
    clock::{BootClock, Clock, Instant},
    ids::Nonce,
    limits::{MARGIN, RHO_PERMILLE},
    name::LockKey,
    random::Random,
    shard::{LockLane, LockLink, Op, Reply, Request, Shard},
};
use ringfence_test_support::database::etcd::Etcd;
use tokio::time::sleep;

use super::races::{Belief, LONG, acquire, arm, key, nonce, renewal, request};
use crate::etcd_fixture::OnEtcd;

/// The lease of holders that crash.
const LEASE: Duration = Duration::from_millis(300);

/// Whole rounds of kill and restart, of a node that leads the others.
const KILLS: usize = 2;

/// Waits until the deadline of a lease that was asked for at `sent`, as an engine counts it.
async fn until_the_deadline(sent: Instant) {
    let lease = LEASE * (1000 - RHO_PERMILLE) / 1000 - MARGIN;
    sleep((sent + lease).since(BootClock.now())).await;
}

/// Holders that never release, in processes that ask at different rates: each has the lock until its deadline, and alone.
#[tokio::test]
async fn a_lock_is_free_after_its_lease_and_not_before_its_deadline() {
    const TAKEN: u64 = 16;
    let fixture = OnEtcd::new().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let (belief, taken) = (Belief::default(), AtomicU64::new(0));
    let pauses = [3, 40, 150, 700].map(Duration::from_millis);
    let processes = pauses.into_iter().zip(1..).map(async |(pause, process)| {
        let shard = fixture.process();
        let link = shard.connect_locks(LockLane::Work, None).await;
        let (mut link, mut sequence) = (link.unwrap(), 0);
        while taken.load(Relaxed) < TAKEN {
            sequence += 1;
            let (key, nonce) = (key(0), nonce(process, sequence));
            let asked = [request(&key, acquire(nonce, LEASE, false))];
            let sent = BootClock.now();
            if let Reply::Granted { token, .. } = link.call(&asked).await.unwrap().replies[0] {
                // A late answer is none.
                if BootClock.now() < sent + LEASE / 2 {
                    belief.begins(&key, nonce, token);
                    until_the_deadline(sent).await;
                    belief.ends(&key, nonce);
                }
                taken.fetch_add(1, Relaxed);
            }
            sleep(pause).await;
        }
    });
    join_all(processes).await;
}

/// A process has seen the clock unchanged since before the grant of a process that knows nothing of that, and counts all the
/// time since then. However slow the machine is, that is less than slack and lease together.
#[tokio::test]
async fn a_tick_that_counts_time_from_before_a_grant_ends_no_lease() {
    let fixture = OnEtcd::new().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let connect = async || {
        let shard = fixture.process();
        shard.connect_locks(LockLane::Work, None).await.unwrap()
    };
    let ask = |place, process| {
        [request(
            &key(place),
            acquire(nonce(process, 1), LEASE, false),
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
struct Stubborn {
    shard: Arc<dyn Shard>,
    link: Option<Box<dyn LockLink>>,
    failed: u64,
}

impl Stubborn {
    async fn call(&mut self, asked: &[Request]) -> Vec<Reply> {
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

/// Whichever node dies, no lock is lost, and none has two holders.
#[tokio::test]
async fn locks_on_etcd_survive_the_nodes_that_are_killed() {
    let mut etcd = Etcd::spawn(3).await;
    let fixture = OnEtcd::at(&etcd.url());
    fixture.join().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let kept = [request(&key(5), acquire(nonce(99, 1), LONG, false))];
    let mut keeper = stubborn(&fixture);
    let Reply::Granted { token, .. } = keeper.call(&kept).await[0] else {
        panic!("it is free")
    };
    let (belief, ended, granted) = (Belief::default(), AtomicBool::new(false), AtomicU64::new(0));
    let racers = (1..=4).map(async |racer| {
        let (mut its, random, mut sequence) = (stubborn(&fixture), Random::seeded(racer), 0);
        while !ended.load(Relaxed) {
            sequence += 1;
            let (key, nonce) = (key(random.below(3) as usize), nonce(racer, sequence));
            hold_once(&mut its, &key, nonce, &belief, &granted).await;
        }
        its.failed
    });
    let kills = async {
        for _ in 0..KILLS {
            grants(&granted, 20).await;
            let leader = etcd.leader().await;
            etcd.kill(leader);
            grants(&granted, 20).await;
            etcd.restart(&[leader]).await;
        }
        // All at once: what was answered is on disk.
        (0..3).for_each(|place| etcd.kill(place));
        etcd.restart(&[0, 1, 2]).await;
        grants(&granted, 20).await;
        ended.store(true, Relaxed);
    };
    let (failed, ()) = tokio::join!(join_all(racers), kills);
    println!("{granted:?} grants, failed attempts: {failed:?}");
    let Reply::Granted { token: same, .. } = keeper.call(&kept).await[0] else {
        panic!("it was lost")
    };
    assert_eq!(same, token);
}

fn stubborn(fixture: &OnEtcd) -> Stubborn {
    stubborn_at(fixture.process())
}

fn stubborn_at(shard: Arc<dyn Shard>) -> Stubborn {
    Stubborn {
        shard,
        link: None,
        failed: 0,
    }
}

/// First the node that leads the others, then one that follows: processes that reach it alone are granted nothing while it is
/// cut off, and what they held is free for others after its lease.
#[tokio::test]
async fn a_node_that_is_cut_off_grants_nothing_and_the_others_go_on() {
    let etcd = Etcd::spawn(3).await;
    let fixture = OnEtcd::at(&etcd.url());
    fixture.join().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let (mut keeper, kept) = (stubborn(&fixture), key(5));
    let held = [request(&kept, acquire(nonce(1, 1), LONG, false))];
    let Reply::Granted { token, .. } = keeper.call(&held).await[0] else {
        panic!("it is free")
    };
    let belief = Belief::default();
    for round in 0..2 {
        let place = (etcd.leader().await + round) % 3;
        let (ended, cut, others) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let racers = (1..=6).map(async |racer| {
            // Of each three, one reaches the node alone, and one the others alone.
            let (url, granted) = match racer % 3 {
                0 => (etcd.url_of(place), &cut),
                1 => (etcd.url_of((place + 1) % 3), &others),
                _ => (etcd.url(), &others),
            };
            let number = 10 * (round as u64 + 1) + racer;
            let mut its = stubborn_at(fixture.process_at(&url));
            let (random, mut sequence) = (Random::seeded(number), 0);
            while !ended.load(Relaxed) {
                sequence += 1;
                let (key, nonce) = (key(random.below(3) as usize), nonce(number, sequence));
                hold_up_to_the_lease(&mut its, &key, nonce, &belief, granted).await;
            }
        });
        let partition = async {
            grants(&cut, 4).await;
            etcd.cut_off(place);
            grants(&others, 10).await;
            let before = cut.load(Relaxed);
            let renew = [request(&kept, renewal(token, LONG))];
            let renewed = keeper.call(&renew).await;
            assert!(
                matches!(renewed[..], [Reply::Renewed { .. }]),
                "{renewed:?}"
            );
            grants(&others, 15).await;
            assert_eq!(cut.load(Relaxed), before, "granted without a majority");
            etcd.heal();
            grants(&cut, 4).await;
            grants(&others, 4).await;
            ended.store(true, Relaxed);
        };
        tokio::join!(join_all(racers), partition);
        println!("{cut:?} grants by the node, {others:?} by others");
    }
}

/// Every fourth lock is not released: it ends with its lease.
async fn hold_up_to_the_lease(
    its: &mut Stubborn,
    key: &LockKey,
    nonce: Nonce,
    belief: &Belief,
    granted: &AtomicU64,
) {
    let asked = [request(key, acquire(nonce, LEASE, false))];
    let sent = BootClock.now();
    let Reply::Granted { token, .. } = its.call(&asked).await[0] else {
        return;
    };
    // A late answer is none.
    if BootClock.now() < sent + LEASE / 2 {
        belief.begins(key, nonce, token);
        granted.fetch_add(1, Relaxed);
        let is_released = !nonce.sequence.is_multiple_of(4);
        if !is_released {
            until_the_deadline(sent).await;
        }
        belief.ends(key, nonce);
        if is_released {
            its.call(&[request(key, Op::Release { nonce })]).await;
        }
    }
}

/// Waits for so many more grants.
async fn grants(granted: &AtomicU64, more: u64) {
    let until = granted.load(Relaxed) + more;
    ringfence_test_support::eventually("locks are granted", async || {
        granted.load(Relaxed) >= until
    })
    .await;
}

async fn hold_once(
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
