//! Counters: shards of documents keep none, and say so.

use ringfence_ring::Slot;

use super::{attempt::Desk, migration::NOTHING, view::View};
use crate::{
    name::LockKey,
    shard::{
        Arrival, Arrive, AskGroups, CopyIn, CopyOut, CounterAnswers, DropGroups, Dropped, Groups,
        Piece, PutAside, ShardError, SlotState, When,
        whole::{ChangeWhole as _, Needs, Whole},
    },
};

/// The refusal of a request about a counter.
fn no_counters() -> ShardError {
    ShardError::Unusable {
        reason: "this shard keeps locks and no counters: only shards on Redis keep counters".into(),
    }
}

impl Desk {
    /// Refuses a batch of requests about counters, over a connection that has not ended, in an armed life.
    pub(super) async fn refuse_counters(&mut self) -> Result<CounterAnswers, ShardError> {
        self.view = View::default();
        let (read, _) = self.read_whole(Needs::Head).await?;
        self.view.whole.head.armed()?;
        // A commit tells whether the connection has ended.
        self.commit(&read, NOTHING).await?;
        Err(no_counters())
    }

    /// There are none.
    pub(super) async fn groups(&mut self, ask: &AskGroups) -> Result<Groups, ShardError> {
        let is_such = |state: SlotState| match ask.when {
            When::Before(_) => state.epoch < ask.epoch,
            When::Sealed => state.leaves_by(ask.epoch),
            When::Here(_) => true,
        };
        Ok(Groups {
            refused: self.others(&ask.slots, is_such).await?,
            complete: true,
            ..Groups::default()
        })
    }

    /// There is none.
    pub(super) async fn copy_out(&mut self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        self.state(&copy.key).await.map(|_| None)
    }

    /// Refuses a group whose slot comes here.
    pub(super) async fn copy_in(&mut self, copy: &CopyIn) -> Result<PutAside, ShardError> {
        let state = self.state(&copy.group.key).await?;
        match !state.arrives_by(copy.epoch) && state.epoch >= copy.epoch {
            true => Ok(PutAside::Refused),
            false => Err(no_counters()),
        }
    }

    /// Nothing was put aside.
    pub(super) async fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        let state = self.state(&arrive.group.key).await?;
        Ok(match state.arrives_by(arrive.epoch) {
            true => Arrival::Incomplete,
            false => Arrival::Refused,
        })
    }

    /// There are none.
    pub(super) async fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        let slots: Vec<Slot> = drop.groups.iter().map(|(key, _)| key.slot()).collect();
        let refused = self.others(&slots, |state| state.leaves_by(drop.epoch));
        Ok(Dropped {
            refused: refused.await?,
            differ: Vec::new(),
        })
    }

    /// The `slots` with a state for which `is_such` does not hold.
    async fn others(
        &mut self,
        slots: &[Slot],
        is_such: impl Fn(SlotState) -> bool + Send + Sync,
    ) -> Result<Vec<Slot>, ShardError> {
        let rule = |whole: &mut Whole, _| {
            whole.head.armed()?;
            let is_such = |slot: &&Slot| is_such(whole.slots.get(**slot));
            Ok(slots
                .iter()
                .filter(|slot| !is_such(slot))
                .copied()
                .collect())
        };
        self.change(Needs::States(slots), rule).await
    }

    async fn state(&mut self, key: &LockKey) -> Result<SlotState, ShardError> {
        let slots = [key.slot()];
        let rule = |whole: &mut Whole, _| {
            whole.head.armed()?;
            Ok(whole.slots.get(key.slot()))
        };
        self.change(Needs::States(&slots), rule).await
    }
}
