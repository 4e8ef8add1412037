//! A writer may believe in its lock when it begins to write.

use super::{Grants, Rule, Violation, violation::seconds};
use crate::history::{Event, History, Kind, Phase};

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let writes = history
        .events
        .iter()
        .filter(|event| event.deed.kind == Kind::Write && event.deed.phase == Phase::Invoke);
    writes.filter_map(|write| of_one(write, grants)).collect()
}

fn of_one(write: &Event, grants: &Grants<'_>) -> Option<Violation> {
    let key = write.deed.key.as_deref().unwrap_or_default();
    let nonce = write.deed.nonce.as_deref().unwrap_or_default();
    let (process, at) = (write.process, seconds(write.t_ns));
    let mut of_nonce = grants.of_nonce(nonce);
    let Some(grant) = of_nonce.find(|grant| Some(grant.token) == write.deed.token) else {
        let what = format!("process {process} began to write at {at} without any grant");
        return Some(Violation::new(Rule::Belief, key, what, [write]));
    };
    let possible = grant.possible();
    (!possible.contains(&write.t_ns)).then(|| {
        let (from, until) = (seconds(possible.start), seconds(possible.end));
        let what = format!(
            "process {process} began to write at {at}; it held the lock from {from} until {until}"
        );
        Violation::new(Rule::Belief, key, what, [grant.acquired, write])
    })
}
