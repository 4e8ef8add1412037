//! Shortcuts that lose or mint coins, and histories that show it: a check that finds nothing wrong
//! with them would find nothing.

use super::{
    bank::Shortcut::{self, *},
    plan, run,
};

/// More than enough plans to find each.
const PLANS: usize = 3000;

fn is_found(shortcut: Shortcut) {
    for (tried, plan) in plan::some(PLANS).enumerate() {
        if let Some(violation) = run::history(&plan, Some(shortcut)).violation {
            println!("{shortcut:?}, in plan {tried}, {violation}");
            return;
        }
    }
    panic!("{shortcut:?} was not found in {PLANS} plans");
}

macro_rules! baselines {
    ($($name:ident: $shortcut:expr;)*) => { $(
        #[test]
        fn $name() {
            is_found($shortcut);
        }
    )* };
}

baselines! {
    a_lend_that_is_debited_again: LendAgain;
    a_loan_that_lands_again: LandAgain;
    insufficient_after_one_read: OneRead;
    a_source_that_takes_its_money_back: TakeBack;
    a_credit_that_is_purged_before_its_transfer_is_finished: PurgePinned;
    a_purge_that_raises_no_mark: PurgeWithoutMark;
    a_segment_prepared_whatever_it_has_decided: PrepareAnyway;
    an_answer_to_who_knows_an_old_layout: AnyLayout;
    a_reservation_confirmed_after_it_came_back: ConfirmLate;
    a_lost_segment_replaced_without_its_loans_numbers: ForgetNumbers;
    a_lost_segment_accepted_without_a_mark: AcceptWithoutMark;
    a_transfer_refused_in_the_place_of_a_lost_segment: RefuseLost;
    a_segment_made_for_a_plan_of_long_ago: CreateLate;
    a_segment_removed_before_a_transfer_is_finished: RemovePinned;
    a_promise_that_keeps_no_room: PromiseNothing;
    a_promise_taken_back_before_the_decision: TakePromiseBack;
    a_reservation_cancelled_after_the_decision_to_pay: CancelCommitted;
}
