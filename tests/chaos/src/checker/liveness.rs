//! After all faults are removed, every key that was ever requested is granted again, soon. No
//! request of a living process stays unanswered for long, under any fault, unless it is for a set of locks that is waited
//! for without end: then the time counts from the removal of all faults. A resize under way then
//! ends, too.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{Grants, Rule, Violation, violation::seconds};
use crate::history::{Deed, Event, Fault, History, Kind, Phase};

/// Two leases (an abandoned record, or a dead holder, and a recovery period), the longest pauses
/// between attempts, and the time that a busy machine may take for all that.
pub const WITHIN: Duration = Duration::from_secs(20);

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    [
        not_granted(history, grants),
        without_an_end(history),
        not_resized(history).into_iter().collect(),
    ]
    .concat()
}

fn not_granted(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let Some(healed) = healed(history) else {
        return Vec::new();
    };
    let soon = healed.t_ns..healed.t_ns + WITHIN.as_nanos() as u64;
    let asked_for = history
        .events
        .iter()
        .filter(|event| event.deed.kind == Kind::Acquire);
    let keys: BTreeSet<&str> = asked_for
        .filter_map(|event| event.deed.key.as_deref())
        .collect();
    let granted = |key: &str| {
        let of_key = grants.of_key.get(key);
        of_key.is_some_and(|of_key| of_key.iter().any(|grant| soon.contains(&grant.told_ns())))
    };
    let never = keys.into_iter().filter(|key| !granted(key));
    let violation = |key| {
        let at = seconds(healed.t_ns);
        let what = format!("granted to nobody within {WITHIN:?} of healing at {at}");
        Violation::new(Rule::Liveness, key, what, [healed])
    };
    never.map(violation).collect()
}

fn healed(history: &History) -> Option<&Event> {
    let is_it = |deed: &Deed| deed.fault == Some(Fault::Heal) && deed.phase == Phase::Ok;
    history.events.iter().find(|event| is_it(&event.deed))
}

/// A mover that starts after all faults are removed, and does not end the resize soon.
fn not_resized(history: &History) -> Option<Violation> {
    let healed_ns = healed(history)?.t_ns;
    let late = history.events.iter().filter(|event| event.t_ns > healed_ns);
    let mut late = late.filter(|event| event.deed.kind == Kind::Resize);
    let begun = late.find(|event| event.deed.phase == Phase::Invoke)?;
    let until = begun.t_ns + WITHIN.as_nanos() as u64;
    let done = late.any(|event| event.deed.phase == Phase::Ok && event.t_ns <= until);
    let what = || {
        let at = seconds(begun.t_ns);
        format!("the resize that a mover took up at {at} was not over within {WITHIN:?}")
    };
    (!done).then(|| Violation::new(Rule::Liveness, "", what(), [begun]))
}

/// Whether a set is waited for without end.
fn is_endless(deed: &Deed) -> bool {
    deed.set.is_some() && deed.wait_ms.is_none()
}

/// An operation that took longer than allowed, including stops of its process; or that has been
/// running that long.
fn without_an_end(history: &History) -> Vec<Violation> {
    let asked = |event: &&Event| matches!(event.deed.kind, Kind::Acquire | Kind::Release);
    let (mut open, mut ended): (HashMap<(u32, u64), &Event>, Vec<_>) = Default::default();
    for event in history.events.iter().filter(asked) {
        let id = (event.process, event.deed.op);
        if event.deed.phase == Phase::Invoke {
            open.insert(id, event);
        } else if let Some(begun) = open.remove(&id) {
            ended.push((begun, event.t_ns));
        }
    }
    let healed_ns = healed(history).map(|event| event.t_ns);
    let now = history.events.last().map_or(0, |event| event.t_ns);
    let still_open = open.into_values().map(|begun| (begun, now));
    let long = ended
        .into_iter()
        .chain(still_open)
        .filter(|(begun, until)| {
            let from_ns = match begun.deed.kind == Kind::Acquire && is_endless(&begun.deed) {
                true => healed_ns.map_or(u64::MAX, |healed_ns| healed_ns.max(begun.t_ns)),
                false => begun.t_ns,
            };
            u128::from(until.saturating_sub(from_ns)) > WITHIN.as_nanos()
        });
    let violation = |(begun, until): (&Event, u64)| {
        let key = begun.deed.key.as_deref().unwrap_or_default();
        let (from, until) = (seconds(begun.t_ns), seconds(until));
        let process = begun.process;
        let what = format!("process {process} asked at {from} and had no answer by {until}");
        Violation::new(Rule::Liveness, key, what, [begun])
    };
    long.map(violation).collect()
}
