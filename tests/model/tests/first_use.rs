//! First use: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named, check,
    first_use::{FirstUseModel, Rule, beyond, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 1_500_000;

hold! {
    the_same_list: "same-list",
    lists_that_overlap: "overlapping",
    a_list_in_another: "contained",
    lists_with_the_last_in_common: "common-last",
    two_processes_that_end: "both-crash",
    a_restart_and_two_foundings: "restart-two-foundings",
    a_restart: "restart",
    a_restart_and_a_list_in_another: "contained-restart" long,
}

break_without! {
    a_claim_not_undone: ClaimsAreUndone,
    a_pointer_taken_away_without_asking_its_home: HomeIsAskedFirst,
    a_pointer_taken_away_although_a_member_is_armed: PointersOfTheArmedStay,
    armed_before_active: OnlyActiveArms,
}

/// docs/protocol.md says so, and what to do about it.
#[test]
fn lists_with_only_the_lost_server_in_common_found_two_topologies() {
    let verdict = check(FirstUseModel::with_every_rule(beyond()), CLEAN_CAP);
    assert!(verdict.violated.is_some(), "{verdict}");
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
