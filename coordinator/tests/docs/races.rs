//! Many connections, few locks.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use futures_util::future::{join, join_all};
use parking_lot::Mutex;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock, Instant},
    ids::{ClientId, Epoch, Incarnation, MapVersion, Nonce, Token},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{
        Arm, Counters, Grace, LockLane, LockLink, LockMode, Mode, Op, Reply, Request, Shard,
        SlotState, SlotStates, Step, Ticket,
    },
};
use ringfence_ring::SlotCount;
use tokio::{task::yield_now, time::timeout};

pub(crate) const LONG: Duration = Duration::from_secs(30);
const RACERS: u64 = 8;
const KEYS: usize = 3;

/// The time limit for all that a test waits for.
pub(super) const WITHIN: Duration = Duration::from_secs(120);

/// How often what is tested happened.
#[derive(Debug, Default)]
struct Raced {
    granted: AtomicU64,
    held: AtomicU64,
    passed_on: AtomicU64,
}

impl Raced {
    fn is_enough(&self, times: u64) -> bool {
        let counts = [&self.granted, &self.held, &self.passed_on];
        counts.iter().all(|count| count.load(Relaxed) >= times)
    }
}

/// The holder of each key, as the processes believe, until when, and its last token.
#[derive(Default)]
pub(crate) struct Belief(Mutex<HashMap<LockKey, (Believed, Token)>>);

/// A holder, and until when.
type Believed = Option<(Nonce, Instant)>;

impl Belief {
    pub(crate) fn begins(&self, key: &LockKey, nonce: Nonce, token: Token) {
        self.begins_until(key, (nonce, Instant::from_nanos(u64::MAX)), token);
    }

    /// Ends by itself: a process may wake late.
    pub(crate) fn begins_until(&self, key: &LockKey, its: (Nonce, Instant), token: Token) {
        let mut keys = self.0.lock();
        let (holder, last) = keys.entry(key.clone()).or_default();
        let other = holder.filter(|(_, until)| *until > BootClock.now());
        assert_eq!(other, None, "{key} has two holders: {} too", its.0);
        assert!(token > *last, "{key}: token {token} after {last}");
        (*holder, *last) = (Some(its), token);
    }

    /// The release is sent after this.
    pub(crate) fn ends(&self, key: &LockKey, nonce: Nonce) {
        let mut keys = self.0.lock();
        let (holder, _) = keys.get_mut(key).expect("it was granted");
        holder.take_if(|(its, _)| *its == nonce);
    }
}

/// Races `RACERS` connections until locks were granted, refused and passed on, `times` each. Each connection asks for one or
/// several locks in a batch, sometimes with a ticket.
pub(crate) async fn run(fixture: &dyn Fixture, times: u64) {
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let (raced, belief) = (Raced::default(), Belief::default());
    let racers = (0..RACERS).map(|racer| race(&*shard, racer, times, &raced, &belief));
    let raced_enough = timeout(WITHIN, join_all(racers)).await;
    println!("{raced:?}");
    raced_enough.expect("each happened often enough");
}

async fn race(shard: &dyn Shard, racer: u64, times: u64, raced: &Raced, belief: &Belief) {
    let random = Random::seeded(racer);
    let link = shard.connect_locks(LockLane::Work, None).await;
    let mut link = link.unwrap();
    let mut sequence = 0;
    while !raced.is_enough(times) {
        sequence += 1;
        let nonce = nonce(racer, sequence);
        let first = random.below(KEYS as u64) as usize;
        let some = 1 + random.below(KEYS as u64) as usize;
        let keys: Vec<_> = (first..first + some).map(|at| key(at % KEYS)).collect();
        let waits = random.below(2) == 0;
        let asked: Vec<_> = keys
            .iter()
            .map(|key| request(key, acquire(nonce, LONG, waits)))
            .collect();
        let mut held: Vec<LockKey> = Vec::new();
        for again in 0..3 {
            let answers = link.call(&asked).await.unwrap();
            for (key, reply) in keys.iter().zip(answers.replies) {
                match reply {
                    Reply::Granted { token, .. } if !held.contains(key) => {
                        belief.begins(key, nonce, token);
                        held.push(key.clone());
                        raced.granted.fetch_add(1, Relaxed);
                        if again > 0 {
                            raced.passed_on.fetch_add(1, Relaxed);
                        }
                    }
                    Reply::Granted { .. } => {}
                    Reply::Held { .. } => drop(raced.held.fetch_add(1, Relaxed)),
                    other => panic!("{key}: {other:?}"),
                }
            }
            if !waits || held.len() == keys.len() {
                break;
            }
        }
        yield_now().await;
        held.iter().for_each(|key| belief.ends(key, nonce));
        give_back(&mut *link, &keys, nonce).await;
    }
}

/// Gives back, or up.
async fn give_back(link: &mut dyn LockLink, keys: &[LockKey], nonce: Nonce) {
    let releases: Vec<_> = keys
        .iter()
        .map(|key| request(key, Op::Release { nonce }))
        .collect();
    link.call(&releases).await.unwrap();
}

