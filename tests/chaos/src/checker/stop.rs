//! A client that is told to end gives its locks back: whoever waits for them has them before the leases end. A stop may
//! fail at that, as its coordinator may; not every stop of a group of clients.

use std::collections::BTreeMap;

use super::{
    Grant, Grants, Rule, Violation,
    violation::seconds,
    windows::{self, Window},
};
use crate::{
    history::{Fault, History, Share},
    run::GROUP_NUMBERS,
};

/// If so many locks of a group were free only after their leases, and none before, it gives none back.
const ENOUGH: usize = 3;

/// A lock that a client had when it was told to end, and its next grant, to one who waited already.
struct Taken<'g, 'h> {
    from: &'g Grant<'h>,
    by: &'g Grant<'h>,
}

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut of_group: BTreeMap<u32, Vec<Taken<'_, '_>>> = BTreeMap::new();
    for taken in taken(history, grants) {
        let group = taken.from.acquired.process / GROUP_NUMBERS;
        of_group.entry(group).or_default().push(taken);
    }
    let none_in_time =
        |all: &&Vec<Taken<'_, '_>>| all.len() >= ENOUGH && !all.iter().any(Taken::is_in_time);
    let groups = of_group.values().filter(none_in_time);
    groups.map(|all| violation(all)).collect()
}

/// How many locks of clients that were told to end others had before the leases ended.
pub(super) fn in_time(history: &History, grants: &Grants<'_>) -> usize {
    taken(history, grants).filter(Taken::is_in_time).count()
}

fn taken<'g, 'h>(
    history: &'h History,
    grants: &'g Grants<'h>,
) -> impl Iterator<Item = Taken<'g, 'h>> {
    let windows = windows::of(history);
    let is_undisturbed = |stop: &&Window<'_>| {
        let overlaps = |other: &Window<'_>| {
            other.time.start <= stop.time.end && stop.time.start <= other.time.end
        };
        // What is cut, or slow, comes through.
        let is_silent = |other: &&Window<'_>| {
            other.shard.is_some()
                || matches!(
                    other.fault,
                    Fault::KillCoordinator | Fault::StopCoordinator | Fault::BlackHole
                )
        };
        !windows.iter().filter(is_silent).any(overlaps)
    };
    let stops = windows.iter().filter(|stop| stop.fault == Fault::EndClient);
    let stops = stops.filter(is_undisturbed);
    let stops: Vec<_> = stops.map(|stop| (stop.victim, stop.time.clone())).collect();
    grants.of_key.values().flat_map(move |of_key| {
        let pairs = of_key.windows(2);
        let taken = pairs.filter_map(|pair| {
            let (from, by) = (&pair[0], &pair[1]);
            let (process, share) = (from.acquired.process, from.acquired.deed.share);
            let is_whole = share == Share::WHOLE && from.ends_ns().is_none();
            let stopped = stops.iter().any(|(victim, time)| {
                *victim == Some(process)
                    && from.certain().contains(&time.start)
                    && by.asked_ns < time.end
            });
            let is_taken = is_whole && stopped && by.acquired.process != process;
            is_taken.then_some(Taken { from, by })
        });
        taken.collect::<Vec<_>>()
    })
}

impl Taken<'_, '_> {
    fn is_in_time(&self) -> bool {
        self.by.told_ns() < self.lease_ends_ns()
    }

    fn lease_ends_ns(&self) -> u64 {
        let lease_ms = self.from.acquired.deed.lease_ms.unwrap_or(0);
        self.from.last_sent_ns() + lease_ms * 1_000_000
    }
}

fn violation(all: &[Taken<'_, '_>]) -> Violation {
    let Taken { from, by } = &all[0];
    let what = format!(
        "process {} was told to end and had it, and another got it at {}, after the lease: so it was at each of {} stops",
        from.acquired.process,
        seconds(by.told_ns()),
        all.len()
    );
    Violation::new(Rule::Stop, from.key, what, [from.acquired, by.acquired])
}
