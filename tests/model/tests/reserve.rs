//! Tokens drawn ahead: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    reserve::{Rule, clean, control},
};

/// More states than any clean configuration has.
const CLEAN_CAP: usize = 3_000_000;

hold! {
    documents_that_are_forgotten: "forgetting",
    tokens_of_other_shards: "moving",
}

break_without! {
    a_reserve_that_is_older_than_a_read: ReadsDraw,
    a_reserve_that_lasts: ReservesEnd,
    a_reserve_of_a_former_head: ReservesHaveAHead,
    a_reserve_below_an_adopted_token: RaisesEndReserves,
    a_lock_that_is_known_by_a_refusal: RefusalsForget,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    let verdict = assert_holds::<_, Rule>(name, config, CLEAN_CAP);
    assert!(verdict.exhausted, "{verdict}");
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
