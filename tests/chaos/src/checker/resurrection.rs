//! No renewal succeeds that was sent after the release was answered, or after a grant to a later
//! acquisition that excludes it was told. No renewal is answered after the release was: then the release overtook
//! it, and the renewal may have put the record back. A holder from whom the lock was taken by force puts its record back only if
//! a shard lost its memory since.

use super::{
    Grant, Grants, Rule, Violation,
    windows::{self, Window},
};
use crate::history::{Event, History, Phase};

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut ends = windows::of(history);
    ends.retain(|window| window.fault.ends_a_life());
    let of_keys = grants.of_key.values();
    of_keys.flat_map(|of_key| of_one(of_key, &ends)).collect()
}

fn of_one(of_key: &[Grant<'_>], ends: &[Window<'_>]) -> Vec<Violation> {
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
        let renewed = renewed.filter(|renewal| !may_put_back(grant, renewal, ends));
        let wrong = renewed.filter_map(|renewal| of_renewal(grant, renewal, &later));
        violations.extend(wrong);
    }
    violations
}

/// Whether the lock was taken by force, and a shard lost its memory before the holder knew.
fn may_put_back(grant: &Grant<'_>, renewal: &Event, ends: &[Window<'_>]) -> bool {
    let since = grant.forced_ns.filter(|forced| *forced <= renewal.t_ns);
    let ended =
        |since| move |end: &Window<'_>| since <= end.time.end && end.time.start <= renewal.t_ns;
    since.is_some_and(|since| ends.iter().any(ended(since)))
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
