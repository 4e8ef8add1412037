//! Plans: few moves, none without need, the same everywhere.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ringfence_ring::{Membership, Table};

use super::oracle::{error, sharings};
use super::{Shards, alike, id, membership, shards, table};

/// The table after a plan to each in turn.
fn follow(table: Table, steps: &[Shards]) -> Table {
    steps.iter().fold(table, |table, step| {
        let target = membership(table.slots().get(), step);
        table.plan(&target).unwrap().table().clone()
    })
}

/// The table after a bootstrap for the first of `steps` and a plan to each of the others.
fn history(steps: &[Shards], slots: u32) -> Table {
    follow(table(&membership(slots, &steps[0])), &steps[1..])
}

/// The shards of both, at `after`'s weights where it has them.
fn both(before: &Membership, after: &Membership) -> Membership {
    let of = |membership: &Membership| {
        let ids = membership.shards().iter().cloned();
        ids.zip(membership.weights().to_vec()).collect::<Vec<_>>()
    };
    let mut members: BTreeMap<_, _> = of(before).into_iter().collect();
    members.extend(of(after));
    Membership::new(before.slots(), members).unwrap()
}

fn weights(membership: &Membership) -> Vec<u32> {
    membership
        .weights()
        .iter()
        .map(|weight| weight.get())
        .collect()
}

/// Moves from `before` to `quotas`: what each shard of the target lacks.
fn lacking(before: &Table, target: &Membership, quotas: &[u32]) -> u32 {
    let lacks = |(id, quota): (_, &u32)| quota.saturating_sub(before.quota(id));
    target.shards().iter().zip(quotas).map(lacks).sum()
}

proptest! {
    #[test]
    fn a_plan_leads_from_one_table_to_the_other(
        steps in prop::collection::vec(shards(12), 1..4),
        target in shards(12),
    ) {
        let first = table(&membership(64, &steps[0]));
        let before = follow(first, &steps[1..]);
        let target = membership(64, &target);
        let plan = before.plan(&target).unwrap();
        let mut owners: Vec<_> = before.slots().iter().map(|slot| before.owner(slot)).collect();
        for step in plan.moves() {
            prop_assert_ne!(&step.from, &step.to);
            prop_assert_eq!(owners[step.slot.index()], &step.from);
            owners[step.slot.index()] = &step.to;
        }
        let after = plan.table();
        let expected: Vec<_> = after.slots().iter().map(|slot| after.owner(slot)).collect();
        prop_assert_eq!(owners, expected);
        prop_assert_eq!(after.membership(), &target);
        prop_assert!(plan.moves().len() >= plan.optimum());
    }

    /// Against every way to share 16 slots: the quotas are the nearest to the weights, and of the
    /// equally near ones those that need the fewest moves; and there are no more moves than that.
    #[test]
    fn moves_are_the_optimum_to_a_slot(
        steps in prop::collection::vec(shards(4), 1..6),
        target in shards(4),
    ) {
        let (before, target) = (history(&steps, 16), membership(16, &target));
        let weights = weights(&target);
        let best = sharings(16, weights.len())
            .map(|quotas| (error(&quotas, &weights), lacking(&before, &target, &quotas)))
            .min()
            .unwrap();
        let plan = before.plan(&target).unwrap();
        let moves = plan.moves().len() as u32;
        prop_assert_eq!((error(&plan.table().quotas(), &weights), moves), best);
        prop_assert_eq!(plan.optimum(), plan.moves().len());
    }

    /// With equal weights the optimum is that of all shares rounded up or down: only what no
    /// shard may keep has to move.
    #[test]
    fn with_equal_weights_no_slot_moves_that_could_stay(
        log2 in 5..=9_u32, from in 1..=20_usize, to in 1..=20_usize, then in 1..=20_usize,
    ) {
        let slots = 1 << log2;
        let before = table(&alike(slots, from)).plan(&alike(slots, to)).unwrap().table().clone();
        let (share, mut spare) = (slots / then as u32, slots as usize % then);
        let target = alike(slots, then);
        let kept: u32 = target.shards().iter().map(|id| {
            let held = before.quota(id);
            let above = held > share && spare > 0;
            spare -= usize::from(above);
            held.min(share) + u32::from(above)
        }).sum();
        let plan = before.plan(&target).unwrap();
        prop_assert_eq!(plan.moves().len() as u32, slots - kept);
    }

    #[test]
    fn nothing_moves_between_shards_that_stay_at_their_weight(
        steps in prop::collection::vec(shards(12), 1..6),
        change in prop::collection::btree_map("[a-z]", 0..=9_u32, 1..4),
    ) {
        let before = history(&steps, 64);
        let mut shards = steps.last().unwrap().clone();
        for (id, &weight) in &change {
            match weight {
                0 if shards.len() > 1 => shards.remove(id),
                _ => shards.insert(id.clone(), weight.max(1)),
            };
        }
        let target = membership(64, &shards);
        let stays = |id| before.membership().weight(id) == target.weight(id);
        for step in before.plan(&target).unwrap().moves() {
            prop_assert!(!(stays(&step.from) && stays(&step.to)), "{step:?}");
        }
    }

    /// A process that resumes a partly executed plan needs no list of the moves done:
    /// another plan to the same target moves the remaining slots, and none twice.
    #[test]
    fn a_plan_made_again_half_way_moves_what_is_left_of_the_first(
        steps in prop::collection::vec(shards(8), 1..5),
        target in shards(8),
        parts in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let before = history(&steps, 64);
        let target = membership(64, &target);
        let optimum = before.plan(&target).unwrap().optimum();
        let mut table = before.among(&both(before.membership(), &target)).unwrap();
        let mut moved = 0;
        for part in parts {
            let plan = table.plan(&target).unwrap();
            prop_assert_eq!(moved + plan.moves().len(), optimum);
            let now = part.index(plan.moves().len() + 1);
            for step in plan.moves().iter().rev().take(now) {
                table.give(step.slot, &step.to).unwrap();
            }
            moved += now;
        }
        let plan = table.plan(&target).unwrap();
        prop_assert_eq!(moved + plan.moves().len(), optimum);
        for step in plan.moves() {
            table.give(step.slot, &step.to).unwrap();
        }
        prop_assert_eq!(table.among(&target).unwrap(), plan.table().clone());
    }

    #[test]
    fn among_other_members_every_slot_stays_where_it_is(
        steps in prop::collection::vec(shards(8), 1..4),
        others in shards(8),
    ) {
        let before = table(&membership(64, &steps[0]));
        let members = both(before.membership(), &membership(64, &others));
        let after = before.among(&members).unwrap();
        prop_assert_eq!(after.membership(), &members);
        prop_assert!(before.slots().iter().all(|slot| before.owner(slot) == after.owner(slot)));
        prop_assert_eq!(&Table::decode(&after.encode()).unwrap(), &after);
        let owns = |id| before.quota(id) > 0;
        let alone = membership(64, &others);
        let left = before.shards().iter().any(|id| owns(id) && alone.index_of(id).is_none());
        prop_assert_eq!(before.among(&alone).is_err(), left);
    }

    #[test]
    fn the_same_shards_again_move_nothing(steps in prop::collection::vec(shards(12), 1..6)) {
        let before = history(&steps, 64);
        let plan = before.plan(before.membership()).unwrap();
        prop_assert!(plan.moves().is_empty());
        prop_assert_eq!(plan.table(), &before);
    }
}

