//! Balances in segments: the clean configurations hold as far as fits into a test, and no rule may be
//! left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named, check,
    segments::{Rule, SegmentsModel, clean, control},
};

/// States to generate for a clean configuration: each is also asked whether all can be finished.
const CLEAN_CAP: usize = 500_000;

hold! {
    two_segments: "borrow",
    two_that_borrow_from_each_other: "borrow-both-ways",
    an_id_sent_again: "borrow-again" long,
    two_ids_sent_again: "borrow-both-again" long,
    a_deposit_while_they_borrow: "borrow-and-deposit",
    a_deposit_sent_again: "borrow-and-deposit-again" long,
    an_id_with_other_content: "other-content",
    a_freeze: "freeze",
    a_freeze_at_once: "freeze-at-once",
    a_freeze_and_an_id_sent_again: "freeze-again" long,
    a_purge: "purge",
    three_segments: "three",
    three_segments_and_an_id_sent_again: "three-again" long,
    three_segments_and_a_reservation_that_expires: "three-expiring" long,
    an_exact_balance: "read",
    an_exact_balance_while_two_borrow: "read-and-borrow" long,
    a_new_layout: "grow" long,
    a_new_layout_and_an_old_id_sent_again: "grow-old-again",
    a_new_layout_with_too_little: "grow-short",
    a_layout_with_fewer_homes: "shrink",
    a_new_layout_and_a_purge: "grow-and-purge" long,
    a_new_layout_while_they_borrow: "grow-borrow" long,
    a_new_layout_of_three: "grow-three" long,
    an_exact_balance_in_a_new_layout: "grow-and-read",
    a_transfer: "transfer",
    a_transfer_that_is_confirmed_and_cancelled: "transfer-ended",
    a_transfer_that_borrows: "transfer-borrow",
    a_transfer_to_a_closed_account: "transfer-closed",
    a_transfer_to_nobody: "transfer-to-nobody",
    transfers_there_and_back: "transfer-both-ways" long,
    a_transfer_from_a_new_layout: "transfer-grow-source",
    a_transfer_to_a_new_layout: "transfer-grow-destination",
    a_reservation: "reserve",
    a_reservation_that_borrows: "reserve-borrow",
    a_reservation_and_a_purge: "reserve-purge",
    a_reservation_in_a_new_layout: "reserve-grow" long,
    a_lost_tail: "loss" long,
    a_lost_tail_and_a_transfer: "loss-transfer",
    a_lost_tail_of_three_changes: "loss-tail",
    tails_lost_at_lender_and_borrower: "loss-tails",
    an_exact_balance_and_a_lost_tail: "loss-and-read" long,
    a_lost_tail_and_a_late_request_to_lend: "loss-late",
    a_segment_gone: "gone",
    a_segment_gone_and_later_ids: "gone-and-later" long,
    a_segment_of_three_gone: "gone-three",
    both_segments_gone: "gone-both" long,
    both_segments_gone_and_later_ids: "gone-both-and-later" long,
    a_segment_gone_and_a_lost_tail: "gone-and-loss" long,
    a_transfers_segment_gone: "gone-transfer",
    a_reservations_segment_gone: "gone-reserve" long,
    a_lost_manifest: "manifest-loss" long,
    a_lost_manifest_with_too_little: "manifest-loss-short" long,
    an_exact_balance_and_a_lost_manifest: "manifest-loss-and-read" long,
    a_lost_manifest_and_a_purge: "manifest-loss-and-purge" long,
}

