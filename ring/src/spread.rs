//! Slots with replicas: the ranks of a slot lie at distinct shards, in distinct zones.
//!
//! Rank 0 has the quotas of a ring without replicas, because keys without replicas live there. The
//! other ranks together have the rest of each shard's quota of all ranks. A slot goes to the shard
//! that it prefers among those below their quota that have no other rank of it. If a shard stays
//! above its quota because the shards below it have other ranks of all its slots, slots move
//! in a chain: from the first to a third shard, and from there to one below its quota.

use std::collections::VecDeque;
use std::iter::successors;

use crate::quota::{quotas, quotas_of_all_ranks};
use crate::rendezvous::Rendezvous;
use crate::{Membership, ShardId, Slot, Table};

/// The owners of all ranks, if no table is stored yet.
pub(crate) fn bootstrap(members: &Membership, first: Vec<u16>) -> Vec<u16> {
    let mut owners: Vec<_> = first.into_iter().map(owned).collect();
    owners.resize(members.all_slots().len(), None);
    fill(members, owners)
}

/// The owners of all ranks, if `before` has fewer replicas. No slot of `before` moves.
pub(crate) fn extended(before: &Table, members: &Membership) -> Vec<u16> {
    let mut owners: Vec<_> = before.owners().iter().copied().map(owned).collect();
    owners.resize(members.all_slots().len(), None);
    fill(members, owners)
}

fn owned(owner: u16) -> Option<usize> {
    Some(owner.into())
}

fn fill(members: &Membership, owners: Vec<Option<usize>>) -> Vec<u16> {
    let fixed = owners.iter().map(Option::is_some).collect();
    let mut spread = Spread::new(members, owners, fixed);
    spread.replicas();
    spread.owners()
}

/// The owners after few moves to `target`'s quotas, and the slots that move. Carried out in this
/// order, no move brings a slot to a zone that has another rank of it.
pub(crate) fn rebalanced(before: &Table, target: &Membership) -> (Vec<u16>, Vec<Slot>) {
    let index: Vec<_> = before
        .shards()
        .iter()
        .map(|id| target.index_of(id))
        .collect();
    let owners = before.owners().iter().map(|&owner| usize::from(owner));
    let fates = fates_before(before.membership(), target);
    let at = owners.clone().map(|owner| Some(fates[owner])).collect();
    let owners: Vec<_> = owners.map(|owner| index[owner]).collect();
    let fixed = vec![false; owners.len()];
    let mut spread = Spread::new(target, owners, fixed);
    spread.at = at;
    spread.moves_once = true;
    spread.first_rank();
    spread.replicas();
    (spread.owners(), spread.given)
}

/// The zone of each shard of `before`, as [`Membership::fates`] numbers those of `target`. Other zones
/// have numbers above these.
fn fates_before(before: &Membership, target: &Membership) -> Vec<usize> {
    let (fates, others) = (target.fates(), target.fate_count());
    let fate = |(nth, id): (usize, &ShardId)| {
        let zone = before.zone(id);
        let alike = |other: &ShardId| other == id || (zone.is_some() && target.zone(other) == zone);
        let same = target.shards().iter().position(alike);
        same.map_or(others + nth, |same| fates[same])
    };
    before.shards().iter().enumerate().map(fate).collect()
}

/// The owner of each slot while slots change hands. Shards are indices into the members.
struct Spread<'a> {
    members: &'a Membership,
    rendezvous: Rendezvous,
    /// The zone of each shard.
    fates: Vec<usize>,
    /// The owner of each slot; none while the slot is new, or still belongs to a shard that leaves.
    owners: Vec<Option<usize>>,
    /// The zone where each slot is; none while it is new.
    at: Vec<Option<usize>>,
    /// Slots that stay where they are.
    fixed: Vec<bool>,
    /// A slot that was given stays where it is.
    moves_once: bool,
    /// The slots given, in order.
    given: Vec<Slot>,
    /// Slots of each shard now, of the ranks in hand.
    held: Vec<u32>,
    /// The same in the end.
    quotas: Vec<u32>,
}

impl<'a> Spread<'a> {
    fn new(members: &'a Membership, owners: Vec<Option<usize>>, fixed: Vec<bool>) -> Self {
        let fates = members.fates();
        let at = owners.iter().map(|owner| owner.map(|owner| fates[owner]));
        Self {
            members,
            rendezvous: Rendezvous::new(members),
            at: at.collect(),
            fates,
            owners,
            fixed,
            moves_once: false,
            given: Vec::new(),
            held: Vec::new(),
            quotas: Vec::new(),
        }
    }

    fn owners(&self) -> Vec<u16> {
        let owner = |owner: &Option<usize>| owner.expect("every slot was given") as u16;
        self.owners.iter().map(owner).collect()
    }

    fn first_rank(&mut self) {
        let slots: Vec<_> = self.members.slots().iter().collect();
        self.held = self.held(&slots);
        self.quotas = quotas(self.members, &self.held);
        self.settle(&slots);
    }

