//! Clients that are told to end, and give their locks back, or do not.

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    history::{Deed, Event, Fault, History, Kind, Phase, Token},
};

use super::mutations::MS;

const LEASE_MS: u64 = 4_000;
const HOLDER: u32 = 10_000;
const NEMESIS: u32 = 0;

fn event(process: u32, t_ms: u64, deed: Deed) -> Event {
    Event {
        run: "stops".into(),
        seed: 1,
        process,
        t_ns: t_ms * MS,
        deed,
    }
}

/// The lock number `number`: asked for by `process` at the one time, in milliseconds, and granted at the other.
fn acquire(process: u32, number: u64, (asked, told): (u64, u64)) -> [Event; 2] {
    let begun = Deed {
        key: Some(format!("key-{number}")),
        lease_ms: Some(LEASE_MS),
        wait_ms: Some(20_000),
        ..Deed::invoke(2 * number, Kind::Acquire)
    };
    let ended = Deed {
        phase: Phase::Ok,
        nonce: Some(format!("{process}.{number}")),
        token: Some(Token {
            te: 1,
            ctr: u64::from(process) * 100 + number,
        }),
        sent_ns: Some(told * MS - MS),
        ..begun.clone()
    };
    [event(process, asked, begun), event(process, told, ended)]
}

/// As many clients as `waits` are told to end while they hold a lock each, and release it; another process waits for it,
/// and gets it so many milliseconds after the stop.
fn history(waits: &[u64]) -> History {
    let mut events = Vec::new();
    for (number, waits) in (0..).zip(waits) {
        let (victim, begin) = (HOLDER + number as u32, 1_000 + 20_000 * number);
        let held = acquire(victim, number, (begin, begin + 10));
        let release = Deed {
            lease_ms: None,
            ..Deed {
                op: 2 * number + 1,
                kind: Kind::Release,
                phase: Phase::Invoke,
                ..held[1].deed.clone()
            }
        };
        let stop = Deed {
            fault: Some(Fault::EndClient),
            victim: Some(victim),
            ..Deed::invoke(number, Kind::Nemesis)
        };
        let stopped = Deed {
            phase: Phase::Ok,
            ..stop.clone()
        };
        events.extend(held);
        events.extend([
            event(NEMESIS, begin + 1_000, stop),
            event(victim, begin + 1_001, release),
            event(NEMESIS, begin + 1_100, stopped),
        ]);
        events.extend(acquire(
            HOLDER + 5_000,
            number,
            (begin + 500, begin + 1_000 + waits),
        ));
    }
    History::new(events)
}

fn rules(history: &History) -> Vec<Rule> {
    let violations = check(history, &Counts::default());
    violations.into_iter().map(|found| found.rule).collect()
}

#[test]
fn stops_that_cost_a_lease_each_time_are_found() {
    let cost = LEASE_MS - 900;
    assert_eq!(rules(&history(&[cost; 3])), [Rule::Stop]);
    assert_eq!(rules(&history(&[cost, cost, 150])), []);
    assert_eq!(Counts::of(&history(&[cost, cost, 150])).given_back, 1);
    assert_eq!(rules(&history(&[cost; 2])), []);
}
