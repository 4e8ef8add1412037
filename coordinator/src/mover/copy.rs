//! Copies a group of counters from the former shard to the next, piece by piece: its blocks and its open requests
//! before its slot is sealed, the rest after that.

use std::collections::BTreeMap;

use ringfence_ring::Slot;
use tokio::time::{Instant, sleep};

use super::{Phase, shards::Trouble, slot_migration::SlotMigration};
use crate::{
    ids::Life,
    limits::{COPY_AHEAD_TIMES, COPY_BLOCKS, COPY_ROWS},
    name::LockKey,
    shard::{
        Arrival, Arrive, AskGroups, Block, CopyIn, CopyOf, CopyOut, Cursor, Excerpt, Group, Piece,
        PutAside, Stamp, When,
    },
    topology::{Migration, Topology},
};

/// Groups whose open requests the next shard has put aside, and where the changes since are to be read. Another mover
/// does not know it, and copies them anew.
pub(super) type OpenAhead = BTreeMap<LockKey, Cursor>;

impl SlotMigration {
    /// Has the next shard put aside the blocks and the open requests of `slots` that are not sealed yet. Repeats that for
    /// what changes meanwhile, until one piece or none was left.
    pub(super) async fn copy_ahead(
        &self,
        record: &Topology,
        migration: &Migration,
        slots: &[Slot],
    ) -> Result<OpenAhead, Trouble> {
        let mut open = OpenAhead::new();
        for _ in 0..COPY_AHEAD_TIMES {
            let copied = self.copy_changes(record, migration, slots, &mut open).await;
            if copied? <= 1 {
                break;
            }
        }
        self.around.observer.tell(Phase::CopiedAhead);
        Ok(open)
    }

    /// Has the next shard put aside the blocks and the open requests that it lacks. Returns the number of pieces.
    async fn copy_changes(
        &self,
        record: &Topology,
        migration: &Migration,
        slots: &[Slot],
        open: &mut OpenAhead,
    ) -> Result<usize, Trouble> {
        let mut copied = 0;
        let mut ask = AskGroups {
            epoch: self.epoch,
            slots: slots.to_vec(),
            when: When::Before(None),
        };
        loop {
            let page = self.shards.ask(record, &self.from.0, ask.clone()).await?;
            for group in &page.groups {
                let lacked = self.lacked(record, migration, group).await?;
                for blocks in lacked.unwrap_or_default().chunks(COPY_BLOCKS) {
                    let blocks = Excerpt::Blocks(blocks.to_vec());
                    self.copy_piece(record, migration, group, blocks).await?;
                    copied += 1;
                    self.shards.pause().await;
                }
                copied += self.copy_open(record, migration, group, open).await?;
            }
            let Some(next) = page.next else {
                return Ok(copied);
            };
            ask.when = When::Before(Some(next));
            self.shards.pause().await;
        }
    }

    /// Has the next shard put aside the open requests of `group`, or what changed of them since that was done. Notes how
    /// far that is, unless few are open or changes were missed. Returns the number of full pieces.
    async fn copy_open(
        &self,
        record: &Topology,
        migration: &Migration,
        group: &Group,
        open: &mut OpenAhead,
    ) -> Result<usize, Trouble> {
        let (mut after, mut full) = (open.remove(&group.key), 0);
        loop {
            let excerpt = Excerpt::Open(after);
            let copied = self.copy_piece(record, migration, group, excerpt).await?;
            let Some((
                Piece {
                    next: Some(next), ..
                },
                rows,
            )) = copied
            else {
                return Ok(full);
            };
            self.around.observer.tell(Phase::Copied);
            if rows < COPY_ROWS {
                open.insert(group.key.clone(), next);
                return Ok(full);
            }
            after = Some(next);
            full += 1;
            self.shards.pause_briefly().await;
        }
    }

