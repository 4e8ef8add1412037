//! The requirements on every [`Shard`]. One function per property; run them all with
//! [`shard_conformance!`](crate::shard_conformance).
//!
//! Every property of a quiet shard must hold on one that checks every slot: most properties are
//! checked both ways.

mod adopting;
mod arming;
mod batches;
mod cancel;
mod carry;
mod confirming;
mod contended;
mod copies;
mod counters;
mod declaring;
mod decommission;
mod desk;
mod ends;
mod fence;
mod grants;
mod hands;
mod inspect;
mod line;
mod links;
mod listing;
mod movers;
mod moves;
mod passing;
mod proofs;
mod queue;
mod rearming;
mod scans;
mod sealed;
mod shares;
mod shares_moves;
mod slots;
mod turns;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_coordinator::shard::Shard;

pub use adopting::*;
pub use arming::*;
pub use batches::*;
pub use cancel::*;
pub use carry::*;
pub use confirming::*;
pub use contended::*;
pub use copies::*;
pub use counters::*;
pub use declaring::*;
pub use decommission::*;
pub use ends::*;
pub use fence::*;
pub use grants::*;
pub use inspect::*;
pub use links::*;
pub use listing::*;
pub use moves::*;
pub use passing::*;
pub use proofs::*;
pub use queue::*;
pub use rearming::*;
pub use scans::*;
pub use sealed::*;
pub use shares::*;
pub use shares_moves::*;
pub use slots::*;
pub use turns::*;

/// A shard to be tested, and the actions on it that its contract does not offer.
///
/// One value serves one test and shares nothing with any other.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The shard: empty, and not armed. It can be restarted, and is another shard then.
    fn shard(&self) -> Arc<dyn Shard>;

    /// Id of a topology that may arm it.
    fn topology(&self) -> String;

    /// Puts the shard's clock forward by `length`. It should stand still otherwise, so that no property depends on the
    /// speed of the machine.
    async fn elapse(&self, length: Duration);

    /// By so much later than its length an end may be, as the shard reports it.
    fn late(&self) -> Duration {
        Duration::ZERO
    }

    /// Makes every request, and every answer, of connections to come take many turns.
    async fn slow_down(&self);

    /// Lets requests under way make some progress.
    async fn turn(&self);

    /// Sets the counter of the last token made. The shard is armed.
    async fn set_counter(&self, counter: u64);

    /// Sets the clock back by `length`. The shard is armed.
    async fn set_clock_back(&self, length: Duration);

    /// The text of the newest topology record that the shard has seen in its present life.
    async fn copy(&self) -> Option<String>;

    /// Ends the shard's life and begins another, without state, with all records of the former
    /// one: as a server that saves them.
    async fn restart(&self);
}

