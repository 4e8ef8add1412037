//! One process's way to a shard: it can be cut, its messages can be late, and what goes over it is counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Incarnation, Life},
    name::LockKey,
    shard::{
        Admit, Answers, Arm, ArmAnswer, Armed, Arrival, Arrive, AskGroups, ConnectionId, CopyIn,
        CopyOut, CounterAnswers, CounterRequest, DropGroups, Dropped, ForceOpen, ForcedOpen,
        Groups, HeldStill, Inspection, Lane, Link, List, Listing, LockPage, Op, Piece, PutAside,
        Request, Scan, ScanPage, Settle, Shard, ShardError, Step, Stepped, StillHeld, Wake, Wakes,
        memory::MemoryShard,
    },
};
use ringfence_ring::Slot;
use tokio::{sync::watch, time::sleep};

/// A way to a shard.
#[derive(Debug)]
pub(crate) struct Wire {
    shard: Mutex<Arc<MemoryShard>>,
    cut: AtomicBool,
    mute: watch::Sender<bool>,
    late_ms: AtomicU64,
    acquires: AtomicUsize,
}

impl Wire {
    pub(crate) fn to(shard: Arc<MemoryShard>) -> Arc<Self> {
        Arc::new(Self {
            shard: Mutex::new(shard),
            cut: AtomicBool::new(false),
            mute: watch::Sender::new(false),
            late_ms: AtomicU64::new(0),
            acquires: AtomicUsize::new(0),
        })
    }

    /// Connections to come lead to `shard`; those that are there stay.
    pub(crate) fn lead_to(&self, shard: Arc<MemoryShard>) {
        *self.shard.lock() = shard;
    }

    fn shard(&self) -> Arc<MemoryShard> {
        self.shard.lock().clone()
    }

    /// Nothing comes through any more, there or back: as if the process had died.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// Whether requests over it are held back from now on.
    pub(crate) fn mute(&self, mute: bool) {
        self.mute.send_replace(mute);
    }

    /// What the shard says by itself comes later by `length`.
    pub(crate) fn delay_wakes(&self, length: Duration) {
        self.late_ms.store(length.as_millis() as u64, Relaxed);
    }

    /// Requests to acquire that went over it.
    pub(crate) fn acquires(&self) -> usize {
        self.acquires.load(Relaxed)
    }

    async fn through(&self) {
        if self.cut.load(Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

/// Either kind of connection.
#[derive(Debug)]
struct Over<T> {
    wire: Arc<Wire>,
    end: T,
}

/// So that a connection can say which wire it goes over.
#[derive(Debug)]
pub(crate) struct OverWire(pub(crate) Arc<Wire>);

#[async_trait]
impl Shard for OverWire {
    async fn connect(
        &self,
        lane: Lane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Link>, ShardError> {
        self.0.through().await;
        let end = self.0.shard().connect(lane, former).await?;
        let wire = self.0.clone();
        Ok(Box::new(Over { wire, end }))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Wakes>, ShardError> {
        self.0.through().await;
        let end = self.0.shard().listen(client).await?;
        let wire = self.0.clone();
        Ok(Box::new(Over { wire, end }))
    }
}

#[async_trait]
impl Wakes for Over<Box<dyn Wakes>> {
    fn life(&self) -> &Life {
        self.end.life()
    }

    async fn next(&mut self) -> Result<Wake, ShardError> {
        let wake = self.end.next().await?;
        sleep(Duration::from_millis(self.wire.late_ms.load(Relaxed))).await;
        self.wire.through().await;
        Ok(wake)
    }
}

#[async_trait]
impl Link for Over<Box<dyn Link>> {
    fn life(&self) -> &Life {
        self.end.life()
    }

    fn connection(&self) -> ConnectionId {
        self.end.connection()
    }

    async fn ended(&mut self) {
        self.end.ended().await;
    }

    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        let mut mute = self.wire.mute.subscribe();
        drop(mute.wait_for(|mute| !mute).await);
        self.wire.through().await;
        let acquires = batch
            .iter()
            .filter(|request| matches!(request.op, Op::Acquire { .. }));
        self.wire.acquires.fetch_add(acquires.count(), Relaxed);
        self.end.call(batch).await
    }

    async fn call_counters(
        &mut self,
        batch: &[CounterRequest],
    ) -> Result<CounterAnswers, ShardError> {
        self.wire.through().await;
        self.end.call_counters(batch).await
    }

    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        self.wire.through().await;
        self.end.arm(arm).await
    }

    async fn armed(&mut self) -> Result<Option<Armed>, ShardError> {
        self.wire.through().await;
        self.end.armed().await
    }

    async fn settle(&mut self, settle: &Settle) -> Result<bool, ShardError> {
        self.wire.through().await;
        self.end.settle(settle).await
    }

    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError> {
        self.wire.through().await;
        self.end.raise(incarnation, epoch).await
    }

    async fn step(&mut self, step: &Step) -> Result<Stepped, ShardError> {
        self.wire.through().await;
        self.end.step(step).await
    }

    async fn scan(&mut self, scan: &Scan) -> Result<ScanPage, ShardError> {
        self.wire.through().await;
        self.end.scan(scan).await
    }

    async fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        self.wire.through().await;
        self.end.take_list(listing).await
    }

    async fn still_held(&mut self, still: &StillHeld) -> Result<HeldStill, ShardError> {
        self.wire.through().await;
        self.end.still_held(still).await
    }

    async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        self.wire.through().await;
        self.end.groups(ask).await
    }

    async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        self.wire.through().await;
        self.end.copy_out(copy).await
    }

    async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        self.wire.through().await;
        self.end.copy_in(copy).await
    }

    async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        self.wire.through().await;
        self.end.arrive(arrive).await
    }

    async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        self.wire.through().await;
        self.end.drop_groups(drop).await
    }

    async fn admit(&mut self, admit: &Admit) -> Result<Vec<Slot>, ShardError> {
        self.wire.through().await;
        self.end.admit(admit).await
    }

    async fn force_open(&mut self, force: &ForceOpen) -> Result<ForcedOpen, ShardError> {
        self.wire.through().await;
        self.end.force_open(force).await
    }

    async fn inspect(&mut self, key: &LockKey) -> Result<Inspection, ShardError> {
        self.wire.through().await;
        self.end.inspect(key).await
    }

    async fn list(&mut self, list: &List) -> Result<LockPage, ShardError> {
        self.wire.through().await;
        self.end.list(list).await
    }
}
