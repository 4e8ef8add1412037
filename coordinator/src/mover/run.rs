//! One run of a mover: reads the record, does the work, and puts the results in the record.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::resume_unwind,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_ring::{ShardId, Slot};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout_at},
};

use super::{
    Context, Phase, Progress, Resized, STORE_AGAIN, WaitingFor,
    lives::lives,
    progress::Tally,
    shards::{Shards, Trouble},
    slot_migration::{Empty, Report, SlotMigration},
};
use crate::{
    clock,
    failpoint::{Rule, is_off},
    ids::Epoch,
    topology::{Migration, MigrationId, Round, ShardName, Swap, Topology, TopologyError, Version},
};

/// Longest pause between two looks at the record.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The time in which results are gathered before the record is changed: every engine reads each change, and for a
/// moment after it shards look at the slot of every request.
const GATHER: Duration = Duration::from_secs(1);

/// Reports in the channel, at most.
const REPORTS_MAX: usize = 64;

/// One run of a mover.
pub(super) struct Run<'a> {
    pub(super) around: Context,
    pub(super) shards: Arc<Shards>,
    /// The record last seen in force.
    pub(super) record: Arc<Topology>,
    /// Moves whose next shard has the list. The record does not say so yet.
    listed: BTreeSet<MigrationId>,
    /// Slots to be opened.
    pub(super) empty: BTreeMap<MigrationId, Empty>,
    slots_in_flight: usize,
    /// Until when processes may use a view with a dead shard, by the epoch at which it was declared dead.
    pub(super) views_until: BTreeMap<Epoch, clock::Instant>,
    /// At this version of the record, nothing is left to do until a report comes.
    idle_at: Option<Version>,
    tally: Tally,
    progress: &'a watch::Sender<Progress>,
    store_trouble: Option<String>,
    records: watch::Sender<Arc<Topology>>,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    slot_migrations: BTreeMap<(Epoch, ShardName), AbortHandle>,
    /// Ends the tasks under way when the run is dropped.
    tasks: JoinSet<()>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        around: Context,
        record: Arc<Topology>,
        slots_in_flight: usize,
        progress: &'a watch::Sender<Progress>,
    ) -> Self {
        Self {
            shards: Arc::new(Shards::new(around.clone())),
            listed: BTreeSet::new(),
            empty: BTreeMap::new(),
            slots_in_flight,
            views_until: BTreeMap::new(),
            idle_at: None,
            tally: Tally::new(around.clock.now()),
            progress,
            store_trouble: None,
            records: watch::Sender::new(record.clone()),
            reports: mpsc::channel(REPORTS_MAX),
            slot_migrations: BTreeMap::new(),
            tasks: JoinSet::new(),
            around,
            record,
        }
    }

    /// Runs until the record's goal is reached.
    pub(super) async fn complete(mut self) -> Result<Resized, TopologyError> {
        self.tally.count(&self.record)?;
        let aim = self.record.goal.as_ref().map(|goal| goal.after.clone());
        let notices = self.notify_failed_shards();
        while self.record.is_under_way() {
            if self.open_due().await? {
                continue;
            }
            let finished = self.finish().await?;
            if self.plan_round(finished).await? {
                continue;
            }
            self.tend_batches();
            self.tell_progress();
            self.wait().await?;
        }
        self.tell_progress();
        notices.done().await;
        let progress = self.progress.borrow();
        Ok(Resized {
            slots_moved: progress.slots_moved,
            locks_carried: progress.locks_carried,
            counters_carried: progress.counters_carried,
            version: self.record.version,
            reached: aim.is_none_or(|aim| aim == self.record.weights()),
            weights: self.record.weights(),
        })
    }

    /// Notes in the record the steps done since it was read, and plans as many further moves as may be in flight.
    /// Returns whether there is another record now.
    async fn plan_round(
        &mut self,
        finished: Vec<(Epoch, Vec<Slot>)>,
    ) -> Result<bool, TopologyError> {
        let idle = finished.is_empty() && self.listed.is_empty();
        if idle && self.idle_at == Some(self.record.version()) {
            return Ok(false);
        }
        let round = Round {
            listed: self.listed.iter().cloned().collect(),
            finished,
            slots_in_flight: self.slots_in_flight,
        };
        let Some(next) = self.record.turn(&round, self.around.clock.unix())? else {
            self.idle_at = Some(self.record.version());
            return Ok(false);
        };
        // The swap requires the version that was read before anything was opened. If a shard lost its life meanwhile,
        // and with it the opened slots, the version has changed.
        let swapped = self.swap(next).await?;
        if is_off(Rule::FinishAtVersion) && swapped == Some(false) {
            let record = self.record.clone();
            if let Some(next) = record.turn(&round, self.around.clock.unix())? {
                self.swap(next).await?;
            }
        }
        if swapped == Some(true) {
            self.tell_phases(&round);
        }
        Ok(swapped.is_some())
    }

    fn tell_phases(&self, round: &Round) {
        let observer = &self.around.observer;
        if !round.finished.is_empty() {
            observer.tell(Phase::Finished);
        }
        if !round.listed.is_empty() {
            observer.tell(Phase::Listed);
        }
        let planned = self.record.migrations.iter();
        let mut planned = planned.map(|migration| (migration.epoch, migration.from.clone()));
        if planned.any(|slot_migration| !self.slot_migrations.contains_key(&slot_migration)) {
            observer.tell(Phase::Planned);
        }
    }

    /// Replaces the record by `next`. Returns whether `next` is in force now, or another record; `None` if that is not
    /// known yet.
    pub(super) async fn swap(&mut self, next: Topology) -> Result<Option<bool>, TopologyError> {
        match self.around.store.swap(self.record.version(), &next).await {
            Ok(Swap::Done) => {
                self.adopt(Arc::new(next)).await?;
                Ok(Some(true))
            }
            Ok(Swap::Newer(newer)) => {
                self.adopt(newer).await?;
                Ok(Some(false))
            }
            Err(error) => self.store_failed(error).await.map(|()| None),
        }
    }

    /// Uses `record` from now on.
    async fn adopt(&mut self, record: Arc<Topology>) -> Result<(), TopologyError> {
        self.store_trouble = None;
        if record.version() <= self.record.version() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.record, record.clone());
        self.listed.retain(|id| {
            record
                .migration(id)
                .is_some_and(|migration| !migration.listed)
        });
        self.empty.retain(|id, empty| {
            let moves = |slot: &Slot| {
                let migration = record.migration(id);
                migration.is_some_and(|migration| migration.slots.binary_search(slot).is_ok())
            };
            empty.slots.retain(moves);
            !empty.slots.is_empty() && empty.lives == lives(&record, &id.from, &id.to)
        });
        self.records.send_replace(record.clone());
        self.tally.count(&record)?;
        let changed = |id: &ShardId| {
            let changed = |topology: &Topology| Some(topology.shard(id)?.changed);
            changed(&before) != changed(&record)
        };
        let changed_shards = record.shards.keys().filter(|name| changed(&name.0));
        join_all(changed_shards.map(|name| self.shards.mark_quiet(&record, &name.0))).await;
        Ok(())
    }

    /// Runs one task for each batch that is under way, and ends the tasks of others.
    fn tend_batches(&mut self) {
        let migrations = self.record.migrations.iter();
        let wanted: BTreeSet<_> = migrations
            .map(|migration| (migration.epoch, migration.from.clone()))
            .collect();
        self.slot_migrations.retain(|slot_migration, task| {
            let keep = wanted.contains(slot_migration);
            if !keep {
                task.abort();
            }
            keep
        });
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                resume_unwind(error.into_panic());
            }
        }
        for (epoch, from) in wanted {
            let slot_migration = SlotMigration {
                epoch,
                from: from.clone(),
                around: self.around.clone(),
                shards: self.shards.clone(),
                records: self.records.subscribe(),
                reports: self.reports.0.clone(),
                listed: BTreeMap::new(),
                carried: BTreeMap::new(),
            };
            let tasks = &mut self.tasks;
            self.slot_migrations
                .entry((epoch, from))
                .or_insert_with(|| tasks.spawn(slot_migration.run()));
        }
    }

    /// Waits for a report or a newer record, for a limited time.
    async fn wait(&mut self) -> Result<(), TopologyError> {
        let store = self.around.store.clone();
        let pause = LOOK_AGAIN.min(self.until_due());
        tokio::select! {
            Some(report) = self.reports.1.recv() => {
                self.take_report(report).await?;
                self.gather().await
            }
            newer = store.watch(self.record.version()) => match newer {
                Ok(newer) => self.adopt(newer).await,
                Err(error) => self.store_failed(error).await,
            },
            () = sleep(pause) => Ok(()),
        }
    }

    /// Takes further reports for a limited time, unless nothing more is to come.
    async fn gather(&mut self) -> Result<(), TopologyError> {
        let until = Instant::now() + GATHER;
        while !self.is_ripe()
            && let Ok(Some(report)) = timeout_at(until, self.reports.1.recv()).await
        {
            self.take_report(report).await?;
        }
        while let Ok(report) = self.reports.1.try_recv() {
            self.take_report(report).await?;
        }
        Ok(())
    }

    /// Whether every next shard has its list (to note that early saves requests a round trip), or every slot is empty.
    fn is_ripe(&self) -> bool {
        let mut unlisted = self
            .record
            .migrations
            .iter()
            .filter(|migration| !migration.listed);
        let listed = !self.listed.is_empty()
            && unlisted.all(|migration| self.listed.contains(&migration.id()));
        let empty = |migration: &Migration| {
            let empty = self.empty.get(&migration.id());
            empty.is_some_and(|empty| empty.slots.len() == migration.slots.len())
        };
        listed || self.record.migrations.iter().all(empty)
    }

    async fn take_report(&mut self, report: Report) -> Result<(), TopologyError> {
        match report {
            Report::Listed(id) => {
                if self
                    .record
                    .migration(&id)
                    .is_some_and(|migration| !migration.listed)
                {
                    self.listed.insert(id);
                }
            }
            Report::Empty(empty) => self.note_empty(empty),
            Report::Gone(keys) => self.tally.gone(keys),
            Report::Carried(groups) => self.tally.carried(groups),
            Report::Trouble(trouble) => self.handle(trouble).await?,
        }
        Ok(())
    }

    /// Reads the record again if a shard does not fit it.
    pub(super) async fn handle(&mut self, trouble: Trouble) -> Result<(), TopologyError> {
        match trouble {
            Trouble::Away => Ok(()),
            Trouble::Outdated => match self.around.store.load().await {
                Ok(newer) => self.adopt(newer).await,
                Err(error) => self.store_failed(error).await,
            },
            Trouble::Store(error) => self.store_failed(error).await,
        }
    }

    fn note_empty(&mut self, empty: Empty) {
        let MigrationId { from, to, .. } = &empty.id;
        if empty.lives != lives(&self.record, from, to) {
            return;
        }
        match self.empty.get_mut(&empty.id) {
            Some(known) => {
                known.slots.extend(empty.slots);
                known.above = known.above.max(empty.above);
            }
            None => drop(self.empty.insert(empty.id.clone(), empty)),
        }
    }

    async fn store_failed(&mut self, error: TopologyError) -> Result<(), TopologyError> {
        if !error.is_retryable() {
            return Err(error);
        }
        tracing::debug!(%error, "the topology store does not answer");
        self.store_trouble = Some(error.to_string());
        self.tell_progress();
        sleep(self.around.random.jitter(STORE_AGAIN)).await;
        if let Ok(newer) = self.around.store.load().await {
            self.adopt(newer).await?;
        }
        Ok(())
    }

    fn tell_progress(&self) {
        let store = self.store_trouble.clone();
        let store = store.map(|reason| WaitingFor::Store { reason });
        let shard = self.shards.waiting_for(&self.record);
        let now = self.around.clock.now();
        self.progress
            .send_replace(self.tally.look(now, store.or(shard)));
    }
}
