//! A grant that was made after another was told, or believed in after another was, has the greater
//! token, if it excludes the other. (Equal tokens are checked by [`super::uniqueness`].)

use std::collections::BTreeMap;

use super::{Grant, Grants, Rule, Violation};
use crate::history::Share;

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

fn of_one(of_key: &[Grant<'_>]) -> Vec<Violation> {
    let believed = of_key.iter().filter(|grant| !grant.certain().is_empty());
    let by_belief = fallen(
        believed.collect(),
        |grant| grant.certain().end,
        |grant| grant.told_ns(),
    );
    let told = |grant: &Grant<'_>| grant.told_ns() + 1;
    // A process may hand on what was taken from it by force, until its next renewal.
    let made = of_key.iter().filter(|grant| !grant.is_handed_after_force());
    let mut violations = fallen(made.collect(), told, |grant| grant.made_since_ns());
    violations.extend(by_belief);
    violations
}

/// Goes through `grants` in the order in which they `begin`, and tracks the greatest token of those
/// that `end` by then, for each share.
fn fallen(
    grants: Vec<&Grant<'_>>,
    end: impl Fn(&Grant<'_>) -> u64,
    begin: impl Fn(&Grant<'_>) -> u64,
) -> Vec<Violation> {
    let (mut earlier, mut later) = (grants.clone(), grants);
    earlier.sort_by_key(|grant| end(grant));
    later.sort_by_key(|grant| begin(grant));
    let mut earlier = earlier.into_iter().peekable();
    let mut greatest: BTreeMap<Share, &Grant<'_>> = BTreeMap::new();
    let mut violations = Vec::new();
    for grant in later {
        while let Some(before) = earlier.next_if(|before| end(before) <= begin(grant)) {
            let alike = greatest.entry(share(before)).or_insert(before);
            if alike.token < before.token {
                *alike = before;
            }
        }
        let excluded = greatest
            .values()
            .filter(|before| share(before).excludes(share(grant)));
        if let Some(before) = excluded.max_by_key(|before| before.token)
            && before.token > grant.token
        {
            violations.push(violation(before, grant));
        }
    }
    violations
}

fn share(grant: &Grant<'_>) -> Share {
    grant.acquired.deed.share
}

fn violation(before: &Grant<'_>, grant: &Grant<'_>) -> Violation {
    let what = format!(
        "process {} was granted it with token {}, after process {} had been granted it with {}",
        grant.acquired.process, grant.token, before.acquired.process, before.token
    );
    let events = [before.acquired, grant.acquired];
    Violation::new(Rule::Order, grant.key, what, events)
}
