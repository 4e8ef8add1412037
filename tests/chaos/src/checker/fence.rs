//! In the resource's own order: among shares that exclude each other accepted tokens never fall, each was granted, and
//! every refused token was smaller than one accepted before.

use std::collections::{BTreeMap, HashSet};

use super::{Grants, Rule, Violation};
use crate::history::{Answer, Event, History, Kind, Share, Token};

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let mut of_key: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in &history.events {
        if let (Kind::Apply, Some(key)) = (event.deed.kind, &event.deed.key) {
            of_key.entry(key).or_default().push(event);
        }
    }
    let violations = of_key.into_iter().flat_map(|(key, mut applied)| {
        applied.sort_by_key(|event| event.deed.serial);
        let of_key = grants.of_key.get(key).into_iter().flatten();
        of_one(key, &applied, &of_key.map(|grant| grant.token).collect())
    });
    violations.collect()
}

fn of_one(key: &str, applied: &[&Event], granted: &HashSet<Token>) -> Vec<Violation> {
    let mut greatest: BTreeMap<Share, &Event> = BTreeMap::new();
    let mut violations = Vec::new();
    for event in applied {
        let share = event.deed.share;
        let mut excluded = greatest
            .values()
            .filter(|before| before.deed.share.excludes(share));
        let greater = excluded
            .find(|before| before.deed.token > event.deed.token)
            .copied();
        let accepted = event.deed.answer == Some(Answer::Accepted);
        let known = event
            .deed
            .token
            .is_some_and(|token| granted.contains(&token));
        let wrong = match (accepted, greater) {
            (true, Some(_)) => Some("accepted after a greater one"),
            (true, None) if !known => Some("accepted, and granted to nobody"),
            (false, None) => Some("refused, and no greater one had been accepted"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            let token = event
                .deed
                .token
                .map_or("none".into(), |token| token.to_string());
            let events = greater.into_iter().chain([*event]);
            let what = format!("token {token} was {wrong}");
            violations.push(Violation::new(Rule::Fence, key, what, events));
        }
        if accepted && greater.is_none() {
            let alike = greatest.entry(share).or_insert(event);
            if alike.deed.token < event.deed.token {
                *alike = event;
            }
        }
    }
    violations
}
