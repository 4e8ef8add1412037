//! A leader that does not resign is told that it may soon lead no longer, or leads no longer, before another leads.

use super::{
    Grant, Grants, Rule, Violation,
    violation::seconds,
    windows::{self, Window},
};
use crate::{
    election,
    history::{Answer, Event, Fault, History, Kind},
};

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut stops = windows::of(history);
    stops.retain(|window| window.fault == Fault::StopClient);
    let elections = grants.of_key.iter().filter(|(key, _)| election::has(key));
    let changes = elections.flat_map(|(_, grants)| {
        // One that was stopped until its grant had ended led nobody.
        let leaders = grants.iter().filter(|grant| !grant.possible().is_empty());
        leaders.clone().zip(leaders.skip(1))
    });
    changes
        .filter_map(|(leader, next)| unnoticed(history, leader, next, &stops))
        .collect()
}

/// Whether `leader` did not resign, and another leads.
pub(super) fn is_deposed(leader: &Grant<'_>, next: &Grant<'_>) -> bool {
    let resigned = leader.release.map(|(begun, _)| begun.t_ns);
    let ends = [resigned, leader.killed_ns].into_iter().flatten();
    ends.min().is_none_or(|end_ns| end_ns > next.told_ns())
}

fn unnoticed(
    history: &History,
    leader: &Grant<'_>,
    next: &Grant<'_>,
    stops: &[Window<'_>],
) -> Option<Violation> {
    let process = leader.acquired.process;
    let in_time = leader
        .deadlines()
        .map(|(event, _)| event.t_ns)
        .filter(|at_ns| *at_ns < leader.deadline_ns());
    let renewed_ns = in_time.last().unwrap_or(leader.told_ns());
    let stopped = stops.iter().any(|stop| {
        stop.victim == Some(process)
            && stop.time.start <= next.told_ns()
            && renewed_ns <= stop.time.end
    });
    let told = |event: &&Event| {
        let deed = &event.deed;
        let is_notice = matches!(deed.answer, Some(Answer::Danger | Answer::Lost));
        deed.kind == Kind::GuardState
            && is_notice
            && deed.nonce.as_deref() == Some(leader.nonce)
            && deed.token == Some(leader.token)
            && (renewed_ns..=next.told_ns()).contains(&event.t_ns)
    };
    if stopped || !is_deposed(leader, next) || history.events.iter().any(|event| told(&event)) {
        return None;
    }
    let what = format!(
        "process {process} was told nothing after its renewal at {}, and another led at {}",
        seconds(renewed_ns),
        seconds(next.told_ns())
    );
    let events = [leader.acquired, next.acquired];
    Some(Violation::new(Rule::Notice, leader.key, what, events))
}
