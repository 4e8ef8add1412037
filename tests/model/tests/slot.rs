//! Moves, restarts and removals: the clean configurations hold as far as fits into a test, and no
//! rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    slot::{Rule, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 1_000_000;

hold! {
    a_move: "move",
    a_move_with_three_processes: "move-three-processes" long,
    a_move_while_they_acquire_again: "move-acquiring-again" long,
    a_move_while_they_repeat: "move-repeating" long,
    a_move_with_a_list: "move-listing" long,
    a_move_under_a_healthy_holder: "move-healthy-holder" long,
    a_move_and_a_fresh_epoch_for_tokens: "move-raising",
    requests_repeated: "repeating" long,
    a_move_and_the_next: "chain" long,
    a_move_and_the_next_under_a_healthy_holder: "chain-healthy-holder",
    there_and_back: "there-and-back" long,
    an_abort: "abort" long,
    an_abort_while_they_renew: "abort-renewing" long,
    an_abort_under_a_healthy_holder: "abort-healthy-holder" long,
    an_abort_and_the_move_again: "abort-and-move-again" long,
    an_abort_and_a_restart: "abort-and-restart" long,
    an_abort_and_a_lagging_failover: "abort-and-lagging-failover" long,
    a_restart: "restart" long,
    two_restarts: "two-restarts" long,
    a_failover_to_a_clock_that_is_behind: "failover-clock-behind" long,
    a_restart_under_a_healthy_holder: "restart-healthy-holder",
    a_restart_in_a_move: "move-restart" long,
    a_restart_in_a_move_while_they_renew: "move-restart-renewing" long,
    a_restart_in_a_move_with_three_processes: "move-restart-three-processes" long,
    a_failover_in_a_move_to_a_clock_that_is_behind: "move-failover-clock-behind" long,
    two_restarts_in_a_move: "move-two-restarts" long,
    a_restart_in_a_move_with_a_list: "move-listing-restart" long,
    a_restart_in_a_move_and_a_fresh_epoch_for_tokens: "move-raising-restart" long,
    a_restart_in_a_move_under_a_healthy_holder: "move-restart-healthy-holder" long,
    a_restart_in_a_move_or_the_next: "chain-restart" long,
    a_removal: "removal" long,
    a_removal_while_they_acquire_again: "removal-acquiring-again" long,
    a_removal_and_a_restart: "removal-and-restart" long,
    a_removal_in_a_move: "removal-in-a-move" long,
    a_removal_of_the_next_shard: "removal-of-the-next-shard" long,
}

break_without! {
    a_proof_before_the_seal: ProofAfterTheSeal,
    a_proof_of_an_older_move: ProofOfItsMove long,
    a_proof_of_another_key: ProofOfItsKey,
    opening_before_the_other_is_empty: OpenAfterEmpty long,
    a_list_before_the_seal: ListAfterTheSeal,
    a_list_in_grace: ListAfterGrace,
    an_import_that_leaves_tokens_low: ImportRaisesTokens long,
    an_armed_import_that_grants_at_once: ArmedImportWaits long,
    steps_without_a_guard: StepsAreGuarded long,
    an_abort_that_reopens_at_the_old_epoch: AbortIsAMoveBack long,
    a_second_move_planned_before_the_first_is_finished: PlannedOnceAtATime,
    a_move_finished_after_a_restart_it_does_not_know_of: FinishExpectsItsVersion,
    an_adopt_answered_already_yours: AdoptFindsInItsMove long,
    an_adopt_that_writes_over_another: AdoptNeverOverwrites long,
    a_deadline_counted_from_the_removal: AdoptedFromItsSend,
    a_removal_of_an_older_move: RemoveInItsMove long,
    a_release_after_an_unanswered_adopt: NoReleaseUnderAGuard long,
    no_grace: GraceAfterRestart long,
    a_grant_in_grace: NoGrantInGrace long,
    a_proof_in_grace: NoProofInGrace,
    empty_in_grace: NotEmptyInGrace long,
    opening_ends_grace: OpenKeepsGrace long,
    importing_ends_grace: ImportKeepsGrace long,
    no_reclaim: ReclaimInGrace long,
    a_reclaim_only_if_missing: ReclaimOverOlder,
    a_reclaim_past_the_deadline: NoReclaimPastTheDeadline,
    a_record_that_outlives_grace: RecordsOfItsLife long,
    an_epoch_used_again: FreshEpochAtArm long,
    an_epoch_used_again_in_a_move: FreshEpochInAMove long,
    a_step_that_makes_an_unarmed_shards_state: StepsNeedAnArmedShard,
    a_silent_reconnect: HandshakePerConnection,
    a_failover_there_and_back_in_one_life: LifeNamesEveryFailover,
    no_wait_for_views: RemovalWaitsForViews long,
    no_grace_after_views: GraceAfterViews long,
    a_reclaim_before_views_lapse: NoReclaimBeforeViewsLapse long,
    an_heir_armed_open_before_views_lapse: ArmedHeirWaits long,
    a_holder_of_a_removed_shard_that_renews_too_early: RemovedHolderWaits long,
    a_guard_that_outlives_its_view: GuardsEndWithTheView long,
    an_answer_of_a_removed_shard: RemovedIsNotBelieved long,
    a_deadline_counted_from_the_last_send: DeadlineFromItsSend,
    a_repeat_that_does_not_extend: RepeatExtends,
    a_release_by_process: ReleaseByNonce,
    a_release_that_overtakes: ReleaseBehindItsRequests,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