    /// Has the next shard take `group`. Returns the source and the stamp of the copy there: the former shard may drop
    /// the group only if it still matches them.
    pub(super) async fn copy(
        &self,
        record: &Topology,
        migration: &Migration,
        group: &Group,
        open: &mut OpenAhead,
    ) -> Result<Option<CopyOf>, Trouble> {
        let source = self.source(record)?;
        if open.contains_key(&group.key) {
            self.copy_open(record, migration, group, open).await?;
        }
        let is_rest = open.contains_key(&group.key);
        let rows = |after| match is_rest {
            true => Excerpt::Rest(after),
            false => Excerpt::Rows(after),
        };
        let (mut sizes, mut stamp) = (Vec::new(), Stamp::default());
        if let Some(lacked) = self.lacked(record, migration, group).await? {
            let blocks = lacked.chunks(COPY_BLOCKS);
            let mut left: Vec<_> = blocks.map(|some| Excerpt::Blocks(some.to_vec())).collect();
            left.push(rows(None));
            left.reverse();
            while let Some(excerpt) = left.pop() {
                let began = Instant::now();
                let copied = self.copy_piece(record, migration, group, excerpt).await?;
                let Some((piece, _)) = copied else {
                    // Another mover was faster, and nothing is left to drop; or a later record moves the slot
                    // elsewhere.
                    return Ok(Some(CopyOf { source, stamp }));
                };
                self.around.observer.tell(Phase::Copied);
                // Shards serve others, too. But the counter is out of reach: the pauses for other slots do not delay it.
                sleep(began.elapsed()).await;
                (sizes, stamp) = (piece.sizes, piece.stamp);
                left.extend(piece.next.map(|next| rows(Some(next))));
            }
        }
        let arrive = Arrive {
            epoch: self.epoch,
            source,
            group: group.clone(),
            sizes,
            stamp,
        };
        let arrival = self.shards.ask(record, &migration.to.0, arrive).await?;
        self.arrived(migration, group, arrival)
    }

    /// The blocks of `group` that the next shard lacks; `None` if the group has arrived there.
    async fn lacked(
        &self,
        record: &Topology,
        migration: &Migration,
        group: &Group,
    ) -> Result<Option<Vec<Block>>, Trouble> {
        if group.blocks.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let ask = CopyIn {
            epoch: self.epoch,
            source: self.source(record)?,
            group: group.clone(),
            rows: Vec::new(),
        };
        match self.shards.ask(record, &migration.to.0, ask).await? {
            PutAside::Lacks(blocks) => Ok(Some(blocks)),
            PutAside::Arrived => Ok(None),
            PutAside::Refused => Err(Trouble::Outdated),
        }
    }

    /// Has the next shard put a piece of `group` aside. Returns the piece without its rows, and their number; `None` if
    /// the former shard has no such piece.
    async fn copy_piece(
        &self,
        record: &Topology,
        migration: &Migration,
        group: &Group,
        what: Excerpt,
    ) -> Result<Option<(Piece, usize)>, Trouble> {
        let copy = CopyOut {
            epoch: self.epoch,
            key: group.key.clone(),
            what,
        };
        let piece = self.shards.ask(record, &self.from.0, copy).await?;
        let Some(mut piece) = piece else {
            return Ok(None);
        };
        let rows = std::mem::take(&mut piece.rows);
        let count = rows.len();
        let put = CopyIn {
            epoch: self.epoch,
            source: self.source(record)?,
            group: Group {
                blocks: Vec::new(),
                ..group.clone()
            },
            rows,
        };
        match self.shards.ask(record, &migration.to.0, put).await? {
            PutAside::Lacks(_) | PutAside::Arrived => Ok(Some((piece, count))),
            PutAside::Refused => Err(Trouble::Outdated),
        }
    }

    /// Turns the next shard's answer into a copy, or into the reason to wait.
    fn arrived(
        &self,
        migration: &Migration,
        group: &Group,
        arrival: Arrival,
    ) -> Result<Option<CopyOf>, Trouble> {
        let key = &group.key;
        let reason = match arrival {
            Arrival::Here(copy) => {
                self.around.observer.tell(Phase::Arrived);
                return Ok(copy);
            }
            Arrival::Refused => return Err(Trouble::Outdated),
            Arrival::Incomplete => format!("the copy of counter {key} is not complete"),
            Arrival::Differs => format!("the copy of counter {key} has other content"),
            Arrival::NotOnDisk => format!(
                "counter {key} wants every change on the disk: set appendonly yes, appendfsync always and \
                 no-appendfsync-on-rewrite no"
            ),
            Arrival::TooFewReplicas { replicas, required } => {
                format!("counter {key} wants {required} replicas, and {replicas} have it")
            }
        };
        Err(self.shards.wait(&migration.to.0, reason))
    }

    /// The life that the slots are copied from. Answers of another life do not count.
    fn source(&self, record: &Topology) -> Result<Life, Trouble> {
        let entry = record.shard(&self.from.0).ok_or(Trouble::Outdated)?;
        Ok(entry.life.clone())
    }
}
