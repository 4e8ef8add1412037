//! Requests that are submitted and dropped: an acquire is withdrawn if it was not sent yet; no
//! other request is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_conformance::{
    cancel::{after_every_turn, dropped_after},
    shard::Fixture,
};
use ringfence_coordinator::{
    clock::{Instant, TokioClock},
    driver::{Context, Driver},
    ids::{ClientId, Epoch, Incarnation, Life, MapVersion, Nonce, Token},
    limits::{LANES_BY_SLOT, LEASE_MAX},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{
        Answers, Arm, ConnectionId, ControlLink, CounterLink, Counters, Grace, Link, LockLane,
        LockLink, LockMode, Mode, Op, Reply, Request, Shard, ShardError, SlotState, SlotStates,
        Subscription,
    },
    topology::Constants,
    view::ViewLease,
};
use ringfence_ring::{ShardId, SlotCount};
use tokio::time::{sleep, timeout};

use crate::memory_fixture::Memory;
use crate::redis_fixture::Redis;

/// What the shard is armed with.
const EPOCH: Epoch = Epoch(1);

/// A driver of an armed shard that takes its time.
struct Desk {
    driver: Arc<Driver>,
    fixture: Box<dyn Fixture>,
    life: Life,
    around: Context,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.around.stop.cancel();
    }
}

/// A driver that hears nothing of what its shard says by itself.
fn started(shard: Arc<dyn Shard>, life: &Life, around: &Context) -> Arc<Driver> {
    let present = (life.clone(), EPOCH);
    let (id, client) = (ShardId::new("a").unwrap(), ClientId(9));
    let driver = Driver::start(id, shard, present, client, Arc::new(|_| {}), around);
    driver.seen_armed(life, EPOCH);
    driver
}

fn slots() -> SlotCount {
    SlotCount::new(16).unwrap()
}

fn nonce(sequence: usize) -> Nonce {
    Nonce {
        client: ClientId(9),
        sequence: sequence as u64,
    }
}

fn acquire(nonce: Nonce) -> Op {
    Op::Acquire {
        nonce,
        label: Label::new("driver"),
        lease: LEASE_MAX,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: None,
        proof: None,
    }
}

impl Desk {
    async fn at(fixture: impl Fixture + 'static) -> Self {
        let epoch = EPOCH;
        let arm = Arm {
            topology: fixture.topology(),
            incarnation: Incarnation {
                number: 1,
                engine: ClientId(9),
            },
            epoch,
            token_epoch: epoch,
            declared: MapVersion::UNKNOWN,
            slots: SlotStates::new(slots().iter(), |_| SlotState {
                mode: Mode::Open,
                epoch,
            }),
            grace: Grace::None,
            counters: Counters::Never,
            copy: (1, "record".into()),
        };
        let link = fixture.shard().connect_control(None).await;
        let mut link = link.unwrap();
        link.arm(&arm).await.unwrap();
        fixture.slow_down().await;
        let view = ViewLease::new(&Constants::default());
        // Nobody reads the topology here.
        let read = Instant::from_nanos(u64::MAX);
        view.confirm(read, read);
        let around = Context {
            clock: Arc::new(TokioClock::starting_at(Duration::ZERO)),
            random: Arc::new(Random::seeded(1)),
            tasks: Default::default(),
            stop: Default::default(),
            view: Arc::new(view),
        };
        Self {
            driver: started(fixture.shard(), link.life(), &around),
            fixture: Box::new(fixture),
            life: link.life().clone(),
            around,
        }
    }

    fn request(&self, key: &str, op: Op) -> Request {
        let key = LockKey::new(&Namespace::default(), key.as_bytes(), slots()).unwrap();
        Request {
            key,
            map: MapVersion::UNKNOWN,
            declared: MapVersion::UNKNOWN,
            op,
        }
    }

    async fn ask(&self, key: &str, op: Op) -> Reply {
        let answer = self.driver.submit(self.request(key, op)).await;
        answer.unwrap().unwrap().reply
    }

    async fn granted(&self, key: &str, nonce: Nonce) -> Token {
        match self.ask(key, acquire(nonce)).await {
            Reply::Granted { token, .. } => token,
            other => panic!("{key} was to be granted: {other:?}"),
        }
    }

    /// Submits `op` and drops the receiver after `turns` turns. The answer, if it came before.
    async fn dropped_after(&self, turns: usize, key: &str, op: Op) -> Option<Reply> {
        let answer = self.driver.submit(self.request(key, op));
        let answer = dropped_after(turns, async || self.fixture.turn().await, answer).await;
        answer.map(|answer| answer.unwrap().unwrap().reply)
    }
}

/// A shard that panics in its next batch.
#[derive(Debug)]
struct Panicking {
    shard: Arc<dyn Shard>,
    next: Arc<AtomicBool>,
}

#[derive(Debug)]
struct PanickingLink {
    link: Box<dyn LockLink>,
    next: Arc<AtomicBool>,
}

#[async_trait]
impl Shard for Panicking {
    fn work_lanes(&self) -> usize {
        LANES_BY_SLOT
    }

