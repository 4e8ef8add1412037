//! `ringfence ring plan`: the effects of a resize.

use std::fmt;

use clap::Args;
use ringfence_client::{ShardId, Topology, TopologyError};
use ringfence_coordinator::topology::{
    Preview, ShardName, TopologyStore as _, server::ServerTopology,
};
use serde::Serialize;

use super::{
    RingError,
    change::{Newcomers, RequestedChange, Weighed},
    existing_only, join,
};
use crate::{
    seeds::Seeds,
    table::{Table, grouped, percent},
};

#[derive(Args, Debug)]
#[group(id = "change", required = true, multiple = true, args = ["add", "remove", "weigh"])]
pub(crate) struct Plan {
    /// Servers to add as shards, each with its weight [default weight: 1]
    #[arg(long, value_name = "URL[=WEIGHT]")]
    add: Vec<Newcomers>,
    /// Shards to remove
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    remove: Vec<ShardId>,
    /// Shards and their new weights, 1 to 10000: a shard of weight 2 gets twice the slots of one of
    /// weight 1
    #[arg(long, value_name = "ID=WEIGHT", value_delimiter = ',')]
    weigh: Vec<Weighed>,
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// A resize that is not begun.
#[derive(Debug, Serialize)]
pub(super) struct Planned {
    topology: String,
    version: u64,
    /// The number of slots.
    slots: u32,
    shards: Vec<Shard>,
    moves: Vec<Move>,
    slots_to_move: u32,
    /// The least number of moves to the new shares.
    optimum: u32,
}

#[derive(Debug, Serialize)]
struct Shard {
    id: String,
    address: String,
    /// The shard joins.
    weight_before: Option<u32>,
    /// The shard leaves.
    weight_after: Option<u32>,
    slots_before: u32,
    slots_after: u32,
    /// Share before, of 1.
    share_before: f64,
    /// Share after, of 1.
    share_after: f64,
}

#[derive(Debug, Serialize)]
struct Move {
    from: String,
    to: String,
    slots: u32,
}

impl Plan {
    /// Computes the plan. Changes nothing.
    pub(super) async fn run(&self) -> Result<Planned, RingError> {
        let requested = RequestedChange {
            add: self.add.iter().flat_map(|some| some.0.clone()).collect(),
            remove: self.remove.clone(),
            weigh: self.weigh.clone(),
        };
        let joined = join(&self.seeds.servers()?, existing_only()).await?;
        Planned::of(&requested, &joined.store).await
    }
}

impl Planned {
    /// The plan for the topology in `store`.
    pub(super) async fn of(
        requested: &RequestedChange,
        store: &ServerTopology,
    ) -> Result<Self, RingError> {
        let topology = store.load().await?;
        let begun = requested.rehearsed(&topology)?;
        requested.check_counters(store).await?;
        Ok(Self::between(&topology, &begun)?)
    }

    fn between(topology: &Topology, begun: &Topology) -> Result<Self, TopologyError> {
        let before = topology.weights();
        let preview = begun.preview()?;
        let share = |slots: u32| f64::from(slots) / f64::from(preview.slots);
        let shards = preview.shards.iter().map(|shard| Shard {
            id: shard.id.to_string(),
            address: begun
                .shard(&shard.id)
                .map(|entry| entry.address.clone())
                .unwrap_or_default(),
            weight_before: before.get(&ShardName(shard.id.clone())).copied(),
            weight_after: shard.weight_after,
            slots_before: shard.slots_before,
            slots_after: shard.slots_after,
            share_before: share(shard.slots_before),
            share_after: share(shard.slots_after),
        });
        let moves = preview.moves.iter().map(|((from, to), &slots)| Move {
            from: from.to_string(),
            to: to.to_string(),
            slots,
        });
        Ok(Self {
            topology: topology.id.clone(),
            version: topology.version,
            slots: preview.slots,
            shards: shards.collect(),
            moves: moves.collect(),
            slots_to_move: preview.slots_to_move(),
            optimum: optimum(&preview),
        })
    }
}

/// The sum, over all shards, of the slots beyond the new share.
fn optimum(preview: &Preview) -> u32 {
    let shards = preview.shards.iter();
    shards
        .map(|shard| shard.slots_before.saturating_sub(shard.slots_after))
        .sum()
}

impl fmt::Display for Planned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topology, version) = (&self.topology, self.version);
        writeln!(
            out,
            "planned, not begun: topology {topology}, version {version}\n"
        )?;
        let mut shares = Table::new(&[
            "shard",
            "address",
            "weight",
            "slots",
            "share",
            "→ weight",
            "→ slots",
            "→ share",
        ]);
        let weight = |weight: Option<u32>| weight.map_or("-".into(), |weight| weight.to_string());
        for shard in &self.shards {
            shares.row([
                shard.id.clone(),
                shard.address.clone(),
                weight(shard.weight_before),
                grouped(shard.slots_before.into()),
                percent(shard.share_before),
                weight(shard.weight_after),
                grouped(shard.slots_after.into()),
                percent(shard.share_after),
            ]);
        }
        writeln!(out, "{shares}")?;
        if !self.moves.is_empty() {
            let mut moves = Table::new(&["from", "to", "slots"]);
            for Move { from, to, slots } in &self.moves {
                moves.row([from.clone(), to.clone(), grouped((*slots).into())]);
            }
            writeln!(out, "{moves}")?;
        }
        let share = percent(f64::from(self.slots_to_move) / f64::from(self.slots));
        let (to_move, slots) = (
            grouped(self.slots_to_move.into()),
            grouped(self.slots.into()),
        );
        let optimum = grouped(self.optimum.into());
        writeln!(
            out,
            "{to_move} of {slots} slots move ({share}); no fewer than {optimum} could"
        )
    }
}
