//! A shard's memory, and operations on the whole of it.

use std::fmt;

use super::{
    armed::Armed, batch::Batch, counters::Counters, imports::Imports, millis, queues::Queues,
    records::Records,
};
use crate::{
    ids::{ClientId, Epoch, Incarnation, Life, MapVersion, Token},
    shard::{
        self, Answers, Arm, ArmAnswer, Grace, MarkQuiet, Mode, Notification, Op, Request,
        ShardError, ShardTime,
    },
};

/// What a shard knows of topologies: what a recovery asks of every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// Its present life.
    pub life: Life,
    /// Nothing of a lower incarnation takes effect in this life.
    pub fence: Option<Incarnation>,
    /// Incarnation, version and text of the newest record seen.
    pub copy: Option<(Incarnation, u64, String)>,
    /// The epoch this life is armed with.
    pub armed: Option<Epoch>,
    /// The greatest epoch seen.
    pub epoch_seen: Epoch,
}

/// A shard's memory, in one life of it.
pub(super) struct Memory {
    /// Everything except the armed state, which is in `armed`.
    traces: Traces,
    /// When the life began.
    began_ms: u64,
    /// Everything was forgotten since the life began.
    emptied: bool,
    pub(super) armed: Option<Armed>,
    pub(super) records: Records,
    pub(super) queues: Queues,
    pub(super) counters: Counters,
    /// Messages that are not sent yet, with their receivers.
    pub(super) notifications: Vec<(ClientId, Notification)>,
    /// There is no room for new locks.
    pub(super) full: bool,
}

impl Memory {
    /// An empty memory in a life that begins now.
    pub(super) fn new(life: Life, now_ms: u64) -> Self {
        let epoch_seen = Epoch::default();
        Self {
            traces: Traces {
                life,
                fence: None,
                copy: None,
                armed: None,
                epoch_seen,
            },
            began_ms: now_ms,
            emptied: false,
            armed: None,
            records: Records::new(),
            queues: Queues::new(),
            counters: Counters::default(),
            notifications: Vec::new(),
            full: false,
        }
    }

    pub(super) fn life(&self) -> &Life {
        &self.traces.life
    }

    pub(super) fn traces(&self) -> Traces {
        Traces {
            armed: self.armed.as_ref().map(|armed| armed.epoch),
            ..self.traces.clone()
        }
    }

    /// Applies a batch, or nothing of it.
    pub(super) fn call(&mut self, batch: &[Request], now_ms: u64) -> Result<Answers, ShardError> {
        let first = batch.first();
        let map = first.map_or(MapVersion::UNKNOWN, |request| request.map);
        let mut applying = self.batch(map, now_ms)?;
        let quiet = applying.quiet;
        let mut replies = Vec::with_capacity(batch.len());
        for run in batch.chunk_by(|one, next| one.map.takes_along(next.map)) {
            replies.extend(applying.apply(run));
        }
        let Batch { armed, full, .. } = applying;
        let is_acquire = |request: &Request| matches!(request.op, Op::Acquire { .. });
        let could_grant = !full && batch.iter().any(is_acquire);
        Ok(Answers {
            now: Some(ShardTime(now_ms)),
            quiet,
            counter: if could_grant { armed.counter } else { 0 },
            replies,
        })
    }

