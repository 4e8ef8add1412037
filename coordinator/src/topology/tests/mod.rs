//! The record of a resize, step by step, without shards.

mod begun;
mod decommissioned;
mod replicas;
mod turns;

use std::time::Duration;

use ringfence_ring::{ShardId, Slot, SlotCount, Weight};

use super::{
    Blueprint, Change, Constants, Founder, Home, Namespaces, ShardName, Topology, found::shard_id,
};
use crate::ids::{ClientId, Epoch, Life};

/// Nothing here depends on the time.
const UNIX: Duration = Duration::from_secs(1_735_689_600 + 100);

fn founder(index: usize, weight: u32) -> Founder {
    Founder {
        id: shard_id(index),
        address: format!("memory:{index}"),
        life: Life::new(format!("life-{index}")),
        weight: Weight::new(weight).unwrap(),
        zone: None,
    }
}

/// A topology of `slots` slots without shards.
fn blueprint(slots: u32) -> Blueprint {
    Blueprint {
        id: 7,
        engine: ClientId(1),
        unix: UNIX,
        after: Epoch::default(),
        constants: Constants::default(),
        slots: SlotCount::new(slots).unwrap(),
        namespaces: Namespaces::default(),
        home: Home {
            address: "memory:0".into(),
            life: Life::new("life-0"),
        },
        founders: Vec::new(),
    }
}

/// A topology of `slots` slots with shards of `weights`.
fn topology(slots: u32, weights: &[u32]) -> Topology {
    let founders = weights.iter().enumerate();
    let founders = founders.map(|(index, &weight)| founder(index, weight));
    Topology::found(Blueprint {
        founders: founders.collect(),
        ..blueprint(slots)
    })
    .unwrap()
}

fn adding(index: usize, weight: u32) -> Change {
    Change {
        add: vec![founder(index, weight)],
        ..Change::default()
    }
}

fn removing(index: usize) -> Change {
    Change {
        remove: vec![shard_id(index)],
        ..Change::default()
    }
}

fn weighing(index: usize, weight: u32) -> Change {
    Change {
        weigh: [(shard_id(index), Weight::new(weight).unwrap())].into(),
        ..Change::default()
    }
}

/// The owner of `slot`, or the former one if it is migrating.
fn owner(topology: &Topology, slot: Slot) -> &ShardId {
    topology.table.owner(slot)
}

fn name(index: usize) -> ShardName {
    ShardName(shard_id(index))
}
