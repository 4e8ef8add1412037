//! Sets of locks and elections: what is right, and each thing that is wrong.

use std::collections::BTreeSet;

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    history::{Answer, Deed, Event, History, Kind, Phase, Token},
};

use super::mutations::MS;

const ELECTION: &str = "election/0";
const IN_SETS: &str = "set/0";

/// A deed of a process, and when it happened.
type Done = (u32, u64, Deed);

/// `process` asks for `key` at `sent_ms`, and is told at `told_ms` that it is granted.
fn taken(process: u32, key: &str, set: Option<u64>, sent_ms: u64, told_ms: u64) -> [Done; 2] {
    let asked = Deed {
        key: Some(key.into()),
        set,
        ..Deed::invoke(1, Kind::Acquire)
    };
    let granted = Deed {
        phase: Phase::Ok,
        lease_ms: Some(3500),
        sent_ns: Some(sent_ms * MS),
        ..of_grant(process, Kind::Acquire, asked.clone())
    };
    [(process, sent_ms, asked), (process, told_ms, granted)]
}

/// A deed of the only grant of `process`, whose token is its number.
fn of_grant(process: u32, kind: Kind, like: Deed) -> Deed {
    Deed {
        kind,
        nonce: Some(format!("nonce {process}")),
        token: Some(Token {
            te: 1,
            ctr: process.into(),
        }),
        ..like
    }
}

fn of_key(key: &str, process: u32, kind: Kind, phase: Phase) -> Deed {
    let like = Deed {
        key: Some(key.into()),
        ..Deed::ended(2, kind, phase)
    };
    of_grant(process, kind, like)
}

/// A renewal that left at `sent_ms`, answered 10 ms later.
fn renewed(key: &str, process: u32, sent_ms: u64) -> Done {
    let renewal = Deed {
        sent_ns: Some(sent_ms * MS),
        answer: Some(Answer::Renewed),
        ..of_key(key, process, Kind::Renew, Phase::Ok)
    };
    (process, sent_ms + 10, renewal)
}

fn noticed(process: u32, at_ms: u64, answer: Answer) -> Done {
    let notice = Deed {
        answer: Some(answer),
        ..of_key(ELECTION, process, Kind::GuardState, Phase::Ok)
    };
    (process, at_ms, notice)
}

fn rules(done: impl IntoIterator<Item = Done>) -> BTreeSet<Rule> {
    let event = |(process, at_ms, deed)| Event {
        run: "run".into(),
        seed: 0,
        process,
        t_ns: at_ms * MS,
        deed,
    };
    let history = History::new(done.into_iter().map(event).collect());
    let violations = check(&history, &Counts::default());
    violations.iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_set_is_granted_while_all_of_it_is_held() {
    let told_at = |told_ms| rules(taken(1, IN_SETS, Some(7), 1000, told_ms));
    assert_eq!(told_at(4400), BTreeSet::new());
    assert_eq!(told_at(5000), BTreeSet::from([Rule::Whole]));
    // A lock by itself that was told late is nobody's.
    let alone = rules(taken(1, IN_SETS, None, 1000, 5000));
    assert_eq!(alone, BTreeSet::new());
}

#[test]
fn each_lock_of_a_set_and_an_election_obey_the_rules_of_a_lock() {
    for (key, set) in [(IN_SETS, Some(7)), (ELECTION, None)] {
        let both = |first: [Done; 2], second: [Done; 2]| rules(first.into_iter().chain(second));
        let at_once = both(
            taken(1, key, set, 1000, 1010),
            taken(2, key, set, 2000, 2010),
        );
        assert!(at_once.contains(&Rule::Exclusion), "{key}: {at_once:?}");
        // A token is the number of its process.
        let falling = both(
            taken(2, key, set, 1000, 1010),
            taken(1, key, set, 6000, 6010),
        );
        assert!(falling.contains(&Rule::Order), "{key}: {falling:?}");
    }
}

#[test]
fn a_set_that_is_refused_leaves_no_lock_that_is_renewed() {
    let [asked, _] = taken(1, IN_SETS, Some(7), 1000, 1100);
    let refused = Deed {
        phase: Phase::Fail,
        ..asked.2.clone()
    };
    let ended = [asked.clone(), (1, 1100, refused)];
    let sent_at = |sent_ms| {
        rules(
            ended
                .clone()
                .into_iter()
                .chain([renewed(IN_SETS, 1, sent_ms)]),
        )
    };
    assert_eq!(sent_at(1050), BTreeSet::new());
    assert_eq!(sent_at(2000), BTreeSet::from([Rule::Leftover]));
    // Another task of the process asks for the key.
    let again = Deed {
        op: 3,
        ..asked.2.clone()
    };
    let wanted = [(1, 1500, again), renewed(IN_SETS, 1, 2000)];
    assert_eq!(rules(ended.into_iter().chain(wanted)), BTreeSet::new());
}

#[test]
fn a_leader_is_told_before_another_leads() {
    let leads = |notices: &[Done]| {
        let first = taken(1, ELECTION, None, 1000, 1010);
        let next = taken(2, ELECTION, None, 5500, 5510);
        let all = first.into_iter().chain([renewed(ELECTION, 1, 2000)]);
        rules(all.chain(notices.iter().cloned()).chain(next))
    };
    assert_eq!(leads(&[]), BTreeSet::from([Rule::Notice]));
    assert_eq!(leads(&[noticed(1, 4500, Answer::Danger)]), BTreeSet::new());
    assert_eq!(leads(&[noticed(1, 5445, Answer::Lost)]), BTreeSet::new());
    // It was renewed since; or another leads already.
    for late in [1500, 5600] {
        let notice = noticed(1, late, Answer::Danger);
        assert_eq!(leads(&[notice]), BTreeSet::from([Rule::Notice]), "{late}");
    }
    // The other was stopped before it could say that it led, until it did no longer.
    let late = taken(2, ELECTION, None, 500, 5510);
    let first = taken(1, ELECTION, None, 1000, 1010);
    let all = late
        .into_iter()
        .chain(first)
        .chain([renewed(ELECTION, 1, 2000)]);
    assert!(!rules(all).contains(&Rule::Notice));
    let resigned = of_key(ELECTION, 1, Kind::Release, Phase::Invoke);
    assert_eq!(leads(&[(1, 3000, resigned)]), BTreeSet::new());
}
