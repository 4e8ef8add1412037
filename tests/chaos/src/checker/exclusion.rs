//! No two grants of one key are certainly believed in at the same time.

use super::{Grant, Grants, Rule, Violation, violation::seconds};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

/// The grants are in the order of their beginnings, so it is enough to remember the latest end.
fn of_one(grants: &[Grant<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut longest: Option<&Grant<'_>> = None;
    for grant in grants.iter().filter(|grant| !grant.certain().is_empty()) {
        let Some(before) = longest else {
            longest = Some(grant);
            continue;
        };
        if grant.told_ns() < before.certain().end {
            violations.push(overlap(before, grant));
        }
        if grant.certain().end > before.certain().end {
            longest = Some(grant);
        }
    }
    violations
}

fn overlap(first: &Grant<'_>, second: &Grant<'_>) -> Violation {
    let what = format!(
        "process {} was granted it with token {} at {}, while process {} still believed in its grant \
         with token {}: until {}",
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
