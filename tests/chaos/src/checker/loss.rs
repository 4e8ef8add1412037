//! No holder is told before the deadline that it has lost the lock: by no renewal at all, and by a
//! release only if the shard lost its memory since the record was last seen in place; or by either if an operator took the lock
//! from it. Where coordinators fail, one at
//! a time, no holder loses its lock at all, unless its own process is stopped or a shard fails meanwhile, or a coordinator
//! that failed told of the grant so late that less than half of the lease was left.

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
    let windows = windows::of(history);
    let by_service = by_service(history, grants, &windows);
    let mut ends = windows;
    ends.retain(|window| window.fault.ends_a_life());
    let told = grants.all().flat_map(|grant| of_one(grant, &ends));
    told.chain(by_service).collect()
}

/// Guards that say they are lost, where the coordinators, of which one serves, must have kept the lock.
fn by_service(history: &History, grants: &Grants<'_>, windows: &[Window<'_>]) -> Vec<Violation> {
    if !windows.iter().any(Window::is_of_a_coordinator) {
        return Vec::new();
    }
    let lost = history
        .events
        .iter()
        .filter(|event| is_answer(event, Kind::GuardState, Answer::Lost));
    let of_one = |event: &Event| {
        let nonce = event.deed.nonce.as_deref().unwrap_or_default();
        let mut of_nonce = grants.of_nonce(nonce);
        let grant = of_nonce.find(|grant| Some(grant.token) == event.deed.token)?;
        let excused = windows.iter().any(|window| {
            let shard = grant.acquired.deed.shard.as_deref();
            let at_shard = window.shard.is_some() && (shard.is_none() || window.shard == shard);
            let hurts = window.victim == Some(event.process) || at_shard;
            hurts && window.time.start <= event.t_ns && grant.told_ns() <= window.time.end
        });
        let at = seconds(event.t_ns);
        let what = format!(
            "process {} lost it by {at}, and one of the coordinators served",
            event.process
        );
        let violation = || Violation::new(Rule::Loss, grant.key, what, [grant.acquired, event]);
        (!excused && !came_late(grant, windows)).then(violation)
    };
    lost.filter_map(of_one).collect()
}

/// Whether its holder never had half of its lease ahead, where a coordinator failed before it knew of the grant.
fn came_late(grant: &Grant<'_>, windows: &[Window<'_>]) -> bool {
    let lease_ns = grant.acquired.deed.lease_ms.unwrap_or(0) * 1_000_000;
    let (told_ns, deadline_ns) = (grant.told_ns(), grant.told_deadline_ns());
    let failed = |window: &Window<'_>| {
        let is_before = window.time.start <= told_ns;
        is_before && deadline_ns.saturating_sub(lease_ns) <= window.time.end
    };
    let mut of_coordinators = windows.iter().filter(|window| window.is_of_a_coordinator());
    deadline_ns.saturating_sub(told_ns) < lease_ns / 2 && of_coordinators.any(failed)
}

fn of_one(grant: &Grant<'_>, ends: &[Window<'_>]) -> Vec<Violation> {
    let told_deadline = grant.told_deadline_ns();
    let deadline = grant
        .forced_ns
        .map_or(told_deadline, |forced| forced.min(told_deadline));
    let lost = grant
        .renewals
        .iter()
        .filter(|event| is_answer(event, Kind::Renew, Answer::Lost) && event.t_ns < deadline);
    let not_there = grant.released().filter(|event| {
        let is_forced = grant.forced_ns.is_some_and(|forced| forced < event.t_ns);
        let not_there = is_answer(event, Kind::Release, Answer::NotThere);
        not_there && !is_forced && !excused(grant, event, ends)
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