break_without! {
    ids_forgotten: IdsAreRemembered,
    a_content_not_compared: ContentIsCompared,
    a_purge_without_a_mark: PurgeRaisesTheMark,
    a_lend_that_debits_again: LendRepeatsItsAnswer,
    a_lend_over_what_has_not_landed: LendFollowsTheLanded,
    a_lend_that_keeps_the_version: LendRaisesTheVersion,
    a_land_that_credits_again: LandOnce,
    a_land_that_keeps_the_version: LandRaisesTheVersion,
    money_left_in_flight_to_a_third: StrandedIsLanded,
    insufficient_after_one_read: InsufficientTakesTwoReads,
    insufficient_after_one_look_at_the_others: OthersAreReadAgain,
    a_second_look_before_the_last_first_one: SecondReadsFollowEveryFirst,
    insufficient_with_homes_version_unchecked: HomesVersionIsCompared,
    money_in_flight_not_summed: InFlightIsSummed,
    a_freeze_trusted: FreezeProvesNothing,
    insufficient_not_recorded: InsufficientIsRecorded,
    insufficient_over_an_answer: RecordedStays,
    an_exact_balance_of_one_look: ExactTakesTwoReads,
    a_home_by_the_newest_layout: HomeByTheIdsTime,
    a_layout_in_force_before_all_are_prepared: PreparedBeforeCommit,
    a_prepared_segment_that_takes_new_ids: PreparedRefusesNewIds,
    a_segment_prepared_over_decided_ids: PrepareComparesDecided,
    a_segment_prepared_over_credits: EveryDecisionCounts,
    a_segment_prepared_below_its_mark: PrepareComparesTheMark,
    a_segment_that_keeps_only_the_newest_cut: BaseIsKept,
    a_look_by_an_older_layout: CollectByTheLayout,
    short_and_refused_by_an_older_layout: ShortByTheLayout,
    a_lost_manifest_used_as_it_is: LostManifestIsRestored,
    a_lost_manifest_planned_anew_upon_what_it_has: RestoredFromTheCopy,
    a_restored_plan_that_marks_nothing: RestoredPlanMarks,
    a_source_that_takes_its_money_back: SourceTakesNothingBack,
    a_pinned_credit_purged: PinnedIsNotPurged,
    a_credit_unpinned_before_its_transfer_is_finished: ForgottenAfterTheFinish,
    a_credit_given_again: CreditOnce,
    a_credit_below_the_mark: CreditAboveTheMark,
    a_credit_pinned_for_ever: PurgedSourceIsFinished,
    a_transfer_to_nobody_that_waits: NoAccountRefuses,
    a_transfer_to_nobody_refused_without_a_record: RefusedInTheManifest,
    an_account_created_below_what_was_refused: CreatedAboveTheRefused,
    a_transfer_ended_as_a_reservation: OnlyReservationsEnd,
    a_confirmation_after_expiry: OnlyHeldIsConfirmed,
    a_cancellation_that_returns_again: OnlyHeldIsCancelled,
    an_expiry_that_returns_again: OnlyHeldExpires,
    an_expiry_that_keeps_the_version: ExpiryRaisesTheVersion,
    a_cancellation_forgotten: CancelIsRecorded,
    a_lost_tail_ignored: LostTailIsDoubtful,
    a_version_of_before_the_loss: LossRaisesTheVersion long,
    a_lender_that_is_behind_not_asked: LenderBelievesTheLanded,
    a_number_that_a_lost_loan_had: NumbersNeverRepeat,
    made_anew_without_its_lenders_numbers: AnewHasHadEveryLoan,
    accepted_by_a_read_of_before_a_later_loss: AcceptNamesTheVersion,
    made_anew_with_numbers_used_before: AnewVersionFollowsTheClock long,
    made_anew_without_a_mark: AnewBeginsAtNow,
    made_anew_and_refusing_what_it_may_have_credited: AnewMayHaveCredited,
}

/// Everything, not only what the rule is for, and to the end.
#[test]
#[ignore = "long: many states"]
fn controls_hold_with_their_rule() {
    for rule in Rule::every() {
        let verdict = check(
            SegmentsModel::with_every_rule(control(*rule).config),
            CLEAN_CAP,
        );
        assert!(
            verdict.holds() && verdict.exhausted,
            "{rule:?}: {verdict:#?}"
        );
    }
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
