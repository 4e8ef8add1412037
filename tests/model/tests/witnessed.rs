//! Witnessed leases: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    witnessed::{Rule, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 1_000_000;

hold! {
    processes_that_watch_each_other: "watching",
    a_waiter_that_hears_late_of_its_claim: "claiming",
    a_waiter_that_may_have_given_up: "giving-up",
    a_store_that_removes_beats: "removing",
}

break_without! {
    a_take_over_that_depends_on_the_record_alone: TakeOversCheckTheBeat,
    a_deadline_that_counts_from_the_answer: DeadlinesCountFromTheSending,
    a_claim_that_beats_keep: ClaimsGoByTheDocument,
    a_store_whose_timer_has_no_slack: StoreTimersHaveSlack,
    a_wait_that_counts_from_the_sending: WaitsCountFromTheAnswer,
    a_grant_that_leaves_the_former_beat: GrantsWriteTheBeat,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
