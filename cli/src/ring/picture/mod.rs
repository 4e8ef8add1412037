//! The ring as a picture: each shard's share of the slots is an arc of it, and migrating slots are marked.
//!
//! A shard's slots lie scattered over the hash circle, on purpose: drawn where they are, every shard would
//! be everywhere. So an arc is a share, not a place.

mod svg;
mod terminal;

pub(super) use svg::svg;
pub(super) use terminal::Terminal;

use std::collections::BTreeMap;

use ringfence_client::{ShardId, Topology, TopologyError};

/// What there is to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// How many slots there are.
    slots: u32,
    /// The shards, sorted by id.
    shards: Vec<Sector>,
    /// From the top, clockwise: the shards in order, each with its slots at rest first.
    arcs: Vec<Arc>,
    /// How many slots the resize under way has still to move, those migrating among them.
    to_move: Option<u32>,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sector {
    id: ShardId,
    slots: u32,
    /// What it will have, if a resize is under way.
    after: Option<u32>,
}

/// Slots of one shard, all of them at rest or all on their way to one other. Shards are indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arc {
    owner: usize,
    to: Option<usize>,
    slots: u32,
}

impl Ring {
    /// The ring as `topology` has it.
    pub(super) fn of(topology: &Topology) -> Result<Self, TopologyError> {
        let preview = topology.preview()?;
        let resize = topology.goal.is_some();
        let shards = preview.shards.iter().map(|share| Sector {
            id: share.id.clone(),
            slots: share.slots_before,
            after: resize.then_some(share.slots_after),
        });
        let shards: Vec<_> = shards.collect();
        Ok(Self {
            slots: preview.slots,
            arcs: arcs(&shards, &migrating(topology, &shards)),
            shards,
            to_move: resize.then(|| preview.slots_to_move()),
        })
    }

    /// How many slots are migrating.
    fn migrating(&self) -> u32 {
        let moving = self.arcs.iter().filter(|arc| arc.to.is_some());
        moving.map(|arc| arc.slots).sum()
    }

    /// `slots` as a part of all, 0 to 1.
    fn share(&self, slots: u32) -> f64 {
        f64::from(slots) / f64::from(self.slots)
    }

    /// The begin and end of each arc, in turns from the top. Migrating slots are visible however
    /// few they are: they take the place from their shard's slots at rest.
    fn turns(&self, seen_from: f64) -> Vec<(f64, f64)> {
        let exact: Vec<f64> = self.arcs.iter().map(|arc| self.share(arc.slots)).collect();
        let mut widths = exact.clone();
        for (at, arc) in self.arcs.iter().enumerate() {
            let at_rest = self
                .arcs
                .iter()
                .position(|rest| rest.owner == arc.owner && rest.to.is_none());
            if let (Some(_), Some(rest)) = (arc.to, at_rest) {
                let more = (seen_from - exact[at]).clamp(0.0, widths[rest] / 2.0);
                widths[at] += more;
                widths[rest] -= more;
            }
        }
        let mut end = 0.0;
        let turn = |width: &f64| {
            let begin = end;
            end += width;
            (begin, end)
        };
        widths.iter().map(turn).collect()
    }
}

/// The arcs of slots on their way, from and to where they go, in order.
fn migrating(topology: &Topology, shards: &[Sector]) -> Vec<Arc> {
    let mut slots = BTreeMap::new();
    let index = |id: &ShardId| shards.binary_search_by(|shard| shard.id.cmp(id)).ok();
    for migration in &topology.migrations {
        if let (Some(owner), Some(to)) = (index(&migration.from.0), index(&migration.to.0)) {
            *slots.entry((owner, to)).or_insert(0) += migration.slots.len() as u32;
        }
    }
    let arc = |((owner, to), slots)| Arc {
        owner,
        to: Some(to),
        slots,
    };
    slots.into_iter().map(arc).collect()
}

fn arcs(shards: &[Sector], migrating: &[Arc]) -> Vec<Arc> {
    let mut arcs = Vec::new();
    for (owner, shard) in shards.iter().enumerate() {
        let leaving: Vec<_> = migrating.iter().filter(|arc| arc.owner == owner).collect();
        let gone: u32 = leaving.iter().map(|arc| arc.slots).sum();
        arcs.push(Arc {
            owner,
            to: None,
            slots: shard.slots.saturating_sub(gone),
        });
        arcs.extend(leaving);
    }
    arcs.retain(|arc| arc.slots > 0);
    arcs
}

/// A colour that those next to it can be told from, by the colour-blind too (Okabe and Ito, "Color Universal
/// Design", 2008). Beyond eight shards colours come again; letters and labels tell then.
#[derive(Clone, Copy, Debug)]
struct Colour {
    /// For pictures.
    hex: &'static str,
    /// The nearest of a terminal's 256.
    ansi: u8,
    /// Whether text on it is to be white.
    dark: bool,
}

const COLOURS: [Colour; 8] = [
    Colour {
        hex: "#0072b2",
        ansi: 25,
        dark: true,
    },
    Colour {
        hex: "#e69f00",
        ansi: 214,
        dark: false,
    },
    Colour {
        hex: "#009e73",
        ansi: 36,
        dark: true,
    },
    Colour {
        hex: "#cc79a7",
        ansi: 175,
        dark: false,
    },
    Colour {
        hex: "#56b4e9",
        ansi: 74,
        dark: false,
    },
    Colour {
        hex: "#d55e00",
        ansi: 166,
        dark: true,
    },
    Colour {
        hex: "#f0e442",
        ansi: 227,
        dark: false,
    },
    Colour {
        hex: "#7a7a7a",
        ansi: 243,
        dark: true,
    },
];

/// The colour of the shard at `index`.
fn colour(index: usize) -> Colour {
    COLOURS[index % COLOURS.len()]
}

#[cfg(test)]
mod tests;
