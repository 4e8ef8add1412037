//! Money for several accounts: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    legs::{Rule, clean, control},
};

/// More states than any clean configuration has.
const CLEAN_CAP: usize = 3_000_000;

hold! {
    a_transfer_while_others_use_the_room: "transfer-used",
    a_capture_while_others_use_the_room: "capture-used",
    a_transfer_while_an_account_is_closed: "transfer-closing",
    a_capture_while_an_account_is_closed: "capture-closing",
    a_transfer_to_accounts_that_forget: "transfer-forgetting",
    a_capture_to_accounts_that_forget: "capture-forgetting",
    two_captures_of_one_reservation: "twice",
    a_promise_that_is_lost: "losing",
}

break_without! {
    promises_that_keep_no_room: PromisesKeepRoom,
    promises_that_end_with_the_account: PromisesOutliveClosing,
    refusals_that_are_not_recorded: RefusalsAreRecorded,
    a_decision_after_the_first_promise: AllPromiseFirst,
    legs_paid_before_the_decision: DecidedBeforePaid,
    a_decision_that_expires: DecisionsStand,
    a_decision_that_is_replaced: OneDecision,
    promises_taken_back_after_a_timeout: OnlyRefusalsTakeBack,
    promises_taken_back_by_a_sweep_before_the_end: OnlyTheEndTakesBack,
    credits_forgotten_before_their_source_is_finished: PinnedUntilFinished,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    let verdict = assert_holds::<_, Rule>(name, config, CLEAN_CAP);
    assert!(verdict.exhausted, "{verdict}");
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
