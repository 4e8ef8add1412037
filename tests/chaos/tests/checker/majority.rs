//! A lock with three replicas, granted and renewed, and each thing that is wrong with it.

use std::collections::BTreeSet;

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    history::{Deed, Event, History, Kind, Phase, Token},
};

use super::mutations::{BELIEVED, MS};

const LEASE_MS: u64 = 3500;

/// A replica's record: its rank, its nonce, its token, and when its request left.
type Record = (u64, &'static str, u64, u64);

/// A lock that was granted with token 7 by a request sent at 0 ms, and renewed by one sent at 1000 ms, on these
/// records.
fn rules(granted: &[Record], renewed: &[Record]) -> BTreeSet<Rule> {
    let mut events = Vec::new();
    let mut push = |at_ms: u64, deed: Deed| {
        events.push(Event {
            run: "run".into(),
            seed: 0,
            process: 1,
            t_ns: at_ms * MS,
            deed: Deed {
                op: 1,
                key: Some("ledger/0".into()),
                nonce: Some("of".into()),
                ..deed
            },
        });
    };
    let acquire = Deed {
        lease_ms: Some(LEASE_MS),
        ..Deed::invoke(1, Kind::Acquire)
    };
    push(0, acquire.clone());
    let token = |ctr| Some(Token { te: 1, ctr });
    let told = |sent_ms: u64, deed: Deed| Deed {
        phase: Phase::Ok,
        token: token(7),
        sent_ns: Some(sent_ms * MS),
        deadline_ns: Some(sent_ms * MS + BELIEVED),
        ..deed
    };
    for (at_ms, kind, records) in [(0, Kind::Grant, granted), (1000, Kind::Renew, renewed)] {
        for (rank, nonce, ctr, sent_ms) in records {
            let deed = Deed {
                token: token(*ctr),
                replica: Some((*rank, (*nonce).into())),
                ..told(*sent_ms, Deed::ended(1, Kind::Replica, Phase::Ok))
            };
            push(at_ms + 1, deed);
        }
        push(at_ms + 2, told(at_ms, Deed::ended(1, kind, Phase::Ok)));
        if kind == Kind::Grant {
            push(3, told(0, acquire.clone()));
        }
    }
    let violations = check(&History::new(events), &Counts::default());
    violations.iter().map(|violation| violation.rule).collect()
}

const GRANTED: [Record; 3] = [(0, "a", 7, 0), (1, "b", 5, 0), (2, "c", 9, 0)];
const RENEWED: [Record; 2] = [(0, "a", 7, 1000), (2, "c", 9, 1000)];

#[test]
fn a_majority_that_granted_and_renewed_passes() {
    assert_eq!(rules(&GRANTED, &RENEWED), BTreeSet::new());
}

#[test]
fn a_grant_without_a_majority_is_found() {
    for (granted, renewed) in [
        // One replica, or one twice.
        (&GRANTED[..1], &RENEWED[..]),
        (&[(0, "a", 7, 0), (0, "a", 7, 0)], &RENEWED),
        // A majority, and one with that token.
        (&[(0, "a", 7, 0), (1, "b", 5, 0)], &RENEWED),
        // One of the replicas was renewed, or two, of which one earlier.
        (&GRANTED, &RENEWED[..1]),
        (&GRANTED, &[(0, "a", 7, 1000), (2, "c", 9, 900)]),
    ] {
        let found = rules(granted, renewed);
        assert_eq!(
            found,
            BTreeSet::from([Rule::Majority]),
            "{granted:?}, {renewed:?}"
        );
    }
}
