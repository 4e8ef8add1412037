//! After everything was put right, every key that was ever asked for is granted again, soon.

use std::{collections::BTreeSet, time::Duration};

use super::{Grants, Rule, Violation, violation::seconds};
use crate::history::{Fault, History, Kind, Phase};

/// Two leases (a ghost, or a dead holder, and a grace), the longest pauses between attempts, and
/// what a busy machine may take for all that.
pub const WITHIN: Duration = Duration::from_secs(20);

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let healed = history
        .events
        .iter()
        .find(|event| event.deed.fault == Some(Fault::Heal) && event.deed.phase == Phase::Ok);
    let Some(healed) = healed else {
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
