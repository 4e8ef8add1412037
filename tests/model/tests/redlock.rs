//! Replicated locks: the clean configurations hold as far as fits into a test, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    redlock::{Rule, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 400_000;

hold! {
    ranks_at_rest: "rest",
    ranks_at_rest_acquired_again: "rest-again",
    a_late_message: "rest-late" long,
    the_middle_of_all_answers: "median" long,
    the_middle_and_renewals_that_do_not_confirm_it: "extending",
    a_record_installed: "installing" long,
    a_forced_release: "forced",
    a_successor: "successor" long,
    a_successor_again: "successor-again",
    ranks_given_back: "giving-back" long,
    a_restart: "restart",
    a_restart_and_leases_of_three_ticks: "restart-three-ticks",
    a_restart_and_a_record_installed: "restart-installing",
    a_restart_and_a_late_message: "restart-late" long,
    a_restart_and_a_late_renewal_that_counts: "restart-late-renewal-counts" long,
    a_restart_and_a_fresh_epoch_for_tokens: "restart-raising",
    a_restart_and_the_middle_of_all_answers: "restart-median",
    a_restart_and_renewals_that_confirm_nothing: "restart-extending",
    a_restart_and_a_successor: "restart-successor",
    a_restart_with_its_epochs_forgotten: "restart-epochs-forgotten",
    a_move: "move",
    a_move_while_they_acquire_again: "move-again",
    a_move_and_leases_of_three_ticks: "move-three-ticks",
    a_move_and_a_record_installed: "move-installing",
    a_move_and_a_late_adopt: "move-late-adopt" long,
    a_move_and_the_middle_of_all_answers: "move-median",
    a_move_and_renewals_that_confirm_nothing: "move-extending",
    a_move_and_a_restart: "move-restart",
    a_removal: "removal",
    a_removal_and_renewals_that_confirm_nothing: "removal-extending",
    a_removal_and_a_fresh_epoch_for_tokens: "removal-raising",
    a_removal_and_a_late_message: "removal-late" long,
    a_removal_and_a_restart: "removal-restart",
    a_queue_and_a_late_acquire: "queue" long,
    a_queue_while_they_acquire_again: "queue-again",
    a_queue_and_a_restart: "queue-restart",
    a_lead_that_changes: "lead",
    a_lead_whose_shard_is_dead: "lead-dead",
    a_doubted_lead_and_another_dead_shard: "lead-doubted",
    a_lead_that_changes_and_a_step_of_a_clock: "lead-step",
}

break_without! {
    the_greatest_token_without_a_confirm: GreatestIsConfirmed,
    a_confirm_at_any_majority: ConfirmOnItsOwnRecord,
    a_confirm_at_a_sealed_slot: ConfirmInAnOpenSlot,
    an_install_in_a_sealed_slot: InstallInAnOpenSlot long,
    an_install_in_grace: InstallAfterGrace,
    an_adopt_that_leaves_tokens_low: AdoptRaises,
    a_reclaim_that_leaves_tokens_low: ReclaimRaises long,
    no_second_epoch_after_a_removal: SecondEpochAfterRemoval long,
    an_expired_nonce_replaced: SupersedeTheReleased,
    no_grace: GraceAfterRestart,
    a_reclaim_past_the_deadline_there: ReclaimBeforeItsDeadline,
    a_confirm_past_the_deadline_there: ConfirmBeforeItsDeadline,
    an_adopt_past_the_deadline_there: AdoptedBeforeItsDeadline long,
    an_adopt_without_a_record_before: AdoptTheAcknowledged,
    an_adopt_that_compares_the_token_of_another_rank: AdoptComparesItsOwn long,
    an_acquire_that_overtakes_its_release: AcquireBehindItsRelease,
    an_answer_of_before_a_give_back: GiveBackEndsRequests long,
    a_fence_that_answers_the_epoch_of_its_arm_only: FenceAnswersTokenEpochs,
    a_forced_release_of_what_is_reached: TakenFromAMajority,
    a_forced_release_of_everybodys_records: TakeTheHoldersAlone,
    an_install_where_a_record_was_just_gone: InstallOnceRenewed,
    a_turn_that_lasts_from_its_receipt: TurnFromItsRequest long,
    a_turn_with_the_last_token: TurnHasAFreshToken,
    a_release_that_leaves_the_waiter_out: WaiterGoesFirst,
    a_majority_without_the_lead: MajorityWithTheLead,
    a_dead_lead_that_is_waited_for: PassOverADeadLead,
    a_lead_passed_over_for_good: ReturnToTheLead,
    a_useless_lead_that_is_kept: GiveAUselessLeadBack,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
