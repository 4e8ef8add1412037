//! What processes saw unchanged, and since when: for a shard whose clock stands still while no process stays.
//!
//! A process that asks once sees a record for a moment alone. The next one of its machine reads the same clock, and knows for
//! how long the record has been what it is. The holder counts its deadline from before the record was written: so a record
//! that was unchanged for its length has ended, whatever the shard's clock shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{end::End, millis};
use crate::{
    clock::{Instant, Moment},
    limits::RHO_PERMILLE,
};

/// Machines whose sightings are kept, at most.
const MACHINES_MAX: usize = 8;

/// When something was first seen as it is: milliseconds, by the name of the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sightings(BTreeMap<String, u64>);

impl Sightings {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// It was seen at `moment`. Returns whether that is kept.
    pub(crate) fn add(&mut self, moment: &Moment) -> bool {
        let is_new = self.0.len() < MACHINES_MAX && !self.0.contains_key(&*moment.clock);
        if is_new {
            self.0.insert(moment.clock.to_string(), at_ms(moment));
        }
        is_new
    }

    /// Whether it has been as it is for longer than `end` was away, until `moment`.
    pub(crate) fn outlast(&self, end: End, moment: &Moment) -> bool {
        let rho = u64::from(RHO_PERMILLE);
        let length_ms = end.length_ms.saturating_mul(1000 + rho) / 1000;
        let since = self.0.get(&*moment.clock);
        since.is_some_and(|since| at_ms(moment).saturating_sub(*since) > length_ms)
    }
}

fn at_ms(moment: &Moment) -> u64 {
    millis(moment.at.since(Instant::default()))
}
