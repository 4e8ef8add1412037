//! No renewal succeeds that was sent after the release was answered, or after a grant to a later
//! acquisition that excludes it was told. No renewal is answered after the release was: then the release overtook
//! it, and the renewal may have put the record back.

use super::{Grant, Grants, Rule, Violation};
use crate::history::{Event, Phase};

pub(super) fn check(grants: &Grants<'_>) -> Vec<Violation> {
    grants
        .of_key
        .values()
        .flat_map(|of_key| of_one(of_key))
        .collect()
}

fn of_one(of_key: &[Grant<'_>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, grant) in of_key.iter().enumerate() {
        let later = of_key[index + 1..].iter();
        let later: Vec<_> = later
            .filter(|later| later.token > grant.token && later.nonce != grant.nonce)
            .collect();
        let renewed = grant
            .renewals
            .iter()
            .filter(|event| event.deed.phase == Phase::Ok);
        let wrong = renewed.filter_map(|renewal| of_renewal(grant, renewal, &later));
        violations.extend(wrong);
    }
    violations
}

fn of_renewal(grant: &Grant<'_>, renewal: &Event, later: &[&Grant<'_>]) -> Option<Violation> {
    let sent = renewal.deed.sent_ns?;
    let released = grant
        .released()
        .filter(|released| renewal.t_ns > released.t_ns);
    let share = grant.share_at(sent);
    let excluded = |later: &&&Grant<'_>| later.acquired.deed.share.excludes(share);
    let mut told = later.iter().take_while(|later| later.told_ns() < sent);
    let next = told.find(excluded);
    let (because, other) = match (released, next) {
        (Some(released), _) if sent > released.t_ns => ("sent after it was released", released),
        (Some(released), _) => ("overtaken by its release", released),
        (None, Some(next)) => ("sent after a later grant", next.acquired),
        (None, None) => return None,
    };
    let (process, token) = (renewal.process, grant.token);
    let what = format!("token {token} was renewed for process {process}: {because}");
    Some(Violation::new(
        Rule::Resurrection,
        grant.key,
        what,
        [grant.acquired, other, renewal],
    ))
}
