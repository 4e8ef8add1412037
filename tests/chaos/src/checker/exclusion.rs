//! The grants of one key that are certainly believed in at the same time leave each of them within the capacity that its
//! request said: a mutex has one holder, a writer is alone, and a semaphore has no more holders than permits.

use super::{Grant, Grants, Rule, Violation, violation::seconds};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

/// The grants are in the order of their beginnings; shares become more only then.
fn of_one(grants: &[Grant<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut holders: Vec<&Grant<'_>> = Vec::new();
    for grant in grants.iter().filter(|grant| !grant.certain().is_empty()) {
        let now = grant.told_ns();
        holders.retain(|holder| now < holder.certain().end);
        holders.push(grant);
        violations.extend(too_many(&holders, now));
    }
    violations
}

/// Whether the `holders` at `now`, of whom the last has just been told, have more than one of them left room for: tokens
/// tell in which order they were granted.
fn too_many(holders: &[&Grant<'_>], now: u64) -> Option<Violation> {
    let taken_by = |last: &Grant<'_>| {
        let until = holders.iter().filter(|holder| holder.token <= last.token);
        until
            .map(|holder| u64::from(holder.share_at(now).count))
            .sum::<u64>()
    };
    let is_beyond = |holder: &&Grant<'_>| taken_by(holder) > u64::from(holder.share_at(now).of);
    let beyond = holders.iter().copied().find(is_beyond)?;
    let (last, others) = holders.split_last()?;
    let longest = others
        .iter()
        .copied()
        .max_by_key(|other| other.certain().end)?;
    Some(overlap(
        longest,
        last,
        taken_by(beyond),
        beyond.share_at(now).of,
    ))
}

fn overlap(first: &Grant<'_>, second: &Grant<'_>, taken: u64, of: u32) -> Violation {
    let what = format!(
        "process {} was granted it with token {} at {}, while process {} still believed in its grant \
         with token {}: until {}; {taken} of {of} shares are taken",
        second.acquired.process,
        second.token,
        seconds(second.told_ns()),
        first.acquired.process,
        first.token,
        seconds(first.certain().end),
    );
    let last_renewal = first.renewals.last().copied();
    let events = [first.acquired]
        .into_iter()
        .chain(last_renewal)
        .chain([second.acquired]);
    Violation::new(Rule::Exclusion, first.key, what, events)
}
