//! No client believes for longer than the answered request allows, nor from before it was asked.

use super::{Grant, Grants, Rule, Violation, violation::seconds};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants.all().flat_map(of_one).collect()
}

fn of_one(grant: &Grant<'_>) -> Vec<Violation> {
    let too_late = grant.deadlines().filter_map(|(event, allowed)| {
        let logged = event.deed.deadline_ns.filter(|logged| *logged > allowed)?;
        let what = format!(
            "process {} believes until {}, and may only until {}",
            event.process,
            seconds(logged),
            seconds(allowed)
        );
        Some(Violation::new(Rule::Deadline, grant.key, what, [event]))
    });
    let mut violations: Vec<_> = too_late.collect();
    if !(grant.asked_ns..=grant.told_ns()).contains(&grant.sent_ns()) {
        let what = format!(
            "process {} counts from {}, but asked at {} and was told at {}",
            grant.acquired.process,
            seconds(grant.sent_ns()),
            seconds(grant.asked_ns),
            seconds(grant.told_ns())
        );
        violations.push(Violation::new(
            Rule::Deadline,
            grant.key,
            what,
            [grant.acquired],
        ));
    }
    violations
}
