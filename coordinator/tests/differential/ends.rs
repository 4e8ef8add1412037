//! When what was written ends: answers given near to that may rightly differ.

use std::ops::RangeInclusive;

use ringfence_coordinator::limits::TICKET_KEEP;

use super::steps::KEYS;

/// Ends, in milliseconds of the shards' clock.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Of the present grace.
    pub(crate) grace_ms: u64,
    /// Of each key's records, of former ones too.
    records_ms: [Vec<u64>; KEYS.len()],
    tickets_ms: Vec<u64>,
}

impl Ends {
    /// A record was written.
    pub(crate) fn also(&mut self, key: usize, end_ms: u64) {
        self.records_ms[key].push(end_ms);
    }

    /// A ticket was written or renewed.
    pub(crate) fn ticket(&mut self, now_ms: u64) {
        self.tickets_ms
            .push(now_ms + TICKET_KEEP.as_millis() as u64);
    }

    /// Whether something ends in `range`.
    pub(crate) fn any_in(&self, range: RangeInclusive<u64>) -> bool {
        let records = self.records_ms.iter().flatten();
        let mut all = records.chain(&self.tickets_ms).chain([&self.grace_ms]);
        all.any(|end_ms| range.contains(end_ms))
    }
}
