//! The topology's record: the clean configurations hold as far as fits into a test, and no rule may be
//! left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    topology::{Rule, clean, control},
};

/// States to generate for a clean configuration: each is also asked whether it can come to rest.
const CLEAN_CAP: usize = 500_000;

hold! {
    a_home_that_restarts: "home",
    a_home_and_a_shard_that_restart: "home-and-shard" long,
    two_recoveries: "race" long,
    a_home_that_restarts_twice: "home-twice" long,
    an_owner_that_is_not_home: "owner-not-home" long,
    three_shards: "three-shards" long,
    three_shards_and_two_moves: "three-shards-two-moves" long,
    three_shards_and_one_that_restarts: "three-shards-shard" long,
    leases_longer_than_a_tick: "longer-lease" long,
    a_member_attested_dead: "death" long,
    all_members_empty: "loss" long,
    a_home_that_restarts_without_a_clock: "clockless-home",
    two_recoveries_without_a_clock: "clockless-race" long,
    a_home_that_restarts_twice_without_a_clock: "clockless-home-twice" long,
    three_shards_without_a_clock: "clockless-three-shards" long,
    a_shard_that_restarts_without_a_clock: "clockless-shard" long,
    an_address_that_leads_there_and_back: "there-and-back",
    an_address_that_leads_there_and_back_and_there: "there-and-back-and-there",
    an_address_that_leads_there_and_back_while_the_home_restarts: "there-and-back-home" long,
    a_flushed_shard: "flushed",
    a_flushed_shard_while_the_home_restarts: "flushed-home" long,
    a_shard_armed_anew: "armed-anew",
    a_shard_armed_anew_while_the_home_restarts: "armed-anew-home" long,
}

break_without! {
    a_rolled_back_record_used: UsedInItsLife,
    a_recovery_without_fences: RecoverFences long,
    a_silent_member_skipped: NobodyIsSkipped long,
    members_read_before_the_fence: AnsweredWithTheFence long,
    an_incarnation_shared_by_two_engines: IncarnationIsItsOwn long,
    unarmed_members_not_fenced: UnarmedAreFenced long,
    the_first_copy_instead_of_the_newest: NewestIsRestored long,
    a_record_written_blindly: RestoredIfStillFenced long,
    moves_that_keep_their_epoch: MovesArePlannedAgain,
    steps_that_ignore_the_fence: StepsHeedTheFence long,
    arms_that_ignore_the_fence: ArmsHeedTheFence,
    steps_that_leave_no_copy: StepsLeaveACopy long,
    arms_that_leave_no_copy: ArmsLeaveACopy,
    neither_a_copy_ahead_nor_a_clock: CopiedAhead,
    a_life_that_comes_back_and_goes_on: ReplacedIsArmedAnew,
    a_life_armed_anew_without_grace: AnewHasItsGrace,
    a_request_to_a_life_that_was_replaced: RequestsGoToTheNamedLife,
    a_step_at_a_shard_that_is_to_be_armed_anew: StepsGoToTheArmed,
    a_recovery_that_takes_any_armed_life: RecoveredIfArmedAsNamed,
    a_flushed_shard_armed_with_its_old_epoch: EpochIsUsedOnce,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    assert_holds::<_, Rule>(name, config, CLEAN_CAP);
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
