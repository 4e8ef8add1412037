//! A process with stand-ins for its tasks, so that a test decides what runs when. Its engine and
//! its shard are real.

use std::{
    collections::HashSet,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::FutureExt;
use parking_lot::Mutex;
use ringfence_ring::{ShardId, SlotCount, Weight};
use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
};

use super::super::super::{Dial, Engine, Parts, Sharing, ring::renewer::LeaseRenewer};
use crate::{
    clock::{Clock, Instant},
    driver::Answered,
    ids::{ClientId, Epoch, Life, Nonce},
    name::Label,
    random::Random,
    shard::{LockLane, LockLink, Op, Shard, ShardError, Subscription, memory::MemoryShard},
    topology::{
        Blueprint, Constants, Founder, Home, Namespaces, ShardEntry, Topology,
        memory::MemoryTopology, shard_id,
    },
};

/// A clock that shows the time set by the test.
#[derive(Debug, Default)]
pub(super) struct HandClock(AtomicU64);

impl HandClock {
    pub(super) fn pass(&self, length: Duration) {
        self.0.fetch_add(length.as_nanos() as u64, SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(SeqCst))
    }

    fn unix(&self) -> Duration {
        Duration::from_secs(1_800_000_000)
    }
}

#[derive(Debug)]
struct ByName(Vec<Arc<MemoryShard>>);

impl Dial for ByName {
    fn dial(&self, id: &ShardId, _: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        let mut shards = self.0.iter().enumerate();
        let its = shards.find(|(index, _)| shard_id(*index) == *id);
        Ok(its.expect("one of these").1.clone())
    }
}

/// The shards, and the processes that use them.
pub(super) struct World {
    pub(super) clock: Arc<HandClock>,
    shards: Vec<Arc<MemoryShard>>,
    random: Arc<Random>,
    topology: Arc<Topology>,
    /// Tasks are spawned on it, and never run.
    runtime: tokio::runtime::Runtime,
}

impl World {
    /// Of one shard.
    pub(super) fn new() -> Self {
        Self::of(1)
    }

    pub(super) fn of(shards: usize) -> Self {
        let clock = Arc::new(HandClock::default());
        let random = Arc::new(Random::seeded(1));
        let shard = |_| MemoryShard::new(clock.clone(), random.clone());
        let shards: Vec<_> = (0..shards).map(shard).collect();
        let here = || String::from("memory:");
        let founders = shards.iter().enumerate().map(|(index, shard)| {
            let link = block_on(shard.connect_control(None)).unwrap();
            Founder {
                id: shard_id(index),
                address: here(),
                life: link.life().clone(),
                weight: Weight::ONE,
                zone: None,
            }
        });
        let topology = Topology::found(Blueprint {
            id: 1,
            engine: ClientId(1),
            unix: clock.unix(),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::new(2).unwrap(),
            namespaces: Namespaces::default(),
            home: Home {
                address: here(),
                life: Life::new(here()),
            },
            founders: founders.collect(),
        });
        Self {
            clock,
            shards,
            random,
            topology: Arc::new(topology.unwrap()),
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
        }
    }

    pub(super) fn process(&self, client: u128, sharing: Sharing) -> Process {
        let _entered = self.runtime.enter();
        let client = ClientId(client);
        let engine = block_on(Engine::start(Parts {
            clock: self.clock.clone(),
            random: self.random.clone(),
            client,
            label: Label::new("a process"),
            store: Arc::new(MemoryTopology::new(Topology::clone(&self.topology))),
            topology: self.topology.clone(),
            dial: Arc::new(ByName(self.shards.clone())),
            sharing,
            servers_are_new: true,
            shared: false,
            coordinators: None,
        }));
        let renewer = engine.0.routing.view().renewers[0].clone();
        let shard = &self.shards[0];
        let lane = |lane| Served {
            lane,
            link: block_on(shard.connect_locks(LockLane::Work, None)).unwrap(),
            renewer: renewer.clone(),
            clock: self.clock.clone(),
            ended: Arc::default(),
        };
        Process {
            work: lane(LockLane::Work),
            others: Others {
                renew: lane(LockLane::Renew),
                subscription: block_on(shard.listen(client)).unwrap(),
                engine: engine.clone(),
                hears: 1.0,
            },
            engine,
        }
    }

    /// Checks that the key has no holder and no waiters.
    pub(super) fn assert_nothing_is_left(&self, key: &crate::name::LockKey) {
        let mut link = block_on(self.shards[0].connect_control(None)).unwrap();
        let left = block_on(link.inspect(key)).unwrap();
        assert!(left.holder.is_none(), "a record is left: {left:?}");
        assert!(left.waiters.is_empty(), "a ticket is left: {left:?}");
    }
}

pub(super) struct Process {
    pub(super) engine: Engine,
    pub(super) work: Served,
    pub(super) others: Others,
}

/// Stands in for a lane to the first shard.
pub(super) struct Served {
    lane: LockLane,
    link: Box<dyn LockLink>,
    renewer: Arc<LeaseRenewer>,
    clock: Arc<HandClock>,
    /// Nonces released here.
    ended: Arc<Mutex<HashSet<Nonce>>>,
}

impl Served {
    /// Sends the waiting requests, and answers them; returns whether there were any.
    pub(super) fn step(&mut self) -> bool {
        let (requests, responds): (Vec<_>, Vec<_>) =
            self.renewer.driver.take(self.lane).into_iter().unzip();
        if requests.is_empty() {
            return false;
        }
        for request in &requests {
            match &request.op {
                Op::Release { nonce } => drop(self.ended.lock().insert(*nonce)),
                Op::Acquire { nonce, .. } => {
                    let ended = self.ended.lock().contains(nonce);
                    assert!(!ended, "asked after its release");
                }
                Op::Renew { .. } | Op::Confirm { .. } | Op::Adopt { .. } | Op::Remove { .. } => {}
            }
        }
        let sent = self.clock.now();
        let answers = block_on(self.link.call(&requests)).unwrap();
        for (respond, reply) in responds.into_iter().zip(answers.replies) {
            respond.respond(Ok(Answered { reply, sent }));
        }
        true
    }
}

/// Stands in for the renew lane, the listener, and the renewer.
pub(super) struct Others {
    renew: Served,
    subscription: Box<dyn Subscription>,
    engine: Engine,
    /// The probability that a message arrives.
    pub(super) hears: f64,
}

impl Others {
    pub(super) fn step(&mut self) -> bool {
        self.renew.renewer.tend_due();
        let mut busy = self.renew.step();
        while let Some(notification) = self.subscription.next().now_or_never() {
            busy = true;
            if thread_rng().gen_bool(self.hears) {
                let shard = self.renew.renewer.driver.id();
                self.engine.0.queues.pushed(shard, notification.unwrap());
            }
        }
        busy
    }
}

/// Polls `future` once.
pub(super) fn poll_once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