#[test]
fn a_new_shard_takes_its_share_and_nothing_else_moves() {
    let plan = table(&alike(16_384, 10)).plan(&alike(16_384, 11)).unwrap();
    assert_eq!(plan.moves().len(), 16_384 / 11);
    assert!(plan.moves().iter().all(|step| step.to == id("s10")));
}

#[test]
fn a_shard_that_leaves_gives_up_its_slots_and_nothing_else_moves() {
    let before = table(&alike(16_384, 11));
    let plan = before.plan(&alike(16_384, 10)).unwrap();
    assert_eq!(plan.moves().len() as u32, before.quota(&id("s10")));
    assert!(plan.moves().iter().all(|step| step.from == id("s10")));
}

#[test]
fn an_exchange_of_shards_moves_slots_straight_from_one_to_the_other() {
    let plan = table(&membership(
        64,
        &Shards::from([("a".into(), 1), ("b".into(), 1)]),
    ))
    .plan(&membership(
        64,
        &Shards::from([("a".into(), 1), ("c".into(), 1)]),
    ))
    .unwrap();
    assert_eq!(plan.moves().len(), 32);
    assert!(
        plan.moves()
            .iter()
            .all(|step| step.from == id("b") && step.to == id("c"))
    );
}

/// Largest remainders share 16 slots as 2, 7, 7 and then as 1, 8, 7: `a` would give a slot to `b`
/// because `c` is lighter.
#[test]
fn the_population_paradox_moves_nothing() {
    let shards = |c| Shards::from([("a".into(), 2), ("b".into(), 11), ("c".into(), c)]);
    let before = table(&membership(16, &shards(11)));
    let plan = before.plan(&membership(16, &shards(9))).unwrap();
    assert_eq!(plan.moves(), []);
}
