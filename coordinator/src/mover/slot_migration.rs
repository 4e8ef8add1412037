//! The slots of one batch that leave one shard, from the seal until nothing is left there.
//!
//! One scan of the former shard serves all next shards. A next shard that is away delays its own slots only: slots are
//! sealed only when their next shard is ready.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_ring::Slot;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use super::{
    Context, Phase,
    left::Remains,
    lives::{Lives, lives},
    shards::{Shards, Trouble},
};
use crate::{
    backoff::Backoff,
    failpoint::{Rule, is_off},
    ids::{Epoch, MapVersion, Token},
    limits::{LISTED_KEYS, STEP_SLOTS},
    name::LockKey,
    shard::{Listing, Mode, Scan, Step},
    topology::{Migration, MigrationId, ShardName, Topology},
};

/// First and longest pause between two looks at the keys left.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(1));

/// The reports on a batch's slots.
#[derive(Debug)]
pub(super) enum Report {
    /// The next shard has the list.
    Listed(MigrationId),
    /// The former shard has no held key and no counter of these slots, and gets none.
    Empty(Empty),
    /// This many keys that were held at the former shard are no longer held there.
    Gone(usize),
    /// This many segments and manifests of counters are at the next shard.
    Carried(usize),
    /// A shard does not fit the record.
    Trouble(Trouble),
}

/// Slots that may be opened at their next shard.
#[derive(Debug)]
pub(super) struct Empty {
    pub(super) id: MigrationId,
    /// The next shard's tokens must be above this one.
    pub(super) above: Token,
    /// Of both shards, the same throughout.
    pub(super) lives: Option<Lives>,
    pub(super) slots: BTreeSet<Slot>,
}

/// The slots of one batch that leave one shard.
#[derive(Debug)]
pub(super) struct SlotMigration {
    pub(super) epoch: Epoch,
    pub(super) from: ShardName,
    pub(super) around: Context,
    pub(super) shards: Arc<Shards>,
    pub(super) records: watch::Receiver<Arc<Topology>>,
    pub(super) reports: mpsc::Sender<Report>,
    /// The keys left, of moves whose next shard has the list.
    pub(super) listed: BTreeMap<ShardName, Remains>,
    /// Moves that wait for a grace: the lives of both shards in which their counters were carried.
    pub(super) carried: BTreeMap<ShardName, Option<Lives>>,
}

/// A move whose next shard has imported its slots.
pub(super) struct Imported<'a> {
    migration: &'a Migration,
    /// The next shard's tokens must be above this one.
    above: Token,
    /// Slots that the next shard refuses: another mover has opened them there already.
    open: BTreeSet<Slot>,
}

