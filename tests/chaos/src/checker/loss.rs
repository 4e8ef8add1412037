//! No holder is told before the deadline that it has lost the lock: by no renewal at all, and by a
//! release only if the shard lost its memory since the record was last seen in place.

use std::collections::HashSet;

use super::{
    Grant, Grants, Rule, Violation,
    grants::is_answer,
    violation::seconds,
    windows::{self, Window},
};
use crate::{
    history::{Answer, Event, History, Kind},
    ledger,
};

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut ends = windows::of(history);
    ends.retain(|window| window.fault.ends_a_life());
    grants
        .all()
        .flat_map(|grant| of_one(grant, &ends))
        .collect()
}

fn of_one(grant: &Grant<'_>, ends: &[Window<'_>]) -> Vec<Violation> {
    let deadline = grant.told_deadline_ns();
    let lost = grant
        .renewals
        .iter()
        .filter(|event| is_answer(event, Kind::Renew, Answer::Lost) && event.t_ns < deadline);
    let not_there = grant.released().filter(|event| {
        is_answer(event, Kind::Release, Answer::NotThere) && !excused(grant, event, ends)
    });
    let spurious = lost.copied().chain(not_there);
    let violation = |event: &Event| {
        let what = format!(
            "process {} was told at {} that it is not its own, and had it until {}",
            event.process,
            seconds(event.t_ns),
            seconds(deadline)
        );
        Violation::new(Rule::Loss, grant.key, what, [grant.acquired, event])
    };
    spurious.map(violation).collect()
}

/// Whether its shard began a new life between its last renewal and `answer`; or whether any shard
/// did, if its slot moved: it may have been at either shard by then. Of a lock with replicas, whether as many shards
/// did as make a majority.
fn excused(grant: &Grant<'_>, answer: &Event, ends: &[Window<'_>]) -> bool {
    let shard = grant.acquired.deed.shard.as_deref();
    let moved = answer.deed.shard.as_deref() != shard;
    let ends = ends
        .iter()
        .filter(|end| grant.last_sent_ns() <= end.time.end && end.time.start <= answer.t_ns);
    if ledger::has(grant.key) {
        let shards: HashSet<_> = ends.map(|end| end.shard).collect();
        return shards.len() >= ledger::MAJORITY;
    }
    ends.into_iter().any(|end| moved || end.shard == shard)
}