    async fn connect_locks(
        &self,
        lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        let link = self.shard.connect_locks(lane, former).await?;
        let next = self.next.clone();
        Ok(Box::new(PanickingLink { link, next }))
    }

    async fn connect_counters(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        self.shard.connect_counters(former).await
    }

    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        self.shard.connect_control(former).await
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        self.shard.listen(client).await
    }
}

#[async_trait]
impl Link for PanickingLink {
    fn life(&self) -> &Life {
        self.link.life()
    }

    fn connection(&self) -> ConnectionId {
        self.link.connection()
    }

    async fn ended(&mut self) {
        self.link.ended().await;
    }
}

#[async_trait]
impl LockLink for PanickingLink {
    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        assert!(!self.next.swap(false, Relaxed), "as the test wants it");
        self.link.call(batch).await
    }
}

#[tokio::test]
async fn a_backend_that_panics_costs_a_batch_and_a_connection() {
    let mut desk = Desk::at(Memory::new().await).await;
    let next = Arc::new(AtomicBool::new(true));
    let shard = Arc::new(Panicking {
        shard: desk.fixture.shard(),
        next: next.clone(),
    });
    desk.driver = started(shard, &desk.life, &desk.around);
    let request = || desk.request("key", acquire(nonce(1)));
    let lost = loop {
        let answer = desk.driver.submit(request()).await.unwrap();
        match answer {
            // Not connected yet.
            Err(ShardError::Unreachable { .. }) => sleep(Duration::from_millis(1)).await,
            other => break other,
        }
    };
    assert!(matches!(lost, Err(ShardError::NoReply { .. })), "{lost:?}");
    assert!(!next.load(Relaxed));
    let again = async {
        while desk.driver.submit(request()).await.unwrap().is_err() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(20), again).await.unwrap();
}

/// A release behind it finds it granted or never sent, and then it is free.
async fn a_dropped_acquire_is_granted_or_withdrawn(desk: Desk) {
    let mut withdrawn = 0;
    after_every_turn("a submitted acquire", async |turns| {
        let (key, holder) = (format!("key {turns}"), nonce(turns));
        let answer = desk.dropped_after(turns, &key, acquire(holder)).await;
        let released = desk.ask(&key, Op::Release { nonce: holder }).await;
        withdrawn += usize::from(released == Reply::Released { held: false });
        assert!(answer.is_none() || released == Reply::Released { held: true });
        desk.granted(&key, nonce(1_000_000 + turns)).await;
        answer.is_some()
    })
    .await;
    assert!(withdrawn > 0, "every one was sent");
}

/// The lock is its holder's as before.
async fn a_dropped_renewal_loses_nothing(desk: Desk) {
    let holder = nonce(0);
    let token = desk.granted("key", holder).await;
    let renew = || Op::Renew {
        nonce: holder,
        label: Label::new("driver"),
        token,
        mode: LockMode::Exclusive,
        lease: LEASE_MAX,
    };
    after_every_turn("a submitted renewal", async |turns| {
        let answer = desk.dropped_after(turns, "key", renew()).await;
        let renewed = desk.ask("key", renew()).await;
        assert_eq!(
            renewed,
            Reply::Renewed {
                reclaimed: false,
                contended: false,
                moving: None,
            }
        );
        assert_eq!(desk.granted("key", holder).await, token);
        answer.is_some()
    })
    .await;
}

/// Nobody has to wait for it.
async fn a_dropped_release_is_sent(desk: Desk) {
    after_every_turn("a submitted release", async |turns| {
        let holder = nonce(turns);
        desk.granted("key", holder).await;
        let answer = desk
            .dropped_after(turns, "key", Op::Release { nonce: holder })
            .await;
        let next = nonce(1_000_000 + turns);
        desk.granted("key", next).await;
        desk.ask("key", Op::Release { nonce: next }).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_submitted_acquire_that_is_dropped_is_granted_or_withdrawn() {
    a_dropped_acquire_is_granted_or_withdrawn(Desk::at(Redis::new().await).await).await;
}

#[tokio::test]
async fn in_memory_too_a_submitted_acquire_that_is_dropped_is_granted_or_withdrawn() {
    a_dropped_acquire_is_granted_or_withdrawn(Desk::at(Memory::new().await).await).await;
}

#[tokio::test]
async fn a_submitted_renewal_that_is_dropped_loses_nothing() {
    a_dropped_renewal_loses_nothing(Desk::at(Redis::new().await).await).await;
}

#[tokio::test]
async fn in_memory_too_a_submitted_renewal_that_is_dropped_loses_nothing() {
    a_dropped_renewal_loses_nothing(Desk::at(Memory::new().await).await).await;
}

#[tokio::test]
async fn a_submitted_release_that_is_dropped_is_sent() {
    a_dropped_release_is_sent(Desk::at(Redis::new().await).await).await;
}

#[tokio::test]
async fn in_memory_too_a_submitted_release_that_is_dropped_is_sent() {
    a_dropped_release_is_sent(Desk::at(Memory::new().await).await).await;
}