impl SlotMigration {
    /// Runs until dropped.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(LOOK_AGAIN.0, LOOK_AGAIN.1);
        loop {
            let record = self.records.borrow_and_update().clone();
            match self.advance(&record).await {
                Ok(true) => backoff.reset(),
                Ok(false) => {}
                Err(trouble) => self.report_trouble(trouble).await,
            }
            sleep(backoff.next(&self.around.random)).await;
        }
    }

    /// Does all steps that are possible now. Returns whether there was one.
    async fn advance(&mut self, record: &Topology) -> Result<bool, Trouble> {
        let ours =
            |migration: &&Migration| migration.epoch == self.epoch && migration.from == self.from;
        let migrations: Vec<_> = record.migrations.iter().filter(ours).collect();
        self.listed
            .retain(|to, remains| remains.lives == lives(record, &self.from, to));
        let unlisted = migrations.iter().copied();
        let unlisted: Vec<_> = unlisted
            .filter(|migration| !self.listed.contains_key(&migration.to))
            .collect();
        let listed = !unlisted.is_empty() && self.list(record, unlisted).await?;
        let emptied = self.look(record, &migrations).await?;
        Ok(listed || emptied)
    }

    /// Brings moves to the point where their next shards have the list. Returns whether one got there.
    ///
    /// Each step may be repeated, by this mover or another.
    async fn list(
        &mut self,
        record: &Topology,
        migrations: Vec<&Migration>,
    ) -> Result<bool, Trouble> {
        let migrations = self.ready(record, migrations).await;
        if migrations.is_empty() {
            return Ok(false);
        }
        let early = match is_off(Rule::ListAfterSeal) {
            true => Some(self.scan(record).await?),
            false => None,
        };
        let imported = self.hand_over(record, migrations).await?;
        let held = match early {
            Some(held) => held,
            None => self.scan(record).await?,
        };
        let delivered = self.deliver(record, imported, &held).await;
        for Imported {
            migration, above, ..
        } in &delivered
        {
            let lives = lives(record, &self.from, &migration.to);
            let remains = Remains::new(migration, &held, *above, lives);
            self.listed.insert(migration.to.clone(), remains);
            self.report(Report::Listed(migration.id())).await;
        }
        Ok(!delivered.is_empty())
    }

    /// The moves of `migrations` whose shards are armed and past their grace: no slot is sealed before.
    ///
    /// A slot that is sealed all the same was sealed before a shard came back. Its counters do not change, so they are
    /// carried at once: grace concerns locks only.
    async fn ready<'a>(
        &mut self,
        record: &Topology,
        migrations: Vec<&'a Migration>,
    ) -> Vec<&'a Migration> {
        let former = self.shards.ready(record, &self.from.0).await;
        let nexts = migrations.iter();
        let nexts = nexts.map(|migration| self.shards.ready(record, &migration.to.0));
        let nexts = join_all(nexts).await;
        let (mut ready, mut troubles) = (Vec::new(), Vec::new());
        for (migration, next) in migrations.into_iter().zip(nexts) {
            if former.is_ok() && next.is_ok() {
                ready.push(migration);
                continue;
            }
            troubles.extend(next.err());
            troubles.extend(self.carry_sealed(record, migration).await.err());
        }
        troubles.extend(former.err());
        for trouble in troubles {
            self.report_trouble(trouble).await;
        }
        ready
    }

    /// Seals slots at the former shard and has the next shards import the sealed ones. Leaves out next shards that are
    /// away.
    async fn hand_over<'a>(
        &self,
        record: &Topology,
        migrations: Vec<&'a Migration>,
    ) -> Result<Vec<Imported<'a>>, Trouble> {
        let mut imported = Vec::new();
        for migration in migrations {
            let slots = &migration.slots;
            imported.extend(self.hand_over_to(record, migration, slots).await?);
            self.shards.mark_quiet(record, &migration.to.0).await;
        }
        self.shards.mark_quiet(record, &self.from.0).await;
        Ok(imported)
    }

    /// Some slots at a time, whose blocks are copied before: from the seal to the import no shard grants their keys,
    /// and until their counters are carried no shard serves these. If the carrying fails, no more slots are sealed; and
    /// no slot is opened, because the next shard has no list.
    pub(super) async fn hand_over_to<'a>(
        &self,
        record: &Topology,
        migration: &'a Migration,
        slots: &[Slot],
    ) -> Result<Option<Imported<'a>>, Trouble> {
        let change = |shard, mode, above| step(record, shard, self.epoch, mode, above);
        let mut seal = change(&self.from, Mode::Sealed, Token::default());
        let mut import = change(&migration.to, Mode::Import, Token::new(self.epoch, 0));
        let mut open = BTreeSet::new();
        for slots in slots.chunks(STEP_SLOTS) {
            let ahead = match self.copy_ahead(record, migration, slots).await {
                Ok(ahead) => ahead,
                Err(trouble) => {
                    self.report_trouble(trouble).await;
                    return Ok(None);
                }
            };
            seal.slots = slots.to_vec();
            // The shard refuses slots that another mover has shut already; `look` notices that.
            let sealed = self.shards.ask(record, &self.from.0, seal.clone()).await?;
            self.around.observer.tell(Phase::Sealed);
            import.slots = slots.to_vec();
            import.above = import.above.max(sealed.last_token);
            let imported = match self
                .shards
                .ask(record, &migration.to.0, import.clone())
                .await
            {
                Ok(imported) => {
                    open.extend(imported.refused);
                    self.around.observer.tell(Phase::Imported);
                    self.carry(record, migration, slots, ahead).await
                }
                Err(trouble) => Err(trouble),
            };
            if let Err(trouble) = imported {
                self.report_trouble(trouble).await;
                return Ok(None);
            }
            self.shards.pause().await;
        }
        Ok(Some(Imported {
            migration,
            above: import.above,
            open,
        }))
    }

    /// The keys held in the slots that are sealed at this epoch. The scan begins after the seal was answered and after
    /// grace. An earlier scan could miss a key that is put back later.
    async fn scan(&self, record: &Topology) -> Result<BTreeSet<LockKey>, Trouble> {
        let mut held = BTreeSet::new();
        let mut scan = Scan {
            epoch: self.epoch,
            after: None,
        };
        loop {
            let page = self.shards.ask(record, &self.from.0, scan.clone()).await?;
            if !page.grace_left.is_zero() {
                return Err(Trouble::Away);
            }
            held.extend(page.held);
            scan.after = page.next;
            if scan.after.is_none() {
                self.around.observer.tell(Phase::Scanned);
                return Ok(held);
            }
            self.shards.pause().await;
        }
    }

    /// Sends the next shards the list of held keys. Returns the moves whose list is complete.
    async fn deliver<'a>(
        &self,
        record: &Topology,
        imported: Vec<Imported<'a>>,
        held: &BTreeSet<LockKey>,
    ) -> Vec<Imported<'a>> {
        let deliver = async |imported: Imported<'a>| {
            for listing in imported.listings(self.epoch, held) {
                let to = &imported.migration.to.0;
                let refused = self.shards.ask(record, to, listing).await?;
                if refused.iter().any(|slot| !imported.open.contains(slot)) {
                    return Err(Trouble::Outdated);
                }
                self.shards.pause().await;
            }
            self.around.observer.tell(Phase::Delivered);
            Ok(imported)
        };
        self.done(join_all(imported.into_iter().map(deliver)).await)
            .await
    }

    /// Checks which of the keys left are still held. Returns whether a slot became empty.
    async fn look(
        &mut self,
        record: &Topology,
        migrations: &[&Migration],
    ) -> Result<bool, Trouble> {
        let mut emptied = false;
        for migration in migrations {
            let Some(mut remains) = self.listed.remove(&migration.to) else {
                continue;
            };
            let looked = remains.look(&self.shards, record, migration).await;
            let slots = remains.take_empty(migration);
            let (gone, above, lives) = (remains.take_gone(), remains.above, remains.lives.clone());
            self.listed.insert(migration.to.clone(), remains);
            if gone > 0 {
                self.report(Report::Gone(gone)).await;
            }
            if !slots.is_empty() {
                emptied = true;
                let id = migration.id();
                let empty = Empty {
                    id,
                    above,
                    lives,
                    slots,
                };
                self.report(Report::Empty(empty)).await;
            }
            looked?;
        }
        Ok(emptied)
    }

    async fn done<T>(&self, attempts: Vec<Result<T, Trouble>>) -> Vec<T> {
        let mut done = Vec::new();
        for attempt in attempts {
            match attempt {
                Ok(one) => done.push(one),
                Err(trouble) => self.report_trouble(trouble).await,
            }
        }
        done
    }

    async fn report_trouble(&self, trouble: Trouble) {
        if !matches!(trouble, Trouble::Away) {
            self.report(Report::Trouble(trouble)).await;
        }
    }

    pub(super) async fn report(&self, report: Report) {
        // After the end of the run, no receiver is left.
        let _ = self.reports.send(report).await;
    }
}

