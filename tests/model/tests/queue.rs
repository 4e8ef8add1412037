//! Waiting: the clean configurations hold as far as fits into a test, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    queue::{Rule, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 1_000_000;

hold! {
    two_processes: "two-processes" long,
    two_processes_that_renew: "two-processes-renewing",
    three_processes: "three-processes",
    four_processes: "four-processes" long,
    a_claim_shorter_than_the_lease: "claim-shorter-than-lease",
    a_slot_sealed_with_a_queue: "sealed-with-a-queue",
    tickets_apart: "tickets-apart",
    tickets_apart_of_three: "tickets-apart-of-three",
    a_restart: "restart",
    two_restarts: "two-restarts",
    a_restart_with_tickets_apart: "restart-tickets-apart",
    a_restart_with_three_processes: "restart-three-processes",
    a_restart_under_a_healthy_holder: "restart-healthy-holder",
    a_healthy_waiter: "healthy-waiter",
    lingering: "linger",
    lingering_and_acquiring_again: "linger-and-acquire-again" long,
    lingering_with_three_processes: "linger-three-processes" long,
    lingering_through_a_restart: "linger-restart" long,
    everything_at_once: "everything" long,
    waits_end: "prompt",
    waits_end_when_pushes_are_lost: "prompt-pushes-lost",
    waits_end_at_a_lingering_record_when_pushes_are_lost: "prompt-linger-pushes-lost",
    waits_end_at_a_lingering_record: "prompt-linger",
    waits_end_when_a_process_crashes: "prompt-crash",
    waits_end_when_three_processes_crash: "prompt-three-crashes",
    waits_end_when_a_process_crashes_and_the_shard_restarts: "prompt-crash-and-restart",
}

break_without! {
    a_turn_counted_from_its_receipt: TurnNeverFromReceipt,
    a_turn_counted_from_a_later_send: TurnNeverFromALaterSend long,
    a_turn_counted_from_the_last_held: TurnNeverFromTheLastHeld long,
    a_turn_counted_by_the_shards_clock: TurnNeverByTheShardsClock long,
    a_turn_believed_for_the_lease: TurnLastsItsClaimTime long,
    a_turn_matched_by_key: TurnMatchesItsNonce long,
    a_recheck_that_does_not_extend: RecheckExtends,
    a_late_held_that_ends_a_guard: LateHeldIsIgnored,
    a_newcomer_before_the_queue: QueueBeforeNewcomer,
    an_abandon_that_leaves_its_ticket: ReleaseTakesTheTicket,
    an_abandon_that_overtakes_its_acquire: ReleaseBehindItsRequests,
    a_release_by_process: ReleaseByNonce,
    a_renewal_that_writes_over_the_record: RenewItsOwnRecord,
    no_grace: GraceAfterRestart,
    a_turn_in_grace: NoTurnInGrace,
    a_grant_in_grace: NoGrantInGrace,
    an_epoch_used_again: FreshEpochAfterRestart,
    no_reclaim: ReclaimInGrace,
    a_sealed_slot_that_grants_to_its_queue: SealedNeverPasses long,
    a_block_not_reserved_at_the_shard: BlockReservedAtTheShard,
    a_block_used_after_its_nonce: BlockDiesWithItsNonce,
    one_token_for_several_hand_offs: TokenPerHandOff,
    a_former_nonces_reserve_taken: ReserveMatchesItsRequest,
    hand_offs_without_bound: HandOffsAreBounded,
    a_local_grant_past_the_deadline: NoLocalGrantPastTheDeadline,
    a_local_grant_after_the_release: NoLocalGrantAfterTheRelease,
    a_renewal_that_does_not_tell_who_waits: RenewTellsWhoWaits,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
