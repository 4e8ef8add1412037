//! Requests that are submitted and dropped: an acquire is withdrawn if it was not sent yet; no
//! other request is.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod memory_fixture;
mod redis_fixture;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_coordinator::view::ViewLease;
use ringfence_coordinator::{
    cancel::{after_every_turn, dropped_after},
    clock::TokioClock,
    driver::{Context, Driver, LockLane},
    ids::{ClientId, Epoch, Incarnation, Life, MapVersion, Nonce, Token},
    limits::LEASE_MAX,
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{
        Admit, Answers, Arm, ArmAnswer, Armed, Arrival, Arrive, AskGroups, ConnectionId, CopyIn,
        CopyOut, CounterAnswers, CounterRequest, DropGroups, Dropped, ForceOpen, ForcedOpen, Grace,
        Groups, HeldStill, Inspection, Lane, Link, List, Listing, LockPage, Mode, Op, Piece,
        PutAside, Reply, Request, Scan, ScanPage, Settle, Shard, ShardError, SlotState, SlotStates,
        Step, Stepped, StillHeld, Wakes, conformance::Fixture,
    },
};
use ringfence_ring::{ShardId, Slot, SlotCount};
use tokio::time::{sleep, timeout};

use crate::{memory_fixture::Memory, redis_fixture::Redis};

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
            slots: SlotStates::new(slots(), |_| SlotState {
                mode: Mode::Open,
                epoch,
            }),
            grace: Grace::None,
            copy: (1, "record".into()),
        };
        let link = fixture.shard().connect(Lane::Control, None).await;
        let mut link = link.unwrap();
        link.arm(&arm).await.unwrap();
        fixture.slow_down().await;
        let around = Context {
            clock: Arc::new(TokioClock::starting_at(Duration::ZERO)),
            random: Arc::new(Random::seeded(1)),
            tasks: Default::default(),
            stop: Default::default(),
            view: Arc::new(ViewLease::new(None)),
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
            op,
        }
    }

    async fn ask(&self, lane: LockLane, key: &str, op: Op) -> Reply {
        let answer = self.driver.submit(lane, self.request(key, op)).await;
        answer.unwrap().unwrap().reply
    }

    async fn granted(&self, key: &str, nonce: Nonce) -> Token {
        match self.ask(LockLane::Work, key, acquire(nonce)).await {
            Reply::Granted { token, .. } => token,
            other => panic!("{key} was to be granted: {other:?}"),
        }
    }

    /// Submits `op` and drops the receiver after `turns` turns. The answer, if it came before.
    async fn dropped_after(
        &self,
        turns: usize,
        lane: LockLane,
        key: &str,
        op: Op,
    ) -> Option<Reply> {
        let answer = self.driver.submit(lane, self.request(key, op));
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
    link: Box<dyn Link>,
    next: Arc<AtomicBool>,
}

#[async_trait]
impl Shard for Panicking {
    async fn connect(
        &self,
        lane: Lane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Link>, ShardError> {
        let link = self.shard.connect(lane, former).await?;
        let next = self.next.clone();
        Ok(Box::new(PanickingLink { link, next }))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Wakes>, ShardError> {
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

    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        assert!(!self.next.swap(false, Relaxed), "as the test wants it");
        self.link.call(batch).await
    }

    async fn call_counters(
        &mut self,
        batch: &[CounterRequest],
    ) -> Result<CounterAnswers, ShardError> {
        self.link.call_counters(batch).await
    }

    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        self.link.arm(arm).await
    }

    async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        self.link.armed().await
    }

    async fn settle(&mut self, settle: &Settle) -> Result<bool, ShardError> {
        self.link.settle(settle).await
    }

    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError> {
        self.link.raise(incarnation, epoch).await
    }

    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        self.link.step(step).await
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        self.link.scan(scan).await
    }

    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        self.link.take_list(listing).await
    }

    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        self.link.still_held(still).await
    }

    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        self.link.groups(ask).await
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        self.link.copy_out(copy).await
    }

    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        self.link.copy_in(copy).await
    }

    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        self.link.arrive(arrive).await
    }

    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        self.link.drop_groups(drop).await
    }

    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
        self.link.admit(admit).await
    }

    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        self.link.force_open(force).await
    }

    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        self.link.inspect(key).await
    }

    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        self.link.list(list).await
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
        let answer = desk.driver.submit(LockLane::Work, request()).await.unwrap();
        match answer {
            // Not connected yet.
            Err(ShardError::Unreachable { .. }) => sleep(Duration::from_millis(1)).await,
            other => break other,
        }
    };
    assert!(matches!(lost, Err(ShardError::NoReply { .. })), "{lost:?}");
    assert!(!next.load(Relaxed));
    let again = async {
        while desk
            .driver
            .submit(LockLane::Work, request())
            .await
            .unwrap()
            .is_err()
        {
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
        let answer = desk
            .dropped_after(turns, LockLane::Work, &key, acquire(holder))
            .await;
        let released = desk
            .ask(LockLane::Work, &key, Op::Release { nonce: holder })
            .await;
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
        lease: LEASE_MAX,
    };
    after_every_turn("a submitted renewal", async |turns| {
        let answer = desk
            .dropped_after(turns, LockLane::Renew, "key", renew())
            .await;
        let renewed = desk.ask(LockLane::Renew, "key", renew()).await;
        assert_eq!(
            renewed,
            Reply::Renewed {
                reclaimed: false,
                wanted: false,
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
            .dropped_after(turns, LockLane::Work, "key", Op::Release { nonce: holder })
            .await;
        let next = nonce(1_000_000 + turns);
        desk.granted("key", next).await;
        desk.ask(LockLane::Work, "key", Op::Release { nonce: next })
            .await;
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
