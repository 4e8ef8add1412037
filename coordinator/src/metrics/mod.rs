//! Counts what an engine does, per shard: plain numbers. An application exports them as it likes.

mod histogram;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_ring::ShardId;

pub use histogram::Histogram;

use crate::{
    clock::{Clock, Instant},
    ids::Epoch,
};

/// The outcome of an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lock was granted.
    Granted,
    /// Another holder has the lock.
    Held,
    /// The wait was over.
    TimedOut,
    /// The shard cannot grant now: it gives no answer, recovers, has no memory, or the slot moves.
    Unavailable,
    /// The call is invalid, or beyond a limit.
    Refused,
    /// The caller gave up.
    Cancelled,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The holder released the lock.
    Released,
    /// The lock was lost before: a renewal failed, or found no record.
    Lost,
    /// The lease of a holder outside of this process ended, which no request of that holder came to extend here: it died, or
    /// it has the lock renewed by another process.
    Left,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lock is renewed.
    Renewed,
    /// There is no answer, or "not now": it is repeated until the deadline.
    Failed,
    /// The shard has no record of the lock.
    Lost,
}

/// Counts what an engine does at one shard.
#[derive(Debug)]
pub struct ShardMetrics {
    acquisitions: [Histogram; Outcome::ALL.len()],
    waits: [Histogram; Outcome::AFTER_A_WAIT.len()],
    holds: [Histogram; End::ALL.len()],
    renewals: [AtomicU64; Renewal::ALL.len()],
    expiries: AtomicU64,
    second_rounds: AtomicU64,
    recoveries: AtomicU64,
    /// The last epoch whose recovery period was counted.
    recovered: AtomicU64,
    slots_taken_over: AtomicU64,
    batches: Histogram,
    /// Acquisitions that were begun.
    begun: AtomicU64,
}

/// An engine's numbers at one time.
#[derive(Debug)]
pub struct Reading {
    /// Per shard, in the order of the ring.
    pub shards: Vec<ShardReading>,
    /// The version of the topology in use.
    pub topology_version: u64,
    /// The number of slots that are moving.
    pub slots_moving: usize,
}

/// A shard's numbers at one time.
#[derive(Debug)]
pub struct ShardReading {
    /// The shard.
    pub id: ShardId,
    /// Whether its connections for locks are open.
    pub is_up: bool,
    /// The epoch that the topology names.
    pub epoch: Epoch,
    /// What was counted. Counts begin when the shard joins.
    pub metrics: Arc<ShardMetrics>,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Granted,
        Self::Held,
        Self::TimedOut,
        Self::Unavailable,
        Self::Refused,
        Self::Cancelled,
    ];

    /// The outcomes by which waits are counted.
    pub const AFTER_A_WAIT: [Self; 2] = [Self::Granted, Self::TimedOut];

    /// The name, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Held => "held",
            Self::TimedOut => "timed_out",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

impl End {
    /// All.
    pub const ALL: [Self; 3] = [Self::Released, Self::Lost, Self::Left];

    /// The name, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Left => "left",
        }
    }
}

impl Renewal {
    /// Every answer.
    pub const ALL: [Self; 3] = [Self::Renewed, Self::Failed, Self::Lost];

    /// The name, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

impl Default for ShardMetrics {
    fn default() -> Self {
        Self {
            acquisitions: std::array::from_fn(|_| Histogram::of_durations()),
            waits: std::array::from_fn(|_| Histogram::of_durations()),
            holds: std::array::from_fn(|_| Histogram::of_durations()),
            renewals: Default::default(),
            expiries: AtomicU64::new(0),
            second_rounds: AtomicU64::new(0),
            recoveries: AtomicU64::new(0),
            recovered: AtomicU64::new(0),
            slots_taken_over: AtomicU64::new(0),
            batches: Histogram::of_numbers(),
            begun: AtomicU64::new(0),
        }
    }
}

impl ShardMetrics {
    /// How long acquisitions took until their outcome.
    pub fn acquisitions(&self, outcome: Outcome) -> &Histogram {
        &self.acquisitions[outcome as usize]
    }

    /// How long acquisitions took that were not granted at once: another holder or waiter came first, or the shard could
    /// not grant yet. Only for the outcomes [`AFTER_A_WAIT`](Outcome::AFTER_A_WAIT), none for others.
    pub fn waits(&self, outcome: Outcome) -> Option<&Histogram> {
        let place = Outcome::AFTER_A_WAIT.iter().position(|its| *its == outcome);
        Some(&self.waits[place?])
    }

