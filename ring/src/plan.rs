use crate::quota::quotas;
use crate::rendezvous::Rendezvous;
use crate::{Membership, Replicas, RingError, ShardId, Slot, Table, spread};

/// A slot that changes its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The slot that moves.
    pub slot: Slot,
    /// The owner before.
    pub from: ShardId,
    /// The owner after.
    pub to: ShardId,
}

/// The moves that turn one table into a table for other shards or weights.
///
/// Depends on the table and the target alone. From a table with one replica
/// of each slot:
///
/// * the moves are as few as its quotas allow, that is [`optimum`](Self::optimum), and no other
///   quotas by the same method need fewer;
/// * none is between two shards that both keep their weight, if the table came from a bootstrap or
///   from a plan carried out in full.
///
/// With more replicas the moves are near the optimum. Carried out in their order, they leave the ranks of
/// a slot at distinct shards, in distinct zones, after each move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    moves: Vec<Move>,
    table: Table,
    optimum: usize,
}

impl Plan {
    /// The moves, in the order in which to carry them out. With one replica of each slot any order
    /// will do; this is the order of slots.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The table after all moves.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The fewest moves that leave each shard with as many slots of rank 0, and of the other ranks,
    /// as [`table`](Self::table) gives it: the surplus of each shard now, summed over the shards.
    pub fn optimum(&self) -> usize {
        self.optimum
    }

    /// `order` has the slots that move, and may have others.
    fn between(before: &Table, after: Table, order: impl IntoIterator<Item = Slot>) -> Self {
        let moved = order
            .into_iter()
            .filter(|&slot| before.owner(slot) != after.owner(slot));
        let moves = moved
            .map(|slot| Move {
                slot,
                from: before.owner(slot).clone(),
                to: after.owner(slot).clone(),
            })
            .collect();
        let optimum = [true, false].map(|first| {
            surplus(before, &after, |slot| {
                (before.slots().rank(slot) == 0) == first
            })
        });
        Self {
            moves,
            table: after,
            optimum: optimum.iter().sum(),
        }
    }
}

/// How many of the slots in `which` each shard has to give, summed over the shards.
fn surplus(before: &Table, after: &Table, which: impl Fn(Slot) -> bool) -> usize {
    let count = |table: &Table| {
        let mut held = vec![0_usize; table.shards().len()];
        let slots = table.membership().all_slots().filter(|&slot| which(slot));
        slots.for_each(|slot| held[table.owner_index(slot)] += 1);
        held
    };
    let has = count(after);
    let kept = |id| {
        let index = after.membership().index_of(id);
        index.map_or(0, |index| has[index])
    };
    let shards = before.shards().iter().zip(count(before));
    shards.map(|(id, had)| had.saturating_sub(kept(id))).sum()
}

impl Table {
    /// The plan from this table to one for `target`.
    ///
    /// # Errors
    ///
    /// * [`RingError::SlotsChanged`], [`RingError::ReplicasChanged`]: these numbers are fixed.
    pub fn plan(&self, target: &Membership) -> Result<Plan, RingError> {
        self.check_slots(target)?;
        let (owners, order) = match target.replicas() {
            Replicas::One => (rebalanced(self, target), None),
            _ => {
                let (owners, order) = spread::rebalanced(self, target);
                (owners, Some(order))
            }
        };
        let order = order.unwrap_or_else(|| target.all_slots().collect());
        let after = Table::new(target.clone(), owners);
        Ok(Plan::between(self, after, order))
    }
}

/// The owner of each slot after the fewest moves to `target`'s quotas. Each shard takes the slots
/// that prefer it most.
fn rebalanced(before: &Table, target: &Membership) -> Vec<u16> {
    let rendezvous = Rendezvous::new(target);
    let mut ledger = Ledger::new(before, target);
    let offered = before.slots().iter().filter(|&slot| ledger.may_leave(slot));
    let mut offers: Vec<_> = offered
        .map(|slot| (rendezvous.first(slot, ledger.takers()), slot))
        .collect();
    offers.sort_unstable();
    for (_, slot) in offers {
        // Asked again: since it was offered, its owner or its taker may have reached the quota.
        if ledger.may_leave(slot) {
            let (_, taker) = rendezvous
                .first(slot, ledger.takers())
                .expect("surplus equals room");
            ledger.give(slot, taker);
        }
    }
    let owner =
        |owner: Option<usize>| owner.expect("every slot of a shard that left is given") as u16;
    ledger.owners.into_iter().map(owner).collect()
}

/// The owner of each slot while slots change hands. Shards are indices into the target's.
struct Ledger {
    /// The owner of each slot; none while the slot still belongs to a shard that leaves.
    owners: Vec<Option<usize>>,
    /// Slots of each shard now.
    held: Vec<u32>,
    /// Slots of each shard in the end.
    quotas: Vec<u32>,
}

impl Ledger {
    fn new(before: &Table, target: &Membership) -> Self {
        let index: Vec<_> = before
            .shards()
            .iter()
            .map(|id| target.index_of(id))
            .collect();
        let owners: Vec<_> = before
            .owners()
            .iter()
            .map(|&owner| index[usize::from(owner)])
            .collect();
        let mut held = vec![0; target.shards().len()];
        owners.iter().flatten().for_each(|&owner| held[owner] += 1);
        let quotas = quotas(target, &held);
        Self {
            owners,
            held,
            quotas,
        }
    }

    /// Whether the owner of `slot` leaves, or has more than its quota.
    fn may_leave(&self, slot: Slot) -> bool {
        self.owners[slot.index()].is_none_or(|owner| self.held[owner] > self.quotas[owner])
    }

    /// The shards below their quota.
    fn takers(&self) -> impl Iterator<Item = usize> {
        (0..self.held.len()).filter(|&shard| self.held[shard] < self.quotas[shard])
    }

    fn give(&mut self, slot: Slot, taker: usize) {
        if let Some(giver) = self.owners[slot.index()].replace(taker) {
            self.held[giver] -= 1;
        }
        self.held[taker] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SlotCount, Weight};

    #[test]
    fn a_new_shard_takes_from_each_the_slots_that_prefer_it_most() {
        let members = |ids: &[&str]| {
            let members = ids
                .iter()
                .map(|id| (ShardId::new(id).unwrap(), Weight::ONE));
            Membership::new(SlotCount::new(1024).unwrap(), members).unwrap()
        };
        let before = Table::bootstrap(&members(&["a", "b", "c"]));
        let after = before.plan(&members(&["a", "b", "c", "d"])).unwrap().table;
        let rendezvous = Rendezvous::new(after.membership());
        let d = after.shards().len() - 1;
        for giver in before.shards() {
            let (taken, kept): (Vec<Slot>, Vec<Slot>) = before
                .slots_of(giver)
                .partition(|&slot| after.owner_index(slot) == d);
            let most = taken.into_iter().map(|slot| rendezvous.cost(slot, d)).max();
            let least = kept.into_iter().map(|slot| rendezvous.cost(slot, d)).min();
            assert!(most < least, "{giver}");
        }
    }
}
