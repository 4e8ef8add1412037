//! Semaphores and read-write locks: what is right, and each thing that is wrong.

use std::collections::BTreeSet;

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    history::{Answer, Deed, Event, History, Kind, Phase, Share, Token},
};

use super::mutations::{BELIEVED, MS};

const READER: Share = Share {
    count: 1,
    of: 1 << 30,
};
const WRITER: Share = Share {
    count: 1 << 30,
    of: 1 << 30,
};

/// A grant, told at `from_ms` with `token`, and given back at `until_ms`. Its request left 10 ms before it was told.
#[derive(Clone, Copy)]
struct Taken {
    share: Share,
    token: u64,
    from_ms: u64,
    until_ms: u64,
}

fn taken(share: Share, token: u64, from_ms: u64, until_ms: u64) -> Taken {
    Taken {
        share,
        token,
        from_ms,
        until_ms,
    }
}

fn permits(count: u32, of: u32, token: u64, from_ms: u64, until_ms: u64) -> Taken {
    taken(Share { count, of }, token, from_ms, until_ms)
}

fn token(ctr: u64) -> Option<Token> {
    Some(Token { te: 1, ctr })
}

/// What the grant with `token` is, in every deed.
fn of_grant(ctr: u64, share: Share) -> Deed {
    Deed {
        key: Some("table/0".into()),
        nonce: Some(format!("nonce {ctr}")),
        token: token(ctr),
        share,
        ..Deed::default()
    }
}

/// The rules that these grants break, and these deeds, each at its time and by the process of the grant.
fn rules(grants: &[Taken], deeds: &[(u64, Deed)]) -> BTreeSet<Rule> {
    let mut events = Vec::new();
    let mut op = 0;
    let mut push = |process: u64, at_ms: u64, deed: Deed| {
        events.push(Event {
            run: "run".into(),
            seed: 0,
            process: process as u32,
            t_ns: at_ms * MS,
            deed,
        });
    };
    for grant in grants {
        op += 2;
        let sent_ns = (grant.from_ms - 10) * MS;
        let of_grant = of_grant(grant.token, grant.share);
        let asked = Deed {
            share: grant.share,
            key: of_grant.key.clone(),
            ..Deed::invoke(op, Kind::Acquire)
        };
        push(grant.token, grant.from_ms - 10, asked);
        let granted = Deed {
            op,
            kind: Kind::Grant,
            phase: Phase::Ok,
            sent_ns: Some(sent_ns),
            deadline_ns: Some(sent_ns + BELIEVED),
            ..of_grant.clone()
        };
        push(grant.token, grant.from_ms, granted.clone());
        let acquired = Deed {
            kind: Kind::Acquire,
            lease_ms: Some(3500),
            ..granted
        };
        push(grant.token, grant.from_ms, acquired);
        let release = Deed {
            op: op + 1,
            kind: Kind::Release,
            ..of_grant
        };
        push(grant.token, grant.until_ms, release.clone());
        let released = Deed {
            phase: Phase::Ok,
            answer: Some(Answer::Released),
            ..release
        };
        push(grant.token, grant.until_ms + 1, released);
    }
    for (at_ms, deed) in deeds {
        push(
            deed.token.map_or(1, |token| token.ctr),
            *at_ms,
            deed.clone(),
        );
    }
    let violations = check(&History::new(events), &Counts::default());
    for violation in &violations {
        println!("{violation}");
    }
    violations.iter().map(|violation| violation.rule).collect()
}

fn passes(grants: &[Taken], deeds: &[(u64, Deed)]) {
    assert_eq!(rules(grants, deeds), BTreeSet::new());
}

fn breaks(rule: Rule, grants: &[Taken], deeds: &[(u64, Deed)]) {
    assert_eq!(rules(grants, deeds), BTreeSet::from([rule]));
}

fn downgraded(ctr: u64) -> Deed {
    Deed {
        kind: Kind::Downgrade,
        phase: Phase::Ok,
        ..of_grant(ctr, WRITER)
    }
}

