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
    ids::{ClientId, Life},
    limits::LANES_BY_SLOT,
    shard::{
        Answers, ConnectionId, Control, ControlLink, ControlReply, CounterLink, Link, LockLane,
        LockLink, Notification, Op, Request, Shard, ShardError, Subscription, memory::MemoryShard,
    },
};
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
    pub(crate) fn delay_notifications(&self, length: Duration) {
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
    fn work_lanes(&self) -> usize {
        LANES_BY_SLOT
    }

    async fn connect_locks(
        &self,
        lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        self.0.through().await;
        let end = self.0.shard().connect_locks(lane, former).await?;
        let wire = self.0.clone();
        Ok(Box::new(Over { wire, end }))
    }

    async fn connect_counters(
        &self,
        _former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        unreachable!("no counters are used over a wire")
    }

    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        self.0.through().await;
        let end = self.0.shard().connect_control(former).await?;
        let wire = self.0.clone();
        Ok(Box::new(Over { wire, end }))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        self.0.through().await;
        let end = self.0.shard().listen(client).await?;
        let wire = self.0.clone();
        Ok(Box::new(Over { wire, end }))
    }
}

#[async_trait]
impl Subscription for Over<Box<dyn Subscription>> {
    fn life(&self) -> &Life {
        self.end.life()
    }

    async fn next(&mut self) -> Result<Notification, ShardError> {
        let notification = self.end.next().await?;
        sleep(Duration::from_millis(self.wire.late_ms.load(Relaxed))).await;
        self.wire.through().await;
        Ok(notification)
    }
}

#[async_trait]
impl<L: Link + ?Sized> Link for Over<Box<L>> {
    fn life(&self) -> &Life {
        self.end.life()
    }

    fn connection(&self) -> ConnectionId {
        self.end.connection()
    }

    async fn ended(&mut self) {
        self.end.ended().await;
    }
}

#[async_trait]
impl LockLink for Over<Box<dyn LockLink>> {
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
}

#[async_trait]
impl ControlLink for Over<Box<dyn ControlLink>> {
    async fn call(&mut self, control: Control) -> Result<ControlReply, ShardError> {
        self.wire.through().await;
        self.end.call(control).await
    }
}
