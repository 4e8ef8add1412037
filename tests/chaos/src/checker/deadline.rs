//! No client believes for longer than the answered request allows, counts from a request that it
//! did not send, or hands on a lock that it no longer believes in.

use super::{Grant, Grants, Rule, Violation, violation::seconds};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants.all().flat_map(of_one).collect()
}

fn of_one(grant: &Grant<'_>) -> Vec<Violation> {
    let ends = grant.ends_ns().unwrap_or(u64::MAX);
    let too_late = grant.deadlines().filter_map(|(event, allowed)| {
        let allowed = allowed.min(ends);
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
    let of_grant = |what| Violation::new(Rule::Deadline, grant.key, what, [grant.acquired]);
    let process = grant.acquired.process;
    let renewals = grant.renewals.iter();
    let mut renewed = renewals.filter_map(|event| event.deed.sent_ns);
    if let Some(sent) = renewed.find(|sent| ends < *sent) {
        let (sent, ends) = (seconds(sent), seconds(ends));
        let what = format!("process {process} renewed at {sent} a hold that ended at {ends}");
        violations.push(of_grant(what));
    }
    if !grant.is_founded {
        let what = format!(
            "process {process} counts from {}, when nothing left that it can have been granted by: \
             it asked at {} and was told at {}",
            seconds(grant.sent_ns()),
            seconds(grant.asked_ns),
            seconds(grant.told_ns())
        );
        violations.push(of_grant(what));
    }
    if grant.acquired.deed.handed && grant.judged_ns() >= grant.first_deadline_ns() {
        let what = format!(
            "process {process} handed it on at {}, and might believe until {}",
            seconds(grant.judged_ns()),
            seconds(grant.first_deadline_ns())
        );
        violations.push(of_grant(what));
    }
    violations
}
