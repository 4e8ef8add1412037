//! Whole histories: clients that crash, requests that are lost or come again, purges and
//! resegments among them; and what must be true all the same.
//!
//! A run repeats itself: it follows a plan and a seed, under a paused clock. Four times
//! `PROPTEST_CASES` of them.

mod audit;
mod bank;
mod baselines;
mod plan;
mod run;

use proptest::prelude::*;

fn config() -> ProptestConfig {
    let defaults = ProptestConfig::default();
    ProptestConfig {
        cases: 4 * defaults.cases,
        failure_persistence: None,
        ..defaults
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_history_loses_or_mints_a_coin(plan in plan::any()) {
        let seen = run::history(&plan, None);
        prop_assert!(seen.violation.is_none(), "{}", seen.violation.unwrap());
    }
}

/// Otherwise the property above would show little.
#[test]
fn histories_reach_what_they_are_for() {
    let mut seen = run::Seen::default();
    for plan in plan::some(300) {
        seen.add(&run::history(&plan, None));
    }
    println!("{:?}", seen.reached);
    for what in [
        "deposit",
        "deduct",
        "reserve",
        "insufficient",
        "borrowed",
        "confirmed",
        "cancelled",
        "expired",
        "delivered",
        "returned",
        "too old",
        "resegmented",
        "exact",
        "exact while something is held",
        "credit line",
        "dropped",
        "lost",
        "late",
        "frozen",
        "planned later",
        "segment lost",
        "accepted",
        "deleted",
        "created again",
        "not empty",
        "promised",
        "captured",
        "paid",
        "promise taken back",
    ] {
        assert!(seen.reached.contains_key(what), "never reached: {what}");
    }
}

#[test]
fn a_history_repeats_itself() {
    for plan in plan::some(5) {
        assert_eq!(run::history(&plan, None), run::history(&plan, None));
    }
}