/// Holders renew locks in a sealed slot, mostly too late, while others ask whether these are free: a lock that a shard
/// called free is never held there again. `lease` is a few times as long as a request takes.
pub(crate) async fn proofs(fixture: &dyn Fixture, pairs: usize, lease: Duration) {
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let keys: Vec<_> = (0..pairs).map(key).collect();
    let mut links = Vec::new();
    for _ in 0..=2 * pairs {
        let link = shard.connect_locks(LockLane::Work, None).await;
        links.push(link.unwrap());
    }
    let asked: Vec<_> = keys
        .iter()
        .map(|key| request(key, acquire(nonce(1, 1), lease, false)))
        .collect();
    let first = links.pop().expect("there are more");
    let granted = { first }.call(&asked).await.unwrap().replies;
    seal(&*shard, &keys).await;
    let renewed = AtomicU64::new(0);
    let links = links.chunks_mut(2);
    let pairs = keys.iter().zip(granted).zip(links);
    let pairs = pairs.map(|((key, granted), links)| {
        let Reply::Granted { token, .. } = granted else {
            panic!("{granted:?}")
        };
        renew_and_ask(links, key, (token, lease), &renewed)
    });
    let pairs = join_all(pairs).await.len() as u64;
    let renewed = renewed.into_inner();
    println!("{renewed} renewals of {pairs} locks");
    assert!(renewed > pairs / 2);
}

async fn renew_and_ask(
    links: &mut [Box<dyn LockLink>],
    key: &LockKey,
    (token, lease): (Token, Duration),
    renewed: &AtomicU64,
) {
    let [holding, asking] = links else {
        panic!("two links")
    };
    let free = AtomicBool::new(false);
    let holder = async {
        let random = Random::seeded(token.get());
        loop {
            let asked = [request(key, renewal(token, lease))];
            match &holding.call(&asked).await.unwrap().replies[0] {
                Reply::Renewed { .. } => {
                    assert!(!free.load(Relaxed), "{key} was proven free");
                    renewed.fetch_add(1, Relaxed);
                }
                Reply::Lost => return,
                other => panic!("{other:?}"),
            }
            let pause = random.below(lease.as_millis() as u64);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    };
    let asker = async {
        loop {
            let asked = [request(key, acquire(nonce(2, 1), lease, false))];
            match &asking.call(&asked).await.unwrap().replies[0] {
                Reply::Moving { left: Some(0), .. } => break,
                Reply::Moving { left: None, .. } => {}
                other => panic!("{other:?}"),
            }
        }
        free.store(true, Relaxed);
    };
    join(holder, asker).await;
}

async fn seal(shard: &dyn Shard, keys: &[LockKey]) {
    let step = Step {
        incarnation: incarnation(),
        copy: (2, "record".into()),
        map: MapVersion(2),
        epoch: Epoch(6),
        mode: Mode::Sealed,
        slots: keys.iter().map(LockKey::slot).collect(),
        above: Token::default(),
    };
    let mut mover = shard.connect_control(None).await.unwrap();
    assert_eq!(mover.step(&step).await.unwrap().refused, []);
}

pub(crate) fn incarnation() -> Incarnation {
    Incarnation {
        number: 5,
        engine: ClientId(1),
    }
}

pub(crate) fn nonce(racer: u64, sequence: u64) -> Nonce {
    Nonce {
        client: ClientId(racer.into()),
        sequence,
    }
}

pub(crate) fn acquire(nonce: Nonce, lease: Duration, waits: bool) -> Op {
    let ticket = Ticket {
        sent: Instant::from_nanos(1),
        claim: LONG,
        callers: 1,
    };
    Op::Acquire {
        nonce,
        label: Label::new("racer"),
        lease,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 2,
        ticket: waits.then_some(ticket),
        proof: None,
    }
}

/// The renewal of the first nonce's lock.
pub(crate) fn renewal(token: Token, lease: Duration) -> Op {
    Op::Renew {
        nonce: nonce(1, 1),
        label: Label::new("holder"),
        token,
        mode: LockMode::Exclusive,
        lease,
    }
}

pub(crate) fn request(key: &LockKey, op: Op) -> Request {
    Request {
        key: key.clone(),
        map: MapVersion::UNKNOWN,
        declared: MapVersion::UNKNOWN,
        op,
    }
}

pub(crate) fn slots() -> SlotCount {
    SlotCount::new(16).unwrap()
}

pub(crate) fn key(number: usize) -> LockKey {
    LockKey::new(&Namespace::default(), &[b'a' + number as u8], slots()).unwrap()
}

pub(crate) async fn arm(shard: &dyn Shard, topology: String) {
    arm_with(shard, topology, Epoch(5), Grace::None).await;
}

pub(crate) async fn arm_with(shard: &dyn Shard, topology: String, epoch: Epoch, grace: Grace) {
    let open = SlotState {
        mode: Mode::Open,
        epoch,
    };
    let arm = Arm {
        topology,
        incarnation: incarnation(),
        epoch,
        token_epoch: epoch,
        declared: MapVersion::UNKNOWN,
        slots: SlotStates::new(slots().iter(), |_| open),
        grace,
        counters: Counters::Never,
        copy: (1, "record".into()),
    };
    let mut control = shard.connect_control(None).await.unwrap();
    assert!(control.arm(&arm).await.unwrap().armed_now);
}