fn renewed(ctr: u64, share: Share, sent_ms: u64) -> Deed {
    Deed {
        kind: Kind::Renew,
        phase: Phase::Ok,
        answer: Some(Answer::Renewed),
        sent_ns: Some(sent_ms * MS),
        ..of_grant(ctr, share)
    }
}

/// The resource's answer, the `serial`th.
fn applied(ctr: u64, share: Share, serial: u64, answer: Answer) -> Deed {
    Deed {
        kind: Kind::Apply,
        phase: Phase::Ok,
        answer: Some(answer),
        serial: Some(serial),
        ..of_grant(ctr, share)
    }
}

/// What a ticket for the grant with `token` is told.
fn queued(ctr: u64, share: Share, kind: Kind, sent_ms: u64) -> Deed {
    Deed {
        kind,
        phase: Phase::Ok,
        token: None,
        lease_ms: Some(3500),
        sent_ns: Some(sent_ms * MS),
        ..of_grant(ctr, share)
    }
}

#[test]
fn permits_that_there_are_pass() {
    passes(
        &[
            permits(2, 3, 1, 100, 900),
            permits(1, 3, 2, 200, 500),
            permits(1, 3, 3, 600, 900),
            permits(3, 3, 4, 1000, 1100),
        ],
        &[],
    );
}

#[test]
fn a_permit_too_many_is_found() {
    let holders = [permits(2, 3, 1, 100, 900), permits(1, 3, 2, 200, 900)];
    let [first, second] = holders;
    let third = permits(1, 3, 3, 300, 400);
    breaks(Rule::Exclusion, &[first, second, third], &[]);
}

#[test]
fn a_smaller_capacity_holds_for_those_that_ask_with_it() {
    let held = permits(2, 3, 1, 100, 900);
    passes(&[held, permits(1, 3, 2, 200, 900)], &[]);
    breaks(Rule::Exclusion, &[held, permits(1, 2, 2, 200, 900)], &[]);
    // The one with the smaller capacity came first.
    passes(
        &[permits(2, 2, 1, 100, 900), permits(1, 3, 2, 200, 900)],
        &[],
    );
}

#[test]
fn a_writer_beside_a_reader_is_found() {
    let readers = [taken(READER, 1, 100, 900), taken(READER, 2, 200, 800)];
    passes(&readers, &[]);
    let [first, second] = readers;
    passes(&[first, second, taken(WRITER, 3, 950, 990)], &[]);
    let rule = Rule::Exclusion;
    breaks(rule, &[first, second, taken(WRITER, 3, 850, 990)], &[]);
    breaks(
        rule,
        &[taken(WRITER, 1, 100, 900), taken(READER, 2, 200, 300)],
        &[],
    );
}

#[test]
fn readers_may_come_once_a_writer_is_one_of_them() {
    let grants = [taken(WRITER, 1, 100, 900), taken(READER, 2, 300, 800)];
    let renewal = renewed(1, READER, 400);
    passes(&grants, &[(200, downgraded(1)), (410, renewal.clone())]);
    breaks(
        Rule::Exclusion,
        &grants,
        &[(350, downgraded(1)), (410, renewal)],
    );
}

/// Also if the next one left, and was told nothing of its grant.
#[test]
fn a_write_lock_that_is_handed_on_is_renewed_after_its_first_holder() {
    let grants = [taken(WRITER, 1, 100, 900)];
    let renewal = (910, renewed(1, WRITER, 890));
    let handed = Deed {
        kind: Kind::Grant,
        phase: Phase::Ok,
        token: token(2),
        handed: true,
        ..of_grant(1, WRITER)
    };
    passes(&grants, &[(900, handed), renewal.clone()]);
    breaks(Rule::Resurrection, &grants, &[renewal]);
}

#[test]
fn a_writer_with_a_smaller_token_than_an_earlier_reader_is_found() {
    let reader = taken(READER, 5, 100, 200);
    breaks(Rule::Order, &[reader, taken(WRITER, 4, 300, 400)], &[]);
    // Readers do not exclude each other.
    passes(&[reader, taken(READER, 4, 300, 400)], &[]);
}

