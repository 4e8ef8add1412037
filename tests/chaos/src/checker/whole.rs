//! A set of locks is granted whole: the process may believe in each of them when it is told of all.

use super::{
    Grant, Grants, Rule, Violation,
    violation::seconds,
    windows::{self, Window},
};
use crate::history::{Fault, History};

/// What a busy machine may take between the last look at the set and the record of it.
const SLACK_NS: u64 = 200_000_000;

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut stops = windows::of(history);
    stops.retain(|window| window.fault == Fault::StopClient);
    let in_sets = grants
        .all()
        .filter(|grant| grant.acquired.deed.set.is_some());
    in_sets.filter_map(|grant| of_one(grant, &stops)).collect()
}

fn of_one(grant: &Grant<'_>, stops: &[Window<'_>]) -> Option<Violation> {
    let (told_ns, process) = (grant.told_ns(), grant.acquired.process);
    let before = grant.deadlines().filter(|(event, _)| event.t_ns <= told_ns);
    let until_ns = before
        .map(|(_, deadline_ns)| deadline_ns)
        .max()
        .unwrap_or(0);
    let stopped = stops.iter().any(|stop| {
        stop.victim == Some(process) && stop.time.start <= told_ns && until_ns <= stop.time.end
    });
    if stopped || told_ns <= until_ns + SLACK_NS {
        return None;
    }
    let what = format!(
        "process {process} was granted a set with it at {}, and held it until {}",
        seconds(told_ns),
        seconds(until_ns)
    );
    Some(Violation::new(
        Rule::Whole,
        grant.key,
        what,
        [grant.acquired],
    ))
}
