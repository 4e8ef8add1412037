//! The resize under way, according to the record.

use std::{collections::BTreeMap, fmt};

use ringfence_client::{Topology, TopologyError};
use ringfence_coordinator::topology::{Goal, Weights};
use serde::Serialize;

use crate::table::{Table, grouped};

/// A resize under way.
#[derive(Debug, Serialize)]
pub(super) struct Resize {
    /// Weights of the members before: an abort returns to these.
    before: BTreeMap<String, u32>,
    /// Weights of the members after.
    after: BTreeMap<String, u32>,
    /// Slots that have not arrived yet, including migrating ones.
    slots_to_move: u32,
    slots_migrating: u32,
    migrations: Vec<Migration>,
    #[serde(skip)]
    goal: Goal,
}

/// Migrating slots.
#[derive(Debug, Serialize)]
struct Migration {
    from: String,
    to: String,
    slots: u32,
    /// The next shard has the list of keys held at the former one.
    listed: bool,
}

impl Resize {
    /// The resize of `topology`, if there is one.
    pub(super) fn of(topology: &Topology) -> Result<Option<Self>, TopologyError> {
        let Some(goal) = topology.goal.clone() else {
            return Ok(None);
        };
        let migrations = topology.migrations.iter().map(|migration| Migration {
            from: migration.from.0.to_string(),
            to: migration.to.0.to_string(),
            slots: migration.slots.len() as u32,
            listed: migration.listed,
        });
        let migrations: Vec<_> = migrations.collect();
        Ok(Some(Self {
            before: named(&goal.before),
            after: named(&goal.after),
            slots_to_move: topology.preview()?.slots_to_move(),
            slots_migrating: migrations.iter().map(|migration| migration.slots).sum(),
            migrations,
            goal,
        }))
    }
}

fn named(weights: &Weights) -> BTreeMap<String, u32> {
    let weights = weights.iter();
    weights
        .map(|(name, &weight)| (name.0.to_string(), weight))
        .collect()
}

impl fmt::Display for Resize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "resize under way: {}", self.goal)?;
        let (to_move, migrating) = (self.slots_to_move.into(), self.slots_migrating.into());
        let (to_move, migrating) = (grouped(to_move), grouped(migrating));
        writeln!(
            out,
            "{to_move} slots to move, {migrating} of them migrating"
        )?;
        if self.migrations.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&["from", "to", "slots", "state"]);
        for Migration {
            from,
            to,
            slots,
            listed,
        } in &self.migrations
        {
            let state = if *listed { "listed" } else { "not listed yet" };
            table.row([
                from.clone(),
                to.clone(),
                grouped((*slots).into()),
                state.into(),
            ]);
        }
        write!(out, "\n{table}")
    }
}
