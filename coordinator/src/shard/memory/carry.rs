//! Groups that change hands with their slots.

use ringfence_ring::Slot;

use super::{aside::Aside, kept::Kept, state::Memory};
use crate::{
    ids::{Epoch, Life},
    limits::{ASIDE_FOR, COPY_ROWS, GROUPS_PAGE},
    name::LockKey,
    shard::{
        Arrival, Arrive, AskGroups, CopyIn, CopyOf, CopyOut, Cursor, DropGroups, Dropped, Excerpt,
        Group, Groups, Piece, PutAside, ShardError, SlotState, Stamp, When, rules::millis,
    },
};

impl Memory {
    /// Some of the groups that are left. They have no blocks.
    pub(super) fn groups(&self, ask: &AskGroups) -> Result<Groups, ShardError> {
        if let When::Here(after) = &ask.when {
            let from = after.as_ref().map_or(Ok(0), place_of)?;
            let groups = self.counters.groups.iter();
            let there = groups.filter(|(key, kept)| {
                ask.slots.contains(&key.slot()) && kept.tells_of_account(key)
            });
            let page: Vec<Group> = there
                .skip(from)
                .take(GROUPS_PAGE)
                .map(|(key, kept)| Group {
                    key: key.clone(),
                    since: kept.since,
                    blocks: Vec::new(),
                })
                .collect();
            let next = (page.len() == GROUPS_PAGE).then(|| from + GROUPS_PAGE);
            return Ok(Groups {
                groups: page,
                next: next.map(|next| Cursor(next.to_string().into_bytes())),
                ..Groups::default()
            });
        }
        if let When::Before(_) = ask.when {
            let (_, refused) = self.split(&ask.slots, |state| state.epoch < ask.epoch)?;
            return Ok(Groups {
                refused,
                ..Groups::default()
            });
        }
        let (leaving, refused) = self.split(&ask.slots, |state| state.leaves_by(ask.epoch))?;
        let groups = self.counters.groups.iter();
        let groups = groups.filter(|(key, _)| leaving.contains(&key.slot()));
        let groups = groups.take(GROUPS_PAGE).map(|(key, kept)| Group {
            key: key.clone(),
            since: kept.since,
            blocks: Vec::new(),
        });
        Ok(Groups {
            groups: groups.collect(),
            refused,
            next: None,
            complete: self.counters.complete,
        })
    }

    /// A piece of a group that leaves.
    pub(super) fn copy_out(&self, copy: &CopyOut) -> Result<Option<Piece>, ShardError> {
        let leaves = self.slot(&copy.key)?.leaves_by(copy.epoch);
        let Some(kept) = self.counters.groups.get(&copy.key).filter(|_| leaves) else {
            return Ok(None);
        };
        let after = match &copy.what {
            Excerpt::Rows(after) => after.as_ref(),
            Excerpt::Rest(_) | Excerpt::Open(_) | Excerpt::Blocks(_) => return Ok(None),
        };
        let from = after.map_or(Ok(0), place_of)?;
        let sizes = kept.sizes();
        let next = from + COPY_ROWS;
        let more = sizes.iter().sum::<u64>() > next as u64;
        Ok(Some(Piece {
            sizes,
            rows: kept.rows().skip(from).take(COPY_ROWS).collect(),
            next: more.then(|| Cursor(next.to_string().into_bytes())),
            stamp: if more { Stamp::default() } else { kept.stamp() },
        }))
    }

    /// Puts a piece of a group aside.
    pub(super) fn copy_in(&mut self, copy: CopyIn, now_ms: u64) -> Result<PutAside, ShardError> {
        let Group { key, since, blocks } = copy.group;
        let state = self.slot(&key)?;
        if !state.arrives_by(copy.epoch) && state.epoch >= copy.epoch {
            return Ok(PutAside::Refused);
        }
        if self.full {
            return Err(ShardError::Unusable {
                reason: "no memory for counters that come here".into(),
            });
        }
        if self.counters.has(&key, since) {
            return Ok(PutAside::Arrived);
        }
        let asides = &mut self.counters.aside;
        asides.retain(|_, aside| now_ms < aside.until_ms);
        let name = aside_name(&key, copy.epoch, &copy.source);
        let aside: &mut Aside = asides.entry(name).or_default();
        aside.until_ms = now_ms.saturating_add(millis(ASIDE_FOR));
        copy.rows.into_iter().for_each(|row| aside.add(row));
        Ok(PutAside::Lacks(blocks))
    }

    /// Makes a group of its pieces.
    pub(super) fn arrive(&mut self, arrive: &Arrive) -> Result<Arrival, ShardError> {
        let Arrive {
            epoch,
            source,
            group: Group { key, since, .. },
            sizes,
            stamp,
        } = arrive;
        if !self.slot(key)?.arrives_by(*epoch) {
            return Ok(Arrival::Refused);
        }
        let counters = &mut self.counters;
        if counters.has(key, *since) {
            return Ok(Arrival::Here(counters.groups[key].copy.clone()));
        }
        let name = aside_name(key, *epoch, source);
        match counters.aside.remove(&name) {
            Some(aside) if aside.sizes() == *sizes => {
                let mut kept = aside.put_together(*epoch);
                if kept.stamp() != *stamp {
                    return Ok(Arrival::Differs);
                }
                let (source, stamp) = (source.clone(), stamp.clone());
                kept.copy = Some(CopyOf { source, stamp });
                let copy = kept.copy.clone();
                counters.groups.insert(key.clone(), kept);
                Ok(Arrival::Here(copy))
            }
            _ => Ok(Arrival::Incomplete),
        }
    }

    /// Drops groups that have arrived where their slots go.
    pub(super) fn drop_groups(&mut self, drop: &DropGroups) -> Result<Dropped, ShardError> {
        let slots: Vec<_> = drop.groups.iter().map(|(key, _)| key.slot()).collect();
        let (leaving, refused) = self.split(&slots, |state| state.leaves_by(drop.epoch))?;
        let mut differ = Vec::new();
        for (key, copy) in &drop.groups {
            if !leaving.contains(&key.slot()) {
                continue;
            }
            let stamp = || self.counters.groups.get(key).map(Kept::stamp);
            match copy.as_ref().filter(|copy| copy.source == *self.life()) {
                Some(copy) if stamp().unwrap_or_default() != copy.stamp => differ.push(key.clone()),
                _ => std::mem::drop(self.counters.groups.remove(key)),
            }
        }
        Ok(Dropped { refused, differ })
    }

    fn slot(&self, key: &LockKey) -> Result<SlotState, ShardError> {
        Ok(self.slots()?.get(key.slot()))
    }

    /// The `slots` with a state for which `is_such` holds, and the others.
    fn split(
        &self,
        slots: &[Slot],
        is_such: impl Fn(SlotState) -> bool,
    ) -> Result<(Vec<Slot>, Vec<Slot>), ShardError> {
        let states = self.slots()?;
        let is_such = |slot: &Slot| is_such(states.get(*slot));
        Ok(slots.iter().copied().partition(is_such))
    }
}

fn aside_name(key: &LockKey, epoch: Epoch, source: &Life) -> (LockKey, Epoch, Life) {
    (key.clone(), epoch, source.clone())
}

/// The number of rows on earlier pages.
fn place_of(cursor: &Cursor) -> Result<usize, ShardError> {
    let place = std::str::from_utf8(&cursor.0).ok();
    let place = place.and_then(|place| place.parse().ok());
    place.ok_or_else(|| ShardError::Refused {
        what: "copy_out",
        reason: "a cursor that nobody was given".into(),
    })
}
