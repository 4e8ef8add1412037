//! Our tables and the hashring crate, behind one trait.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    hint::black_box,
};

use hashring::HashRing;
use ringfence_ring::{Membership, RingError, ShardId, SlotCount, Table, Weight, key_hash};

/// Points of a shard, where there are any.
const POINTS: u32 = 100;

/// Finds shards by their number.
pub(crate) trait Lookup {
    fn shard(&self, hash: u64) -> usize;
    /// Looks all of `hashes` up; answers anything that needs every answer.
    fn hashes(&self, hashes: &[u64]) -> usize;
    /// Hashes all of `keys` and looks them up.
    fn keys(&self, keys: &[Vec<u8>]) -> usize;
}

/// One way to place keys on some number of shards.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) lookup: Box<dyn Lookup>,
    pub(crate) with_one_more: Box<dyn Lookup>,
    pub(crate) slots_max_over_mean: Option<f64>,
    pub(crate) plan_over_optimum: Option<f64>,
}

/// Everybody, with `shards` shards.
pub(crate) fn all(shards: usize) -> Result<Vec<Contender>, RingError> {
    Ok(vec![
        ours(shards)?,
        hashring("hashring", 1, shards),
        hashring("hashring-100", POINTS, shards),
    ])
}

fn name(shard: usize) -> String {
    // Sorted as numbered, so that a table's index is the number.
    format!("s{shard:04}")
}

fn ours(shards: usize) -> Result<Contender, RingError> {
    let table = Table::bootstrap(&members(shards)?);
    let plan = table.plan(&members(shards + 1)?)?;
    let most = table.quotas().into_iter().max().unwrap_or(0);
    Ok(Contender {
        name: "quota",
        slots_max_over_mean: Some(f64::from(most) * shards as f64 / f64::from(table.slots().get())),
        plan_over_optimum: Some(plan.moves().len() as f64 / plan.optimum() as f64),
        with_one_more: Box::new(plan.table().clone()),
        lookup: Box::new(table),
    })
}

fn members(shards: usize) -> Result<Membership, RingError> {
    let ids: Result<Vec<_>, _> = (0..shards)
        .map(|shard| Ok((ShardId::new(&name(shard))?, Weight::ONE)))
        .collect();
    Membership::new(SlotCount::DEFAULT, ids?)
}

impl Lookup for Table {
    fn shard(&self, hash: u64) -> usize {
        self.owner_index(self.slots().slot_of(hash))
    }

    fn hashes(&self, hashes: &[u64]) -> usize {
        for &hash in hashes {
            black_box(self.owner(self.slots().slot_of(hash)));
        }
        hashes.len()
    }

    fn keys(&self, keys: &[Vec<u8>]) -> usize {
        for key in keys {
            black_box(self.owner(self.slots().slot_of(key_hash("default", key))));
        }
        keys.len()
    }
}

fn hashring(name: &'static str, points: u32, shards: usize) -> Contender {
    Contender {
        name,
        lookup: Box::new(Hashring::new(points, shards)),
        with_one_more: Box::new(Hashring::new(points, shards + 1)),
        slots_max_over_mean: None,
        plan_over_optimum: None,
    }
}

/// The hashring crate twice: as it comes, and with hashes handed on as they are.
struct Hashring {
    as_it_comes: HashRing<Named>,
    handed_on: HashRing<Placed, HandOn>,
}

/// A point of a shard, placed by its name.
#[derive(Hash)]
struct Named(String);

/// A point of a shard, placed where it says.
struct Placed {
    at: u64,
    shard: usize,
}

impl Hash for Placed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.at);
    }
}

impl Hashring {
    fn new(points: u32, shards: usize) -> Self {
        let (mut as_it_comes, mut handed_on) = (HashRing::new(), HashRing::with_hasher(HandOn));
        let points =
            |shard| (0..points).map(move |point| (shard, format!("{}-{point}", name(shard))));
        let points: Vec<(usize, String)> = (0..shards).flat_map(points).collect();
        let placed = points.iter().map(|(shard, point)| Placed {
            at: key_hash("points", point.as_bytes()),
            shard: *shard,
        });
        handed_on.batch_add(placed.collect());
        as_it_comes.batch_add(points.into_iter().map(|(_, point)| Named(point)).collect());
        Self {
            as_it_comes,
            handed_on,
        }
    }
}

impl Lookup for Hashring {
    fn shard(&self, hash: u64) -> usize {
        self.handed_on.get(&hash).map_or(0, |point| point.shard)
    }

    fn hashes(&self, hashes: &[u64]) -> usize {
        for hash in hashes {
            black_box(self.handed_on.get(hash));
        }
        hashes.len()
    }

    fn keys(&self, keys: &[Vec<u8>]) -> usize {
        for key in keys {
            black_box(
                self.as_it_comes
                    .get(&("default", key))
                    .map(|point| &point.0),
            );
        }
        keys.len()
    }
}

/// Hashers that answer the number they were given.
struct HandOn;

struct HandedOn(u64);

impl BuildHasher for HandOn {
    type Hasher = HandedOn;

    fn build_hasher(&self) -> HandedOn {
        HandedOn(0)
    }
}

impl Hasher for HandedOn {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("numbers alone are handed on");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