    /// How long locks were held until their end.
    pub fn holds(&self, end: End) -> &Histogram {
        &self.holds[end as usize]
    }

    /// The number of renewals with this answer.
    pub fn renewals(&self, answer: Renewal) -> u64 {
        self.renewals[answer as usize].load(Relaxed)
    }

    /// The number of locks that were not renewed before their deadline.
    pub fn expiries(&self) -> u64 {
        self.expiries.load(Relaxed)
    }

    /// The number of requests for locks with replicas that needed a second round trip, to confirm the token.
    pub fn second_rounds(&self) -> u64 {
        self.second_rounds.load(Relaxed)
    }

    /// The number of recovery periods that this engine has seen.
    pub fn recoveries(&self) -> u64 {
        self.recoveries.load(Relaxed)
    }

    /// The number of slots that the shard took over from others, by the topologies that this engine has used.
    pub fn slots_taken_over(&self) -> u64 {
        self.slots_taken_over.load(Relaxed)
    }

    /// The sizes of batches.
    pub fn batches(&self) -> &Histogram {
        &self.batches
    }

    /// Acquisitions that have no outcome yet.
    pub fn waiting(&self) -> u64 {
        let begun = self.begun.load(Relaxed);
        begun.saturating_sub(self.acquisitions.iter().map(Histogram::count).sum())
    }

    /// Locks that have a holder.
    pub fn held(&self) -> u64 {
        let granted = self.acquisitions(Outcome::Granted).count();
        granted.saturating_sub(self.holds.iter().map(Histogram::count).sum())
    }

    fn acquired(&self, outcome: Outcome, took: Duration) {
        self.acquisitions[outcome as usize].add_duration(took);
    }

    pub(crate) fn renewal(&self, answer: Renewal) {
        self.renewals[answer as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn expired(&self) {
        self.expiries.fetch_add(1, Relaxed);
    }

    pub(crate) fn second_round(&self) {
        self.second_rounds.fetch_add(1, Relaxed);
    }

    /// The shard is in the recovery period of `epoch`.
    pub(crate) fn recovers(&self, epoch: Epoch) {
        if self.recovered.fetch_max(epoch.0, Relaxed) < epoch.0 {
            self.recoveries.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn takes_over(&self, slots: u64) {
        self.slots_taken_over.fetch_add(slots, Relaxed);
    }

    pub(crate) fn batch(&self, requests: usize) {
        self.batches.add(requests as u64);
    }
}

/// An acquisition under way. It counts as cancelled if it is dropped without a result.
pub(crate) struct Acquiring<'a> {
    /// None once it has ended.
    metrics: Option<Arc<ShardMetrics>>,
    clock: &'a dyn Clock,
    since: Instant,
}

impl<'a> Acquiring<'a> {
    pub(crate) fn begin(metrics: Arc<ShardMetrics>, clock: &'a dyn Clock) -> Self {
        metrics.begun.fetch_add(1, Relaxed);
        Self {
            metrics: Some(metrics),
            clock,
            since: clock.now(),
        }
    }

    /// Counts `outcome`, and the wait before it if there was one. Returns the hold that begins now; none if nothing was
    /// granted.
    pub(crate) fn end(mut self, outcome: Outcome, has_waited: bool) -> Option<Holding> {
        let metrics = self.metrics.take()?;
        let now = self.clock.now();
        let took = now.since(self.since);
        metrics.acquired(outcome, took);
        if let Some(waits) = metrics.waits(outcome).filter(|_| has_waited) {
            waits.add_duration(took);
        }
        (outcome == Outcome::Granted).then_some(Holding {
            metrics,
            since: now,
        })
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.acquired(Outcome::Cancelled, self.clock.now().since(self.since));
        }
    }
}

/// A hold under way.
#[derive(Debug)]
pub(crate) struct Holding {
    metrics: Arc<ShardMetrics>,
    since: Instant,
}

impl Holding {
    /// The hold ends at `now`, with the lock held until then or not.
    pub(crate) fn end(self, now: Instant, is_held: bool) {
        self.end_as(now, if is_held { End::Released } else { End::Lost });
    }

    /// The hold ends at `now`.
    pub(crate) fn end_as(self, now: Instant, end: End) {
        self.metrics.holds[end as usize].add_duration(now.since(self.since));
    }
}
