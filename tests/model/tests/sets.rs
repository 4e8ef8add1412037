//! Sets of locks: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    sets::{Rule, clean, control},
};

/// More states than any clean configuration has.
const CLEAN_CAP: usize = 3_000_000;

hold! {
    sets_in_opposite_orders_and_a_crash: "opposite",
    sets_that_overlap_in_a_circle: "circle",
    tries_beside_a_single_lock: "tries",
    a_lock_of_a_set_that_is_lost: "losing",
}

break_without! {
    sets_that_are_waited_for_in_the_order_given: OneOrder,
    locks_that_are_kept_behind_a_refusal: NothingBehindTheFirstRefusal,
    tries_that_fail_and_keep_some: FailedTriesGiveBack,
    requests_that_are_forgotten: AbandonedRequestsAreReleased,
    a_set_of_which_one_was_lost: HeldInTheEnd,
    a_deadline_for_each_key: OneDeadline,
    locks_without_a_lease: LeasesEnd,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    let verdict = assert_holds::<_, Rule>(name, config, CLEAN_CAP);
    assert!(verdict.exhausted, "{verdict}");
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