#[test]
fn a_share_that_is_renewed_under_one_that_excludes_it_is_found() {
    let grants = [permits(2, 3, 1, 100, 5000), permits(2, 3, 2, 4000, 4500)];
    let renewal = |sent_ms| (sent_ms + 10, renewed(1, grants[0].share, sent_ms));
    passes(&grants, &[]);
    breaks(Rule::Resurrection, &grants, &[renewal(4100)]);
    let beside = [grants[0], permits(1, 3, 2, 3900, 4500)];
    passes(&beside, &[renewal(3000), renewal(4100)]);
}

#[test]
fn a_resource_that_confuses_who_excludes_whom_is_found() {
    let grants = [
        taken(READER, 1, 100, 200),
        taken(READER, 2, 110, 200),
        taken(WRITER, 3, 300, 400),
    ];
    let [accepted, rejected] = [Answer::Accepted, Answer::Rejected];
    let writer = (350, applied(3, WRITER, 10, accepted));
    let late = |answer| (360, applied(1, READER, 11, answer));
    passes(&grants, &[writer.clone(), late(rejected)]);
    breaks(Rule::Fence, &grants, &[writer, late(accepted)]);
    let reader = (150, applied(2, READER, 9, accepted));
    passes(&grants, &[reader.clone(), late(accepted)]);
    breaks(Rule::Fence, &grants, &[reader, late(rejected)]);
}

/// One holder has two permits of three, and a waiter wants two; a newcomer for one is granted it with `newcomer`'s token.
fn newcomer(newcomer: u64, waiter: u64) -> BTreeSet<Rule> {
    let two = Share { count: 2, of: 3 };
    let grants = [
        permits(2, 3, 1, 100, 1000),
        permits(1, 3, newcomer, 500, 900),
        permits(2, 3, waiter, 1010, 1100),
    ];
    let deeds = [
        (200, queued(waiter, two, Kind::Ask, 200)),
        (210, queued(waiter, two, Kind::Queue, 200)),
        (
            400,
            queued(newcomer, Share { count: 1, of: 3 }, Kind::Ask, 400),
        ),
    ];
    rules(&grants, &deeds)
}

#[test]
fn a_share_that_goes_before_a_waiter_is_found() {
    assert_eq!(newcomer(2, 3), BTreeSet::from([Rule::Queue]));
}

#[test]
fn a_share_may_be_known_before_one_that_was_granted_first() {
    assert_eq!(newcomer(3, 2), BTreeSet::new());
}

#[test]
fn a_share_that_goes_before_a_waiter_that_is_never_granted_is_found() {
    let (one, two) = (Share { count: 1, of: 3 }, Share { count: 2, of: 3 });
    let grants = [permits(2, 3, 1, 100, 1000), permits(1, 3, 2, 500, 900)];
    let mut deeds = vec![
        (200, queued(3, two, Kind::Ask, 200)),
        (210, queued(3, two, Kind::Queue, 200)),
        (400, queued(2, one, Kind::Ask, 400)),
    ];
    passes(&grants, &deeds);
    deeds.push((600, queued(3, two, Kind::Ask, 600)));
    deeds.push((610, queued(3, two, Kind::Queue, 600)));
    breaks(Rule::Queue, &grants, &deeds);
}

#[test]
fn only_a_preferred_share_goes_before_a_waiter_and_only_before_one_that_is_not() {
    let grants = [
        taken(READER, 1, 100, 1000),
        taken(READER, 2, 500, 900),
        taken(WRITER, 3, 1010, 1100),
    ];
    let with = |newcomer, waiter| {
        let ask = |number, share, at_ms, preferred| {
            let deed = Deed {
                preferred,
                ..queued(number, share, Kind::Ask, at_ms)
            };
            (at_ms, deed)
        };
        let deeds = [
            ask(3, WRITER, 200, waiter),
            (210, queued(3, WRITER, Kind::Queue, 200)),
            ask(2, READER, 400, newcomer),
        ];
        rules(&grants, &deeds)
    };
    assert_eq!(with(true, false), BTreeSet::new());
    for (newcomer, waiter) in [(false, false), (false, true), (true, true)] {
        assert_eq!(with(newcomer, waiter), BTreeSet::from([Rule::Queue]));
    }
}
