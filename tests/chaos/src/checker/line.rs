//! First come, first served, within a process: while a waiter certainly waits there for a key, no
//! later requester of that process gets it. (Each acquisition of a share has a ticket of its own: see [`super::queue`].)

use std::collections::{BTreeMap, HashMap};

use super::{Rule, Violation, violation::seconds};
use crate::{
    history::{Event, History, Kind, Phase},
    shares,
};

/// A requester of a key in a process.
#[derive(Debug)]
struct Waiter<'h> {
    asked: &'h Event,
    /// The time from which it certainly had its place.
    waits_ns: Option<u64>,
    /// The time of its grant, and the event that shows it.
    granted: Option<(u64, &'h Event)>,
    /// The time when it may have left, with the lock or without.
    until_ns: u64,
}

pub(super) fn check(history: &History) -> Vec<Violation> {
    let lines = lines(history);
    lines.values().flat_map(|line| of_one(line)).collect()
}

/// The requesters of each key in each process, in order.
fn lines(history: &History) -> BTreeMap<(u32, &str), Vec<Waiter<'_>>> {
    let mut lines: BTreeMap<(u32, &str), Vec<Waiter<'_>>> = BTreeMap::new();
    let mut places = HashMap::new();
    for event in &history.events {
        let (id, deed) = ((event.process, event.deed.op), &event.deed);
        let Some(key) = deed.key.as_deref().filter(|key| !shares::has(key)) else {
            continue;
        };
        let line = lines.entry((event.process, key)).or_default();
        if (deed.kind, deed.phase) == (Kind::Acquire, Phase::Invoke) {
            places.insert(id, line.len());
            line.push(Waiter::new(event));
        } else if let Some(waiter) = places.get(&id).and_then(|place| line.get_mut(*place)) {
            waiter.note(event);
        }
    }
    lines
}

impl<'h> Waiter<'h> {
    fn new(asked: &'h Event) -> Self {
        let wait_ns = asked.deed.wait_ms.map(|wait_ms| wait_ms * 1_000_000);
        Self {
            asked,
            waits_ns: None,
            granted: None,
            until_ns: wait_ns.map_or(u64::MAX, |wait_ns| asked.t_ns + wait_ns),
        }
    }

    fn note(&mut self, event: &'h Event) {
        match (event.deed.kind, event.deed.phase) {
            (Kind::Wait, _) => drop(self.waits_ns.get_or_insert(event.t_ns)),
            (Kind::Acquire, phase) => {
                let at = event.deed.judged_ns.unwrap_or(event.t_ns);
                self.until_ns = self.until_ns.min(at);
                self.granted = (phase == Phase::Ok).then_some((at, event));
            }
            _ => {}
        }
    }
}

fn of_one(line: &[Waiter<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (place, waiter) in line.iter().enumerate() {
        let Some(waits_ns) = waiter.waits_ns else {
            continue;
        };
        let behind = line[place + 1..]
            .iter()
            .take_while(|other| other.asked.t_ns < waiter.until_ns)
            .filter(|other| other.asked.t_ns > waits_ns);
        let overtook = behind
            .filter_map(|other| other.granted)
            .find(|(granted_ns, _)| *granted_ns < waiter.until_ns);
        if let Some((at, by)) = overtook {
            let what = format!(
                "somebody in process {} waited from {} until {}, and another who asked later was granted it \
                 at {}",
                waiter.asked.process,
                seconds(waits_ns),
                seconds(waiter.until_ns),
                seconds(at)
            );
            let key = waiter.asked.deed.key.as_deref().unwrap_or_default();
            violations.push(Violation::new(Rule::Line, key, what, [waiter.asked, by]));
        }
    }
    violations
}
