//! What the next resize is.

use std::{collections::BTreeMap, iter::successors};

use ringfence_client::{ResizeError, RingError, ShardId, Weight};
use ringfence_coordinator::{
    ids::ClientId,
    random::Random,
    topology::{Change, Topology, server::ServerTopology, shard_id},
};

use ringfence_ring::Membership;

use super::{MoverArgs, options};

/// Of so many resizes one changes a weight; the others have a shard come or go.
const RESIZES_TO_A_WEIGHT: u64 = 4;

/// A resize that moves the slot in `args`, if there is one. Otherwise the server that is no shard comes; or if each is
/// one, one goes; or one gets another weight.
pub(super) async fn choose(
    store: &ServerTopology,
    record: &Topology,
    args: &MoverArgs,
    dice: u64,
) -> Result<Change, ResizeError> {
    if let Some(slot) = args.slot {
        return Ok(away(record, slot)?);
    }
    let mut change = Change::default();
    let pick = |of: Vec<ShardId>| of[dice as usize / 7 % of.len()].clone();
    let members = record.shards.keys().map(|name| name.0.clone());
    let is_free = |(place, _): &(usize, &String)| {
        let id = shard_id(*place);
        let is_failed = record.failed.iter().any(|failed| failed.shard.0 == id);
        record.shard(&id).is_none() && !is_failed
    };
    if dice.is_multiple_of(RESIZES_TO_A_WEIGHT) {
        let id = pick(members.collect());
        let quota = record.table.quota(&id);
        let share = record.table.slots().get() / record.shards.len() as u32;
        let weight = if quota > share { 1 } else { 2 };
        let weight = Weight::new(weight).expect("a weight is at least 1");
        change.weigh.insert(id, weight);
    } else if let Some((place, url)) = args.urls.iter().enumerate().find(is_free) {
        let newcomer = options(url, &args.prefix, ClientId(Random::from_os().id()));
        let founder = store.take_in(newcomer, Some(shard_id(place)), Weight::ONE);
        change.add.push(founder.await?);
    } else {
        // The home of the record stays.
        let is_home = |id: &ShardId| {
            let entry = record.shard(id);
            entry.is_some_and(|entry| entry.address == record.home.address)
        };
        change
            .remove
            .push(pick(members.filter(|id| !is_home(id)).collect()));
    }
    Ok(change)
}

/// The resize by which `slot` leaves its shard: that shard gets weight 1, and the others the least power of two that is
/// enough. No shard is removed: the shard may be the home of the record.
fn away(record: &Topology, slot: u32) -> Result<Change, RingError> {
    let slots = record.table.slots();
    let slot = slots.slot(slot)?;
    let owner = record.table.owner(slot);
    let mut change = Change::default();
    for weight in successors(Some(2), |weight| Some(weight * 2)) {
        let weight = Weight::new(weight)?;
        let weigh = |id: &ShardId| (id.clone(), if id == owner { Weight::ONE } else { weight });
        let weights: BTreeMap<_, _> = record.shards.keys().map(|name| weigh(&name.0)).collect();
        let target = Membership::new(slots, weights.clone())?;
        change.weigh = weights;
        if record.table.plan(&target)?.table().owner(slot) != owner {
            break;
        }
    }
    Ok(change)
}
