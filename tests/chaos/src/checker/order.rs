//! A grant that was asked for after another was told has the greater token. (Equal ones are for
//! [`super::uniqueness`].)

use super::{Grant, Grants, Rule, Violation};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

/// Goes through the grants in the order in which they were sent for, and keeps the greatest token
/// of those told by then.
fn of_one(told: &[Grant<'_>]) -> Vec<Violation> {
    let mut sent: Vec<&Grant<'_>> = told.iter().collect();
    sent.sort_by_key(|grant| grant.sent_ns());
    let mut told = told.iter().peekable();
    let mut greatest: Option<&Grant<'_>> = None;
    let mut violations = Vec::new();
    for grant in sent {
        while let Some(earlier) = told.next_if(|earlier| earlier.told_ns() < grant.sent_ns()) {
            greatest = greatest
                .into_iter()
                .chain([earlier])
                .max_by_key(|grant| grant.token);
        }
        if let Some(before) = greatest.filter(|before| before.token > grant.token) {
            let what = format!(
                "process {} was granted it with token {}, after process {} had been granted it with {}",
                grant.acquired.process, grant.token, before.acquired.process, before.token
            );
            let events = [before.acquired, grant.acquired];
            violations.push(Violation::new(Rule::Order, grant.key, what, events));
        }
    }
    violations
}
