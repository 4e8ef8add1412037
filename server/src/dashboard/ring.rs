//! The ring and its shards, as this coordinator sees them.

use std::collections::BTreeMap;

use ringfence_client::{
    Client, EngineMetrics, ShardId, ShardStatus, Topology,
    metrics::{Outcome, ShardMetrics, ShardReading},
};
use ringfence_coordinator::topology::{FailedShard, MemberState};
use ringfence_ring::Zone;
use serde::Serialize;

/// A topology, and the states of its shards.
#[derive(Serialize)]
pub(super) struct Ring {
    id: String,
    version: u64,
    home: String,
    max_lease_ms: u64,
    slots: usize,
    shards: Vec<Shard>,
    failed: Vec<Failed>,
    /// None is under way.
    resize: Option<Resize>,
}

/// A resize under way.
#[derive(Serialize)]
struct Resize {
    /// Its aim, in words.
    aim: String,
    slots_in_all: u32,
    slots_to_move: u32,
    slots_migrating: usize,
}

#[derive(Serialize)]
struct Shard {
    id: String,
    address: String,
    zone: Option<String>,
    membership: MemberState,
    weight: u32,
    slots: u32,
    /// Its slots that are migrating to another shard.
    migrating: usize,
    /// The part of the slots that it has: 0 to 1.
    share: f64,
    /// The part that its weight is of all weights.
    fair_share: f64,
    epoch: u64,
    state: State,
    /// Acquisitions through this coordinator that have an outcome.
    acquisitions: u64,
    /// Acquisitions through this coordinator that have none yet.
    waiting: u64,
}

/// The state of a shard.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum State {
    /// It has not been asked yet.
    Unknown,
    Ready,
    /// It grants no new locks for this time.
    Recovering {
        left_ms: u64,
    },
    /// It gives no answer, or cannot be used.
    Down {
        error: String,
    },
}

/// A shard that was declared dead.
#[derive(Serialize)]
struct Failed {
    id: String,
    address: String,
    /// Of its slots, those that the shards which have them now have yet to open.
    slots_to_open: usize,
}

impl Ring {
    /// The ring now. Sends no request: `looks` has the last answers of the shards.
    pub(super) fn of(
        client: &Client,
        metrics: &EngineMetrics,
        looks: &BTreeMap<ShardId, ShardStatus>,
    ) -> Self {
        let topology = client.topology();
        let readings = metrics.read().map(|reading| reading.shards);
        let readings = readings.unwrap_or_default();
        let (owners, quotas) = (topology.table.shards(), topology.table.quotas());
        let shards = topology.shards.keys().map(|name| {
            let id = &name.0;
            let quota = owners.binary_search(id).map(|index| quotas[index]);
            let reading = readings.iter().find(|reading| reading.id == *id);
            let state = State::of(looks.get(id));
            Shard::of(&topology, id, quota.unwrap_or_default(), state, reading)
        });
        let failed = topology.failed.iter();
        Self {
            id: topology.id.clone(),
            version: topology.version,
            home: topology.home.address.clone(),
            max_lease_ms: topology.constants.max_lease_ms,
            slots: topology.table.all_slots().len(),
            shards: shards.collect(),
            failed: failed.map(|failed| Failed::of(&topology, failed)).collect(),
            resize: Resize::of(&topology),
        }
    }
}

impl Resize {
    fn of(topology: &Topology) -> Option<Self> {
        let goal = topology.goal.as_ref()?;
        let preview = topology.preview().ok()?;
        let migrating = topology.migrations.iter();
        Some(Self {
            aim: goal.to_string(),
            slots_in_all: preview.slots_in_all,
            slots_to_move: preview.slots_to_move(),
            slots_migrating: migrating.map(|migration| migration.slots.len()).sum(),
        })
    }
}

impl Shard {
    fn of(
        topology: &Topology,
        id: &ShardId,
        slots: u32,
        state: State,
        reading: Option<&ShardReading>,
    ) -> Self {
        let migrations = topology.migrations.iter();
        let leaving = migrations.filter(|migration| migration.from.0 == *id);
        let entry = topology.shard(id);
        let counted = reading.map(|reading| &*reading.metrics);
        let acquired = |metrics: &ShardMetrics| {
            let outcomes = Outcome::ALL.into_iter();
            let counts = outcomes.map(|outcome| metrics.acquisitions(outcome).count());
            counts.sum()
        };
        Self {
            id: id.to_string(),
            address: entry.map(|entry| entry.address.clone()).unwrap_or_default(),
            zone: topology.table.membership().zone(id).map(Zone::to_string),
            membership: topology.member_state(id),
            weight: topology.weight(id),
            slots,
            migrating: leaving.map(|migration| migration.slots.len()).sum(),
            share: f64::from(slots) / topology.table.all_slots().len() as f64,
            fair_share: topology.fair_share(id),
            epoch: entry.map(|entry| entry.epoch.0).unwrap_or_default(),
            state,
            acquisitions: counted.map(acquired).unwrap_or_default(),
            waiting: counted.map(ShardMetrics::waiting).unwrap_or_default(),
        }
    }
}

impl State {
    fn of(look: Option<&ShardStatus>) -> Self {
        match look {
            None => Self::Unknown,
            Some(ShardStatus {
                error: Some(error), ..
            }) => Self::Down {
                error: error.to_string(),
            },
            Some(status) if !status.grace_left.is_zero() => Self::Recovering {
                left_ms: u64::try_from(status.grace_left.as_millis()).unwrap_or(u64::MAX),
            },
            Some(_) => Self::Ready,
        }
    }
}

impl Failed {
    fn of(topology: &Topology, failed: &FailedShard) -> Self {
        let openings = topology.openings.iter();
        let its = openings.filter(|opening| opening.epoch == failed.epoch);
        Self {
            id: failed.shard.0.to_string(),
            address: failed.address.clone(),
            slots_to_open: its.map(|opening| opening.slots.len()).sum(),
        }
    }
}