impl Imported<'_> {
    /// The list for the next shard, in pieces. The last piece completes it.
    fn listings(&self, epoch: Epoch, held: &BTreeSet<LockKey>) -> Vec<Listing> {
        let slots = self.migration.slots.iter().copied();
        let slots: Vec<_> = slots.filter(|slot| !self.open.contains(slot)).collect();
        let mut keys: BTreeMap<Slot, Vec<&LockKey>> = BTreeMap::new();
        for key in held {
            keys.entry(key.slot()).or_default().push(key);
        }
        let mut pieces = Vec::new();
        for complete in slots.chunks(STEP_SLOTS) {
            let keys = complete.iter().filter_map(|slot| keys.remove(slot));
            let held: Vec<_> = keys.flatten().cloned().collect();
            let piece = |held: &[LockKey]| Listing {
                epoch,
                held: held.to_vec(),
                complete: Vec::new(),
            };
            let first = pieces.len();
            pieces.extend(held.chunks(LISTED_KEYS).map(piece));
            if pieces.len() == first {
                pieces.push(piece(&[]));
            }
            let last = pieces
                .last_mut()
                .expect("one, if only to say that it is all");
            last.complete = complete.to_vec();
        }
        pieces
    }
}

/// A change at `shard`, by `record`, still without slots. The slots added later migrate by the record.
///
/// The record is encoded once for all pieces of a change.
pub(super) fn step(
    record: &Topology,
    shard: &ShardName,
    epoch: Epoch,
    mode: Mode,
    above: Token,
) -> Step {
    Step {
        incarnation: record.incarnation,
        copy: (record.version, record.encode()),
        map: record
            .shard(&shard.0)
            .map_or(MapVersion::UNKNOWN, |entry| entry.changed),
        epoch,
        mode,
        slots: Vec::new(),
        above,
    }
}