/// Creates one test per property. The argument is a future of a
/// [`Fixture`](crate::shard::Fixture), which lives as long as its test.
///
/// The properties of the rules alone may have an attribute of their own: for a shard that runs the rules of another one,
/// which is tested in full.
///
/// # Examples
///
/// ```ignore
/// ringfence_conformance::shard_conformance!(async { MyFixture::new().await });
/// ringfence_conformance::shard_conformance!(MyFixture::new(), rules: #[ignore = "long: as in memory"]);
/// ```
#[macro_export]
macro_rules! shard_conformance {
    ($make:expr $(, rules: #[$rules:meta])?) => {
        $crate::lock_conformance!($make $(, rules: #[$rules])?);
        $crate::lock_conformance!(@each $make;
            a_moved_counter_is_unchanged,
            groups_are_told_until_none_is_left,
            a_group_is_dropped_only_if_it_is_what_arrived,
            an_older_group_is_replaced,
            counters_of_a_slot_that_comes_are_served_once_they_are_admitted,
            carried_counters_outlast_a_life,
            a_request_counts_once_over_connections,
            a_manifest_is_swapped_from_its_version_alone,
            a_missing_manifest_was_never_made_unless_some_may_be_lost,
            a_full_batch_of_counters_is_answered_one_by_one,
            ;
        );
        $crate::lock_conformance!(@each $make;
            groups_leave_by_their_own_move_alone,
            groups_come_by_their_own_move_alone,
            a_group_arrives_once_all_of_it_is_there,
            of_slots_that_a_move_has_reached_nothing_is_copied_ahead,
            of_a_group_that_has_arrived_nothing_is_lacked,
            a_copy_of_other_content_does_not_arrive,
            pieces_of_another_life_or_another_move_do_not_fit,
            a_later_group_is_never_replaced,
            counters_are_asked_only_where_their_slot_is_open,
            an_unarmed_shard_answers_no_counter,
            counters_do_not_wait_for_a_grace,
            counters_say_whether_the_shard_is_quiet,
            counters_on_their_way_are_frozen_beside_those_that_are_not,
            a_batch_of_counters_keeps_its_order,
            locks_segments_and_manifests_of_one_key_do_not_touch,
            ; $(#[$rules])?
        );
    };
}

/// The properties that do not concern counters: those of a shard that keeps none, and says so.
///
/// The first list is of what stores do: expiry, pages, bytes, large commits, connections, lives, messages, tokens, and each
/// operation once. The second one is of the rules. Each may have an attribute.
#[macro_export]
macro_rules! lock_conformance {
    ($make:expr $(, stores: #[$stores:meta])? $(, rules: #[$rules:meta])?) => {
        $crate::lock_conformance!(@each $make;
            a_held_key_refuses_another_nonce,
            a_repeated_acquire_finds_the_same_token_and_a_full_lease,
            a_renewal_gives_a_full_lease_and_keeps_the_token,
            tokens_of_a_key_rise_across_releases_and_expiry,
            an_expired_lease_is_free_and_the_next_token_is_higher,
            a_stale_nonce_can_neither_renew_nor_release,
            a_second_release_finds_nothing,
            a_confirmation_raises_a_lower_token_and_every_later_one,
            a_grant_is_installed_only_when_asked_and_raises_every_later_token,
            what_is_put_back_or_adopted_raises_every_later_token,
            every_record_has_an_end,
            labels_come_back_as_they_were_sent,
            keys_with_hostile_bytes_do_not_touch_each_other,
            an_inspection_tells_holder_tokens_and_remaining_time,
            an_inspection_tells_how_long_a_lock_has_been_held,
            an_inspection_tells_what_waiters_ask_for,
            an_inspection_lists_the_waiters_in_order,
            a_listing_agrees_with_inspections,
            a_listing_comes_in_pages,
            a_listing_leaves_out_free_keys,
            a_listing_tells_hostile_keys_as_they_are,
            a_listing_of_one_namespace_tells_none_of_another,
            operations_on_one_key_keep_their_order,
            each_operation_of_a_batch_has_its_own_answer,
            a_full_batch_is_granted_in_order,
            every_acquire_uses_up_one_number,
            at_the_end_of_the_counter_nothing_new_is_granted,
            a_batch_that_does_not_fit_below_the_end_of_the_counter_uses_no_number,
            an_unarmed_shard_answers_nothing_and_writes_nothing,
            only_the_topology_that_a_shard_belongs_to_arms_it,
            all_slots_of_the_largest_ring_are_armed_at_once,
            a_life_says_what_it_is_armed_with,
            a_greater_epoch_arms_anew,
            a_timer_lasts_no_longer_than_it_was_set_for,
            after_a_step_back_grace_ends_in_time,
            after_a_step_back_a_mover_waits_in_time,
            after_a_step_back_a_mover_finds_records_ended,
            after_a_step_back_a_record_lasts_for_its_lease,
            after_a_step_back_an_extended_claim_is_a_lease,
            after_a_step_back_a_share_lasts_for_its_lease,
            after_a_step_back_a_record_of_another_kind_ends,
            after_a_step_back_a_ticket_ends_in_time,
            arming_anew_waits_in_full,
            a_declaration_is_kept_until_a_later_one,
            in_grace_a_renewal_reclaims,
            after_grace_nothing_is_reclaimed,
            after_grace_a_record_of_an_older_arming_is_not_live,
            tokens_rise_across_lives,
            a_shard_is_quiet_only_after_a_mark_and_only_at_its_version,
            a_new_life_is_not_quiet,
            quiet_and_full_path_answer_alike,
            a_raise_makes_tokens_rise_above_all_earlier,
            a_stale_arming_is_refused_and_writes_nothing,
            connecting_ends_the_former_connection,
            a_request_that_nobody_polls_keeps_no_other_waiting,
            a_former_connection_that_is_gone_is_no_error,
            connecting_ends_no_connection_that_is_not_named,
            a_former_connection_of_another_life_ends_none,
            a_link_of_an_earlier_life_does_nothing,
            an_acquire_dropped_after_any_turn_is_decided_by_the_next_connection,
            a_renewal_dropped_after_any_turn_loses_nothing,
            a_release_dropped_after_any_turn_is_decided_by_the_next_connection,
            a_connect_dropped_after_any_turn_leaves_nothing_behind,
            tickets_are_served_first_come_first_served,
            an_ended_ticket_is_skipped,
            when_every_ticket_has_ended_nobody_waits,
            queues_of_keys_with_hostile_bytes_do_not_touch_each_other,
            a_release_grants_to_the_first_ticket_and_tells_its_client_once,
            a_turn_echoes_the_latest_sent,
            blocks_of_tokens_rise_and_do_not_overlap,
            a_client_gets_no_notifications_of_other_clients,
            a_listening_connection_ends_with_the_life,
            a_dropped_wait_for_a_message_loses_none,
            a_spent_counter_passes_nothing_on_and_nobody_overtakes,
            after_a_restart_no_queue_is_granted_to_in_grace,
            a_new_ticket_is_told_to_the_holder,
            a_step_leads_where_it_says_and_may_be_repeated,
            steps_and_quiet_marks_leave_a_copy_of_the_newest_topology,
            a_proof_is_of_one_move,
            permits_are_granted_up_to_the_capacity,
            readers_share_and_a_writer_is_alone,
            one_of_many_shares_ends_alone,
            the_end_of_every_share_frees_the_key,
            a_release_grants_to_a_bounded_number_of_tickets,
            a_spent_counter_grants_no_shares,
            a_complete_list_frees_the_keys_it_does_not_name,
            a_list_goes_on_after_any_pause,
            a_scan_lists_the_held_keys_of_sealed_slots,
            a_scan_leaves_out_ended_records_and_nothing_else,
            a_scan_comes_in_pages_and_misses_nothing,
            a_scan_tells_hostile_keys_as_they_are,
            still_held_keys_have_a_live_record,
            a_lock_is_brought_along_with_its_token_and_a_full_lease,
            a_removal_is_of_its_own_move_and_its_own_nonce,
            a_slot_opened_by_force_is_in_grace,
            grace_after_an_arming_is_not_narrowed_by_a_force,
            records_outlast_slots_opened_by_force,
            ; $(#[$stores])?
        );
        $crate::lock_conformance!(@each $make;
            past_the_bound_nobody_new_queues_until_tickets_end,
            locks_held_throughout_are_listed_while_others_come_and_go,
            a_confirmation_extends_a_share_alone,
            a_confirmation_lowers_no_token,
            a_confirmation_of_another_nonce_is_lost,
            a_confirmation_counts_in_no_slot_that_moves,
            nothing_is_confirmed_in_grace,
            of_two_releases_at_once_the_second_finds_nothing,
            a_nonce_that_another_begins_with_releases_nothing,
            an_inspection_leaves_out_tickets_that_have_ended,
            an_inspection_lists_the_waiters_for_a_free_key,
            an_unarmed_shard_tells_nobody_anything,
            arming_with_no_greater_epoch_changes_nothing,
            after_it_was_armed_anew_an_older_record_is_not_live,
            arming_anew_cuts_no_grace_short,
            arming_anew_keeps_a_later_token_epoch,
            an_arming_by_an_earlier_record_than_seen_changes_nothing,
            arming_anew_forgets_lists_and_proofs,
            an_acquire_by_an_older_view_is_refused_and_writes_nothing,
            what_an_older_view_holds_is_renewed_and_released,
            a_declaration_ends_the_quiet_of_older_maps,
            a_life_is_armed_with_the_declaration_of_its_record,
            a_declaration_obeys_the_fence_and_needs_an_armed_life,
            in_grace_nobody_new_is_granted_and_no_repeat_answered,
            in_grace_only_a_higher_token_reclaims_from_another,
            after_grace_its_own_renewal_still_saves_an_older_record,
            in_grace_a_record_of_an_older_arming_is_live,
            a_shut_slot_answers_moved_with_its_epoch,
            a_shut_slot_is_moved_in_grace_too,
            a_shut_slot_still_gives_back,
            a_quiet_mark_fails_over_a_shut_slot,
            a_quiet_mark_fails_in_grace,
            a_quiet_mark_of_an_older_map_changes_nothing,
            a_failed_quiet_mark_ends_the_quiet,
            a_raise_keeps_the_quiet,
            a_lower_raise_changes_nothing,
            a_stale_quiet_mark_is_refused_and_writes_nothing,
            a_stale_raise_is_refused_and_writes_nothing,
            whatever_carries_an_incarnation_raises_the_fence,
            a_newcomer_never_goes_before_a_live_ticket,
            a_recheck_keeps_its_place,
            a_recheck_finds_the_grant_made_to_it,
            a_renewal_that_comes_too_late_skips_an_ended_ticket,
            a_dead_head_costs_its_claim,
            giving_up_leaves_no_ticket,
            a_release_of_a_nonce_that_has_nothing_changes_nothing,
            a_try_leaves_nothing_behind,
            a_key_released_and_requested_in_one_batch_goes_to_the_waiter,
            a_key_passed_on_is_given_back_in_the_same_batch,
            a_queue_lasts_for_as_long_as_somebody_asks_again,
            a_claim_is_not_a_lease_until_it_is_extended,
            a_lost_renewal_passes_the_key_on,
            a_request_that_finds_its_own_turn_is_answered_and_not_notified,
            tokens_of_a_key_rise_when_it_is_passed_on_within_a_batch,
            a_repeat_finds_the_same_block,
            in_grace_no_key_is_passed_on_and_tickets_keep_their_places,
            a_reclaim_removes_its_own_ticket,
            a_repeat_removes_its_own_ticket,
            a_shut_slot_keeps_no_ticket,
            a_shut_slot_passes_nothing_on,
            a_new_ticket_is_not_told_to_a_holder_that_knows_of_contention,
            a_ticket_is_told_to_readers,
            a_recheck_is_told_to_the_holder_every_time,
            a_holder_is_told_by_renewals_and_repeats,
            a_slot_of_a_new_rank_is_shut_until_a_step_opens_it,
            a_late_step_changes_nothing,
            a_step_changes_some_slots_and_names_the_others,
            a_stale_step_is_refused_and_writes_nothing,
            a_step_on_an_unarmed_shard_creates_nothing_but_fence_and_copy,
            a_step_ends_the_quiet_until_the_next_mark,
            a_step_in_the_name_of_the_map_it_is_quiet_at_leaves_the_quiet,
            keys_of_migrating_slots_are_checked_beside_others,
            held_keys_of_migrating_slots_are_checked_beside_others,
            tokens_rise_above_those_of_the_shard_a_slot_comes_from,
            a_seal_tells_the_last_token_when_it_is_repeated_too,
            no_step_ends_a_grace,
            a_sealed_slot_grants_nothing_and_says_where_to_ask,
            a_repeat_in_a_sealed_slot_finds_the_same_token_and_a_full_lease,
            a_sealed_slot_proves_nothing_of_what_is_held_and_takes_no_ticket,
            a_sealed_slot_proves_a_key_free_for_everybody_and_drops_the_ticket,
            a_sealed_slot_waits_for_no_ticket_that_has_ended,
            a_sealed_slot_passes_nothing_on,
            a_renewal_in_a_sealed_slot_extends_and_says_so,
            locks_of_a_leaving_slot_can_be_released,
            a_sealed_slot_in_grace_proves_nothing,
            in_a_sealed_slot_no_renewal_saves_a_record_of_an_older_arming,
            a_slot_that_comes_here_grants_nothing_without_a_proof,
            a_proof_of_holders_left_grants_no_exclusive_lock,
            slots_armed_with_a_move_grant_nothing_until_a_mover_comes,
            a_proof_is_of_one_key_and_no_other_of_its_slot,
            a_proof_is_good_for_everybody_until_the_slot_is_here,
            a_proof_counts_though_another_holds_the_key_here,
            a_proof_ends_with_its_move,
            a_request_without_proof_queues_and_a_proof_is_used_for_the_first_ticket,
            keys_held_in_an_arriving_slot_are_held,
            an_adopted_lock_is_not_free_when_it_is_released,
            in_grace_a_proof_is_not_looked_at,
            each_request_is_granted_by_its_own_capacity,
            tokens_rise_from_share_to_share,
            tokens_rise_from_a_passed_share_to_the_next,
            a_repeated_share_takes_no_more_room,
            a_release_takes_its_own_shares,
            no_newcomer_goes_before_a_ticket_that_does_not_fit,
            a_preferred_newcomer_goes_before_tickets_that_are_not,
            preferred_tickets_go_before_others_in_their_order,
            free_shares_go_to_the_first_tickets_while_they_fit,
            a_ticket_given_up_lets_the_next_ones_in,
            an_ended_share_is_passed_on_by_a_recheck,
            a_writer_that_downgrades_lets_readers_in,
            a_key_is_of_one_kind_at_a_time,
            a_key_changes_its_kind_when_its_last_holder_has_ended,
            a_try_for_a_share_leaves_nothing_behind,
            an_inspection_tells_every_holder_of_a_share,
            in_grace_a_share_is_put_back_without_room,
            after_grace_a_share_of_an_older_arming_is_lost,
            in_grace_no_share_is_put_back_beside_another_kind,
            a_sealed_slot_tells_how_many_shares_are_left,
            a_share_in_a_sealed_slot_is_renewed_and_found_again,
            shares_left_at_the_former_shard_take_room,
            a_proof_of_shares_left_is_of_its_request,
            a_proof_of_shares_left_serves_the_first_tickets,
            an_open_slot_asks_for_no_proof_of_shares,
            shares_are_brought_along_without_room,
            an_adoption_never_adds_shares,
            no_share_is_brought_along_to_another_kind,
            a_share_is_removed_alone,
            a_mover_finds_keys_with_shares,
            an_open_slot_needs_no_proof,
            a_list_frees_nothing_before_it_is_complete,
            a_list_that_names_a_key_takes_no_proof_back,
            a_list_does_nothing_where_no_slot_comes_by_that_move,
            a_list_ends_with_its_move,
            in_grace_a_list_is_taken_and_nothing_is_granted,
            an_unarmed_shard_takes_no_list,
            in_grace_a_scan_lists_nothing_and_nothing_is_empty,
            still_held_refuses_slots_of_other_moves,
            an_unarmed_shard_has_nothing_left_to_tell,
            a_repeated_adoption_extends,
            an_adoption_takes_a_key_from_lower_tokens_alone,
            an_adoption_compares_the_token_of_the_former_shard,
            an_adoption_raises_its_own_record_to_a_greater_token,
            an_adoption_outside_its_move_is_none,
            an_adoption_that_comes_after_all_was_open_finds_its_own_or_nothing,
            in_grace_a_lock_is_brought_along_and_taken_away,
            an_adoption_removes_its_own_ticket_and_tells_of_others,
            moving_operations_on_one_key_keep_their_order,
            an_unarmed_shard_adopts_and_removes_nothing,
            an_unarmed_shard_carries_nothing,
            a_repeated_force_does_not_restart_grace,
            a_force_of_a_later_epoch_waits_anew_and_cuts_nothing_short,
            a_force_that_comes_late_changes_nothing,
            a_slot_that_comes_or_goes_is_opened_by_force_too,
            a_force_ends_the_quiet,
            a_stale_force_and_one_at_an_unarmed_shard_open_nothing,
            ; $(#[$rules])?
        );
    };
    (@each $make:expr; $($property:ident,)+; $(#[$attribute:meta])?) => {
        $crate::lock_conformance!(@tests $make; [$(#[$attribute])?] $($property)+);
    };
    (@tests $make:expr; $attribute:tt $($property:ident)+) => {$(
        $crate::lock_conformance!(@test $make; $attribute $property);
    )+};
    (@test $make:expr; [$(#[$attribute:meta])?] $property:ident) => {
        #[tokio::test]
        $(#[$attribute])?
        async fn $property() {
            let fixture = $make.await;
            $crate::shard::$property(&fixture).await;
        }
    };
}