    fn replicas(&mut self) {
        let all: Vec<_> = self.members.all_slots().collect();
        let (first, others) = all.split_at(self.members.slots().get() as usize);
        let of_first = self.held(first);
        self.quotas = quotas_of_all_ranks(self.members, &of_first, &self.held(&all));
        for (quota, of_first) in self.quotas.iter_mut().zip(of_first) {
            *quota -= of_first;
        }
        self.held = self.held(others);
        self.settle(others);
    }

    /// How many of `slots` each shard has.
    fn held(&self, slots: &[Slot]) -> Vec<u32> {
        let mut held = vec![0; self.members.shards().len()];
        let owners = slots.iter().filter_map(|slot| self.owners[slot.index()]);
        owners.for_each(|owner| held[owner] += 1);
        held
    }

    /// Brings `slots`, all those of the ranks in hand, to the quotas.
    fn settle(&mut self, slots: &[Slot]) {
        let offered = slots.iter().filter(|&&slot| self.may_leave(slot));
        let mut offers: Vec<_> = offered
            .map(|&slot| (self.taker(slot), slot))
            .map(|(taker, slot)| (taker.is_none(), taker, slot))
            .collect();
        offers.sort_unstable();
        for (.., slot) in offers {
            // Asked again: since it was offered, its owner or its taker may have reached the quota.
            if self.may_leave(slot)
                && let Some((_, taker)) = self.taker(slot)
            {
                self.give(slot, taker);
            }
        }
        for &slot in slots {
            if self.owners[slot.index()].is_none() {
                let shards = (0..self.held.len()).filter(|&shard| self.may_have(shard, slot));
                let (_, taker) = self
                    .rendezvous
                    .first(slot, shards)
                    .expect("zones are at least as many as replicas");
                self.give(slot, taker);
            }
        }
        while self.shift(slots) {}
    }

    /// The shard below its quota that `slot` prefers, among those that may have it, by its cost.
    fn taker(&self, slot: Slot) -> Option<(u64, usize)> {
        let takers = (0..self.held.len()).filter(|&shard| self.lacks(shard));
        let may_have = takers.filter(|&shard| self.may_have(shard, slot));
        self.rendezvous.first(slot, may_have)
    }

    /// Whether no other rank of `slot` is in the zone of `shard`.
    fn may_have(&self, shard: usize, slot: Slot) -> bool {
        let ranks = (self.members.slots()).replicas(slot, self.members.replicas());
        let mut others = ranks.filter(|&rank| rank != slot);
        others.all(|rank| self.at[rank.index()] != Some(self.fates[shard]))
    }

    fn may_leave(&self, slot: Slot) -> bool {
        let owner = self.owners[slot.index()];
        !self.fixed[slot.index()] && owner.is_none_or(|owner| self.held[owner] > self.quotas[owner])
    }

    fn lacks(&self, shard: usize) -> bool {
        self.held[shard] < self.quotas[shard]
    }

    fn give(&mut self, slot: Slot, taker: usize) {
        if let Some(giver) = self.owners[slot.index()].replace(taker) {
            self.held[giver] -= 1;
        }
        self.held[taker] += 1;
        self.at[slot.index()] = Some(self.fates[taker]);
        self.fixed[slot.index()] = self.moves_once;
        self.given.push(slot);
    }

    /// Moves slots along the shortest chain from a shard above its quota to one below, the last
    /// first. Returns whether there is one.
    fn shift(&mut self, slots: &[Slot]) -> bool {
        let Some((last, chain)) = self.chain(slots) else {
            return false;
        };
        let mut taker = last;
        for (giver, slot) in chain {
            if !self.may_have(taker, slot) {
                // Another slot of the chain is a rank of the same: what has moved may stay.
                self.fixed[slot.index()] = true;
                break;
            }
            self.give(slot, taker);
            taker = giver;
        }
        true
    }

    /// A shard below its quota, and the givers and slots of the shortest chain to it, backwards.
    fn chain(&self, slots: &[Slot]) -> Option<(usize, Vec<(usize, Slot)>)> {
        let count = self.held.len();
        if !(0..count).any(|shard| self.lacks(shard)) {
            return None;
        }
        let mut slots_of = vec![Vec::new(); count];
        for &slot in slots.iter().filter(|slot| !self.fixed[slot.index()]) {
            if let Some(owner) = self.owners[slot.index()] {
                slots_of[owner].push(slot);
            }
        }
        let mut by: Vec<Option<(usize, Slot)>> = vec![None; count];
        let mut reached: Vec<_> = (0..count)
            .map(|shard| self.held[shard] > self.quotas[shard])
            .collect();
        let mut queue: VecDeque<_> = (0..count).filter(|&shard| reached[shard]).collect();
        while let Some(giver) = queue.pop_front() {
            for &slot in &slots_of[giver] {
                for taker in 0..count {
                    if reached[taker] || !self.may_have(taker, slot) {
                        continue;
                    }
                    reached[taker] = true;
                    by[taker] = Some((giver, slot));
                    if self.lacks(taker) {
                        let from = |&(giver, _): &(usize, Slot)| by[giver];
                        return Some((taker, successors(by[taker], from).collect()));
                    }
                    queue.push_back(taker);
                }
            }
        }
        None
    }
}
