//! Has a shard armed. Only the process that was allotted an epoch uses it, once.
//!
//! So no token repeats if a state is lost although the life goes on: no process arms it with its
//! former epoch. A process that finds a shard without state waits for a moment, because another
//! process may be about to arm it, and then has a fresh epoch allotted.

use std::{sync::Arc, time::Duration};

use ringfence_ring::ShardId;
use tokio::time::sleep;

use crate::{
    backoff::Backoff,
    clock::{Clock, Instant},
    ids::Epoch,
    random::Random,
    shard::{Armed, ControlLink, Grace, ShardError},
    topology::{ClockAlarm, ShardEntry, ShardName, Swap, Topology, TopologyError, TopologyStore},
};

/// How long to wait for the process that was allotted the epoch; twice as long for each further
/// epoch.
const PATIENCE: Duration = Duration::from_millis(300);

/// First and longest pause between two looks meanwhile.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// The reason why a shard could not be armed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArmError {
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// A process's knowledge of the epochs of one shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The shard was seen to be armed with it: it is not used again if the state is lost.
    pub(crate) used: Epoch,
    /// A state armed with this epoch, or with an earlier one, is not trusted.
    pub(crate) distrusted: Epoch,
    /// Why it is not.
    pub(crate) alarm: Option<ClockAlarm>,
}

/// Has one shard armed.
pub(crate) struct Arming<'a> {
    pub(crate) shard: &'a ShardId,
    pub(crate) store: &'a dyn TopologyStore,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) random: &'a Random,
    pub(crate) servers_are_new: bool,
}

impl Arming<'_> {
    /// Has the life of `link` named by the topology and armed with a trusted epoch. Returns the
    /// topology that names it, which may be newer than `topology`, and its state; `None` if the
    /// shard is not a member.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the life without state, named with an epoch that no process
    /// uses: the next call, of any process, has another epoch allotted.
    pub(crate) async fn bring_up(
        &self,
        link: &mut dyn ControlLink,
        mut topology: Arc<Topology>,
        known: &mut Known,
    ) -> Result<Option<(Arc<Topology>, Armed)>, ArmError> {
        let life = link.life().clone();
        let mut patience = Patience::new();
        let mut mine: Option<(Epoch, Grace)> = None;
        loop {
            let Some(entry) = topology.shard(self.shard) else {
                return Ok(None);
            };
            if entry.life == life {
                let armed = link.armed().await?;
                let least = entry.epoch.max(Epoch(known.distrusted.0 + 1));
                if let Some(armed) = armed.filter(|armed| armed.epoch >= least) {
                    known.used = known.used.max(armed.epoch);
                    return Ok(Some((topology, armed)));
                }
                let allotted = mine.filter(|(epoch, _)| *epoch == entry.epoch);
                if let Some((epoch, grace)) = allotted {
                    // Before it is sent: if no answer comes, it may have been used.
                    known.used = known.used.max(epoch);
                    let answer = link.arm(&topology.arm(self.shard, grace)).await?;
                    if answer.armed_now {
                        let grace_left = answer.grace_left;
                        tracing::info!(shard = %self.shard, grace = ?grace_left, "armed");
                        return Ok(Some((topology, Armed { epoch, grace_left })));
                    }
                }
                let spent = !entry.used || entry.epoch <= known.used.max(known.distrusted);
                let now = self.clock.now();
                if allotted.is_some() || (!spent && patience.lasts(entry.epoch, now)) {
                    // It has seen a later record; or another process is about to arm it.
                    sleep(patience.pauses.next(self.random)).await;
                    topology = self.store.load().await?;
                    continue;
                }
            }
            let loaded = self.store.load().await?;
            if loaded.version() > topology.version() {
                topology = loaded;
                continue;
            }
            let unix = self.clock.unix();
            let Some(mut next) = loaded.reborn(self.shard, life.clone(), unix)? else {
                return Ok(None);
            };
            let lives_on = |entry: &ShardEntry| entry.life == life;
            let alarm = known.alarm.clone();
            if let Some(alarm) = alarm.filter(|_| loaded.shard(self.shard).is_some_and(lives_on)) {
                next.alarms.insert(ShardName(self.shard.clone()), alarm);
            }
            topology = match self.store.swap(loaded.version(), &next).await? {
                Swap::Done => {
                    let first = |entry: &ShardEntry| entry.life == life && !entry.used;
                    let first = loaded.shard(self.shard).is_some_and(first);
                    let record = if first { &*loaded } else { &next };
                    let grace = record.grace(self.shard, self.servers_are_new);
                    mine = Some((next.last_epoch, grace));
                    Arc::new(next)
                }
                Swap::Newer(newer) => newer,
            };
        }
    }
}

/// The waits for processes that were allotted epochs.
struct Patience {
    pauses: Backoff,
    length: Duration,
    /// The epoch to wait for, and the end of the wait.
    awaited: Option<(Epoch, Instant)>,
}

impl Patience {
    fn new() -> Self {
        Self {
            pauses: Backoff::new(LOOK_AGAIN.0, LOOK_AGAIN.1),
            length: PATIENCE,
            awaited: None,
        }
    }

    /// Whether to wait, at `now`, for the process that was allotted `epoch`.
    fn lasts(&mut self, epoch: Epoch, now: Instant) -> bool {
        let until = match self.awaited {
            Some((awaited, until)) if awaited == epoch => until,
            _ => {
                let until = now + self.length;
                self.length *= 2;
                self.pauses.reset();
                self.awaited = Some((epoch, until));
                until
            }
        };
        now < until
    }
}
