//! What every [`Shard`] must do. One function a property; run them all with
//! [`shard_conformance!`](crate::shard_conformance).
//!
//! Whatever holds on a quiet shard must hold on one that looks at every slot: most properties are
//! checked both ways.

mod arming;
mod batches;
mod cancel;
mod desk;
mod fence;
mod grants;
mod links;
mod slots;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

pub use arming::*;
pub use batches::*;
pub use cancel::*;
pub use fence::*;
pub use grants::*;
pub use links::*;
pub use slots::*;

use super::Shard;

/// A shard to be tested, and what the suite cannot do to it by the contract alone.
///
/// One value serves one test and shares nothing with any other.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The shard: empty, and not armed. It can be restarted, and is another shard then.
    fn shard(&self) -> Arc<dyn Shard>;

    /// Id of a topology that may arm it.
    fn topology(&self) -> String;

    /// Lets `length` pass on the shard's clock.
    async fn elapse(&self, length: Duration);

    /// Makes every request, and every answer, of connections to come take many turns.
    async fn slow_down(&self);

    /// Lets whatever is under way get on a little.
    async fn turn(&self);

    /// Sets the counter of the last token made. The shard is armed.
    async fn set_counter(&self, counter: u64);

    /// Ends the shard's life and begins another, without state, with all records of the former
    /// one: as a server that saves them.
    async fn restart(&self);
}

/// Makes one test of each property. The argument is a future of a
/// [`Fixture`](crate::shard::conformance::Fixture), which lives as long as its test.
///
/// # Examples
///
/// ```ignore
/// ringfence_coordinator::shard_conformance!(async { MyFixture::new().await });
/// ```
#[macro_export]
macro_rules! shard_conformance {
    ($make:expr) => {
        $crate::shard_conformance!(@each $make;
            a_held_key_refuses_another_nonce,
            a_repeated_acquire_finds_the_same_token_and_a_full_lease,
            a_renewal_gives_a_full_lease_and_keeps_the_token,
            tokens_rise_across_keys_releases_and_expiry,
            an_expired_lease_is_free_and_the_next_token_is_higher,
            a_stale_nonce_can_neither_renew_nor_release,
            a_second_release_finds_nothing,
            every_record_has_an_end,
            an_inspection_tells_holder_token_and_remaining_time,
            labels_come_back_as_they_were_sent,
            keys_with_hostile_bytes_do_not_touch_each_other,
            operations_on_one_key_keep_their_order,
            each_operation_of_a_batch_has_its_own_answer,
            a_full_batch_is_granted_in_order,
            every_acquire_uses_up_one_number,
            at_the_end_of_the_counter_nothing_new_is_granted,
            a_batch_that_does_not_fit_below_the_end_of_the_counter_uses_no_number,
            an_unarmed_shard_answers_nothing_and_writes_nothing,
            arming_twice_changes_nothing,
            arming_twice_does_not_end_a_grace,
            in_grace_nobody_new_is_granted_and_no_repeat_answered,
            in_grace_a_renewal_reclaims,
            in_grace_only_a_higher_token_reclaims_from_another,
            after_grace_nothing_is_reclaimed,
            after_grace_a_record_of_an_older_arming_is_not_live,
            after_grace_its_own_renewal_still_saves_an_older_record,
            in_grace_a_record_of_an_older_arming_is_live,
            tokens_rise_across_lives,
            a_shut_slot_answers_moved_with_its_epoch,
            a_shut_slot_is_moved_in_grace_too,
            a_shut_slot_still_gives_back,
            quiet_comes_of_a_settle_alone_and_at_its_version_alone,
            a_settle_fails_over_a_shut_slot,
            a_settle_fails_in_grace,
            a_failed_settle_ends_the_quiet,
            a_new_life_is_not_quiet,
            quiet_and_full_path_answer_alike,
            a_raise_makes_tokens_rise_above_all_earlier,
            a_raise_keeps_the_quiet,
            a_lower_raise_changes_nothing,
            a_stale_arming_is_refused_and_writes_nothing,
            a_stale_settle_is_refused_and_writes_nothing,
            a_stale_raise_is_refused_and_writes_nothing,
            whatever_carries_an_incarnation_raises_the_fence,
            connecting_ends_the_former_connection,
            a_former_connection_that_is_gone_is_no_error,
            connecting_ends_no_connection_that_is_not_named,
            a_former_connection_of_another_life_ends_none,
            a_link_of_an_earlier_life_does_nothing,
            an_acquire_dropped_after_any_turn_is_settled_by_the_next_connection,
            a_renewal_dropped_after_any_turn_loses_nothing,
            a_release_dropped_after_any_turn_is_settled_by_the_next_connection,
            a_connect_dropped_after_any_turn_leaves_nothing_behind,
        );
    };
    (@each $make:expr; $($property:ident),+ $(,)?) => {$(
        #[tokio::test]
        async fn $property() {
            let fixture = $make.await;
            $crate::shard::conformance::$property(&fixture).await;
        }
    )+};
}
