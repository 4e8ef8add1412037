//! The segment and the manifest of one key.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use ringfence_segment_lock::{
    lock::parse_key,
    segment::{Log, Segment},
};

use crate::{
    ids::Epoch,
    name::LockKey,
    shard::{CopyOf, Row, Stamp},
};

/// A group: the segment and the manifest that a shard keeps for one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The epoch of its slot when it arrived, or was made.
    pub(super) since: Epoch,
    pub(super) manifest: Option<(u64, String)>,
    pub(super) segment: Option<Segment>,
    /// Which copy it is, if it arrived from another shard.
    pub(super) copy: Option<CopyOf>,
}

impl Kept {
    /// Whether it has an account's manifest, or the first copy of one.
    pub(super) fn tells_of_account(&self, key: &LockKey) -> bool {
        let name = std::str::from_utf8(key.key()).ok().and_then(parse_key);
        self.manifest.is_some() || name.is_some_and(|(_, index, _)| index == 0)
    }

    /// Identifies its content: a copy has the same stamp.
    pub(super) fn stamp(&self) -> Stamp {
        let mut segment = self.segment.clone();
        if let Some(segment) = &mut segment {
            // These change when the shard comes back, or end by themselves.
            (segment.version, segment.losses, segment.log.last) = (0, 0, 0);
            (segment.doubtful, segment.frozen) = (false, None);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(format!("{:?} {segment:?}", self.manifest).as_bytes());
        Stamp(hasher.finish().to_be_bytes().to_vec())
    }

    /// The number of rows of each kind.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let segment = self.segment.as_ref();
        let lens = segment.map_or([0; 4], |segment| {
            let Segment {
                ids,
                credits,
                order,
                log,
                ..
            } = segment;
            [ids.len(), credits.len(), order.len(), log.effects.len()]
        });
        sizes(self.manifest.is_some(), segment.is_some(), lens)
    }

    /// Its rows, in an order that stays the same as long as it does not change.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let manifest = self.manifest.clone();
        let manifest = manifest.map(|(version, manifest)| Row::Manifest(version, manifest));
        let segment = self.segment.as_ref();
        let alone = segment.map(|segment| Row::Segment(Box::new(alone(segment))));
        let ids = segment.into_iter().flat_map(|segment| &segment.ids);
        let ids = ids.map(|(id, entry)| Row::Id(id.clone(), entry.clone()));
        let credits = segment.into_iter().flat_map(|segment| &segment.credits);
        let credits = credits.map(|(id, credit)| Row::Credit(id.clone(), *credit));
        let order = segment.into_iter().flat_map(|segment| &segment.order);
        let order = order
            .enumerate()
            .map(|(nth, id)| Row::Final(nth, id.clone()));
        let effects = segment.into_iter().flat_map(|segment| &segment.log.effects);
        let effects = effects.cloned().map(Row::Effect);
        let rows = manifest.into_iter().chain(alone).chain(ids);
        rows.chain(credits).chain(order).chain(effects)
    }
}

/// The number of rows of each kind.
pub(super) fn sizes(manifest: bool, segment: bool, lens: [usize; 4]) -> Vec<u64> {
    let mut sizes = vec![u64::from(manifest), u64::from(segment)];
    sizes.extend(lens.map(|len| len as u64));
    sizes
}

/// `segment` without the requests and credits that it remembers, and without its effects.
fn alone(segment: &Segment) -> Segment {
    Segment {
        out: segment.out.clone(),
        inn: segment.inn.clone(),
        ids: BTreeMap::new(),
        credits: BTreeMap::new(),
        order: [].into(),
        due: [].into(),
        sent: [].into(),
        pinned: [].into(),
        log: Log {
            effects: [].into(),
            ..segment.log
        },
        manifest: segment.manifest.clone(),
        ..*segment
    }
}