    /// Something to apply, sent by a map of that version.
    pub(super) fn batch(&mut self, map: MapVersion, now_ms: u64) -> Result<Batch<'_>, ShardError> {
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        let quiet = Batch::is_quiet(armed, map);
        Ok(Batch {
            armed,
            records: &mut self.records,
            queues: &mut self.queues,
            notifications: &mut self.notifications,
            full: self.full,
            now_ms,
            quiet,
        })
    }

    /// Gives the life its state, unless it has one of this epoch or of a later one.
    pub(super) fn arm(&mut self, arm: &Arm, now_ms: u64) -> Result<ArmAnswer, ShardError> {
        self.hear_of(arm.incarnation, &arm.copy)?;
        let record = (arm.incarnation, arm.copy.0);
        let copy = self.traces.copy.as_ref();
        let has_newest = copy.is_some_and(|(n, version, _)| (*n, *version) == record);
        if let Some(former) = &self.armed
            && (former.epoch >= arm.epoch || !has_newest)
        {
            return Ok(ArmAnswer {
                armed_now: false,
                grace_left: former.grace_left(now_ms),
            });
        }
        self.saw(arm.epoch.max(arm.token_epoch));
        let mut armed = Armed {
            epoch: arm.epoch,
            token_epoch: arm.token_epoch,
            counter: 0,
            slots: arm.slots.clone(),
            imports: Imports::default(),
            grace_until_ms: 0,
            shut_until_ms: 0,
            grace_ms: 0,
            shut_ms: 0,
            forced: Epoch::default(),
            quiet: None,
        };
        if let Some(former) = &self.armed {
            armed.raise(former.last_token());
            (armed.grace_until_ms, armed.grace_ms) = (former.grace_until_ms, former.grace_ms);
            (armed.shut_until_ms, armed.shut_ms) = (former.shut_until_ms, former.shut_ms);
            armed.forced = former.forced;
        }
        armed.set_timers(self.grace_ms(arm.grace, now_ms), shut_ms(arm.grace), now_ms);
        let grace_left = armed.grace_left(now_ms);
        self.armed = Some(armed);
        Ok(ArmAnswer {
            armed_now: true,
            grace_left,
        })
    }

    /// The life's state, if it has one.
    pub(super) fn is_armed(&self, now_ms: u64) -> Option<shard::Armed> {
        self.armed.as_ref().map(|armed| shard::Armed {
            epoch: armed.epoch,
            grace_left: armed.grace_left(now_ms),
        })
    }

    /// Declares the life quiet, if it is.
    pub(super) fn mark_quiet(&mut self, mark: &MarkQuiet, now_ms: u64) -> Result<bool, ShardError> {
        self.hear_of(mark.incarnation, &mark.copy)?;
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        if armed.quiet > Some(mark.map) {
            // Engines that have not heard of that version must not take it from those that have.
            return Ok(false);
        }
        let timers_done = now_ms >= armed.grace_until_ms && now_ms >= armed.shut_until_ms;
        let open = |slot| armed.slots.get(slot).mode == Mode::Open;
        let quiet = timers_done && mark.slots.iter().copied().all(open);
        armed.quiet = quiet.then_some(mark.map);
        Ok(quiet)
    }

    /// Moves to a greater token epoch.
    pub(super) fn raise(
        &mut self,
        incarnation: Incarnation,
        epoch: Epoch,
    ) -> Result<(), ShardError> {
        self.raise_fence(incarnation)?;
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        armed.raise(Token::new(epoch, 0));
        self.saw(epoch);
        Ok(())
    }

    /// Forgets everything; the life goes on.
    pub(super) fn forget(&mut self) {
        let life = self.traces.life.clone();
        *self = Self {
            emptied: true,
            full: self.full,
            ..Self::new(life, self.began_ms)
        };
    }

    /// Begins the life called `life`, with the former records, queues and counters, or with none.
    pub(super) fn restart(&mut self, life: Life, keep_records: bool, now_ms: u64) {
        let former = std::mem::replace(self, Self::new(life, now_ms));
        self.full = former.full;
        if keep_records {
            self.records = former.records;
            self.queues = former.queues;
            self.counters = former.counters;
        }
    }

    /// The armed state, for faults and tests.
    pub(super) fn armed_mut(&mut self) -> Option<&mut Armed> {
        self.armed.as_mut()
    }

    /// Refuses an incarnation below the fence; else makes it the fence, armed or not.
    fn raise_fence(&mut self, incarnation: Incarnation) -> Result<(), ShardError> {
        match self.traces.fence {
            Some(fence) if incarnation < fence => Err(ShardError::Stale {
                fence: fence.to_string(),
            }),
            _ => {
                self.traces.fence = Some(incarnation);
                Ok(())
            }
        }
    }

    /// Keeps what a topology's record tells by itself, armed or not; or refuses it, as
    /// [`raise_fence`](Self::raise_fence).
    pub(super) fn hear_of(
        &mut self,
        incarnation: Incarnation,
        (version, text): &(u64, String),
    ) -> Result<(), ShardError> {
        self.raise_fence(incarnation)?;
        let newer = |(its_incarnation, its_version, _): &(Incarnation, u64, String)| {
            (incarnation, *version) > (*its_incarnation, *its_version)
        };
        if self.traces.copy.as_ref().is_none_or(newer) {
            self.traces.copy = Some((incarnation, *version, text.clone()));
        }
        Ok(())
    }

    pub(super) fn saw(&mut self, epoch: Epoch) {
        self.traces.epoch_seen = self.traces.epoch_seen.max(epoch);
    }

    fn grace_ms(&self, grace: Grace, now_ms: u64) -> u64 {
        match grace {
            Grace::Full(length) => millis(length),
            // Emptied or armed meanwhile: the locks it forgets may be younger than the life.
            Grace::LessUptime(length) if self.emptied || self.armed.is_some() => millis(length),
            Grace::LessUptime(length) => {
                millis(length).saturating_sub(now_ms.saturating_sub(self.began_ms))
            }
            Grace::Forced { shut, length } => millis(shut + length),
            Grace::None => 0,
        }
    }
}

fn shut_ms(grace: Grace) -> u64 {
    match grace {
        Grace::Forced { shut, .. } => millis(shut),
        Grace::Full(_) | Grace::LessUptime(_) | Grace::None => 0,
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("life", self.life())
            .field("armed", &self.armed)
            .field("records", &self.records.len())
            .field("queues", &self.queues.len())
            .finish_non_exhaustive()
    }
}
