//! Semaphores and read-write locks: the clean configurations hold as far as fits into a test, and no
//! rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    shares::{Rule, clean, control},
};

/// States to generate for a clean configuration.
const CLEAN_CAP: usize = 400_000;

hold! {
    readers_and_a_writer: "readers-and-a-writer",
    a_queue: "queue",
    readers_that_have_a_lease_together: "readers-together",
    preferred_readers: "preferred-readers",
    preferred_writers: "preferred-writers",
    users_that_prefer_different_sides: "preferred-sides",
    a_downgrade: "downgrade",
    writers_that_hand_on: "writers-hand-on",
    a_capacity_that_changes: "capacity-changed",
    a_restart: "restart",
    a_failover: "failover" long,
    a_failover_after_a_downgrade: "failover-downgrade",
    a_failover_to_a_clock_that_is_behind: "failover-clock-behind",
    a_failover_under_a_healthy_holder: "failover-healthy-holder",
    a_move: "move" long,
    a_move_of_readers_that_have_a_lease_together: "move-readers-together" long,
    a_move_with_a_list: "move-listing",
    a_downgrade_in_a_move: "move-downgrade",
    a_queue_in_a_move: "move-queue",
    a_capacity_that_changes_in_a_move: "move-capacity-changed",
    a_move_under_a_healthy_holder: "move-healthy-holder",
    a_move_with_three_processes: "move-three-processes" long,
    a_restart_in_a_move: "move-restart",
    a_restart_in_a_move_under_a_healthy_holder: "move-restart-healthy-holder",
}

break_without! {
    a_ticket_granted_by_another_capacity: RoomByTheTicketsCapacity,
    a_writer_of_a_capacity_that_changes: WriterTakesAConstant,
    one_end_for_all_holders: SharesEndAlone,
    a_release_of_the_whole_record: ReleaseTakesItsShares,
    readers_without_a_token: ReadersAreCounted,
    a_newcomer_before_the_queue: NoBarging,
    a_preferred_ticket_behind_all: PreferredGoFirst,
    a_preferred_newcomer_before_all: PreferredWaitForEachOther,
    a_head_that_does_not_fit_passed_over: PassStopsAtTheHead,
    one_grant_per_pass: PassGrantsWhileTheyFit,
    a_lease_released_with_its_first_reader: LastHolderReleases,
    a_reader_that_comes_late_and_believes_longer: JoinsUntilTheDeadline,
    a_reader_that_hands_on_to_a_writer: ReadersHandNothingOn,
    a_downgrade_that_ends_belief_late: DowngradeEndsBelief,
    a_downgrade_that_does_not_pass: DowngradePasses,
    a_renewal_that_adds_shares: RenewNeverAdds,
    room_without_the_shares_left: RoomCountsLeft,
    a_proof_that_counts_holders: LeftIsInShares,
    a_proof_before_the_seal: ProofAfterTheSeal,
    a_list_before_the_seal: ListAfterTheSeal,
    an_adoption_that_lowers_the_shares_left: LeftFallsByProofOnly long,
    an_adoption_that_asks_for_room: AdoptNeedsNoRoom,
    opening_before_the_other_is_empty: OpenAfterEmpty,
    a_sealed_slot_that_grants_to_its_queue: SealedNeverPasses long,
    no_grace: GraceAfterRestart,
    a_proof_in_grace: NoProofInGrace,
    empty_in_grace: NotEmptyInGrace,
    a_pass_in_grace: NoPassInGrace,
    a_reclaim_that_asks_for_room: ReclaimNeedsNoRoom,
    an_entry_that_outlives_grace: EntriesOfTheirLife,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
