//! What each rule is there for: with it switched off a schedule on real servers reaches a violation,
//! and the checker of the chaos runs finds it; with it on, the same schedule finds nothing.

mod accounts;
mod majority;
mod plain;
mod replicas;
mod resizing;
mod ring;
mod schedules;
mod shares;
mod stage;
mod subscribing;

use std::{collections::BTreeSet, future::Future};

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    counters::{self, Violation},
    history::History,
};
use ringfence_coordinator::failpoint::{self, switch_off};
use tokio::sync::RwLock;

/// Rules are switched off in the whole process: a schedule that lacks one is alone.
static RULES: RwLock<()> = RwLock::const_new(());

fn broken(history: &History) -> BTreeSet<Rule> {
    let violations = check(history, &Counts::default());
    for violation in &violations {
        println!("{violation}");
    }
    violations.iter().map(|violation| violation.rule).collect()
}

/// The outcome of a schedule while `rule` is switched off.
async fn without<T>(rule: failpoint::Rule, schedule: impl AsyncFn() -> T) -> T {
    let _alone = RULES.write().await;
    let _off = switch_off(rule);
    schedule().await
}

/// Without `rule` the schedule breaks `breaks`, with it nothing.
async fn is_needed<F: Future<Output = History>>(
    rule: failpoint::Rule,
    breaks: Rule,
    schedule: impl Fn() -> F,
) {
    let without = without(rule, async || broken(&schedule().await)).await;
    assert!(without.contains(&breaks), "{rule:?} off: {without:?}");
    let _all = RULES.read().await;
    let with = broken(&schedule().await);
    assert!(with.is_empty(), "{rule:?} on: {with:?}");
}

/// Without `rule` the schedule loses or makes money, with it nothing is wrong.
async fn keeps_money<F: Future<Output = Vec<Violation>>>(
    rule: failpoint::Rule,
    schedule: impl Fn() -> F,
) {
    let without = without(rule, async || schedule().await).await;
    let conservation = counters::Rule::Conservation;
    let broken = without
        .iter()
        .any(|violation| violation.rule == conservation);
    assert!(broken, "{rule:?} off: {without:?}");
    let _all = RULES.read().await;
    let with = schedule().await;
    assert!(with.is_empty(), "{rule:?} on: {with:?}");
}

#[tokio::test]
async fn plain_set_nx_px_has_two_holders_when_its_server_restarts() {
    let _all = RULES.read().await;
    let rules = broken(&plain::restarted_empty().await);
    assert!(rules.contains(&Rule::Exclusion), "{rules:?}");
    let rules = broken(&schedules::restarted_empty().await);
    assert!(rules.is_empty(), "{rules:?}");
}

#[tokio::test]
async fn plain_set_nx_px_has_two_holders_when_its_ring_changes() {
    let _all = RULES.read().await;
    let rules = broken(&plain::resized_while_held().await);
    assert!(rules.contains(&Rule::Exclusion), "{rules:?}");
    let rules = broken(&resizing::held_while_it_moves().await);
    assert!(rules.is_empty(), "{rules:?}");
}

#[tokio::test]
async fn redlock_without_a_delay_after_a_restart_has_two_holders() {
    let _all = RULES.read().await;
    let rules = broken(&majority::redlock_restarted_empty().await);
    assert!(rules.contains(&Rule::Exclusion), "{rules:?}");
    let rules = broken(&majority::restarted_empty().await);
    assert!(rules.is_empty(), "{rules:?}");
}

#[tokio::test]
async fn a_waiter_that_only_waits_for_a_message_is_overtaken() {
    let _all = RULES.read().await;
    let rules = broken(&subscribing::newcomer_behind_a_waiter().await);
    assert_eq!(rules, BTreeSet::from([Rule::Queue]));
    let history = schedules::newcomer_behind_a_waiter().await;
    let rules = broken(&history);
    assert!(rules.is_empty(), "{rules:?}");
    assert!(Counts::of(&history).behind > 0);
}

#[tokio::test]
async fn without_grace_a_restart_makes_two_holders() {
    is_needed(
        failpoint::Rule::Grace,
        Rule::Exclusion,
        schedules::restarted_empty,
    )
    .await;
}

#[tokio::test]
async fn without_grace_a_restarted_replica_makes_two_holders() {
    let (rule, breaks) = (failpoint::Rule::Grace, Rule::Exclusion);
    is_needed(rule, breaks, majority::restarted_empty).await;
}

#[tokio::test]
async fn a_majority_without_confirm_grants_tokens_that_fall() {
    let (rule, breaks) = (failpoint::Rule::Confirm, Rule::Order);
    is_needed(rule, breaks, majority::granted_by_another_majority).await;
}

#[tokio::test]
async fn a_token_confirmed_at_a_sealed_replica_is_above_that_of_the_next_holder() {
    let rule = failpoint::Rule::ConfirmWhereOpen;
    is_needed(rule, Rule::Order, replicas::confirmed_after_the_seal).await;
}

#[tokio::test]
async fn a_record_installed_in_a_recovery_period_makes_two_holders() {
    let rule = failpoint::Rule::ConfirmAfterGrace;
    is_needed(
        rule,
        Rule::Exclusion,
        replicas::installed_in_a_recovery_period,
    )
    .await;
}

#[tokio::test]
async fn a_replica_opened_by_force_at_the_epoch_of_the_removal_grants_tokens_that_fall() {
    let rule = failpoint::Rule::EpochAfterViews;
    is_needed(rule, Rule::Order, replicas::confirmed_at_a_dead_shard).await;
}

#[tokio::test]
async fn a_flushed_shard_that_makes_tokens_of_its_former_epoch_repeats_them() {
    let rule = failpoint::Rule::FreshTokens;
    is_needed(rule, Rule::Uniqueness, schedules::flushed).await;
}

#[tokio::test]
async fn run_id_alone_as_the_life_makes_two_holders() {
    let rule = failpoint::Rule::ReplicationId;
    is_needed(rule, Rule::Exclusion, schedules::demoted_and_promoted).await;
}

#[tokio::test]
async fn a_connection_that_outlives_demotion_and_promotion_makes_two_holders() {
    let rule = failpoint::Rule::LifeInScript;
    is_needed(rule, Rule::Exclusion, schedules::demoted_and_promoted).await;
}

#[tokio::test]
async fn a_release_that_overtakes_a_renewal_in_grace_leaves_a_ghost() {
    let rule = failpoint::Rule::ReleaseBehindRenewal;
    is_needed(rule, Rule::Resurrection, schedules::released_while_renewing).await;
}

#[tokio::test]
async fn a_list_made_before_the_seal_makes_two_holders() {
    let rule = failpoint::Rule::ListAfterSeal;
    is_needed(rule, Rule::Exclusion, resizing::taken_once_it_was_listed).await;
}

#[tokio::test]
async fn a_slot_opened_before_its_former_shard_is_empty_has_two_holders() {
    let rule = failpoint::Rule::OpenWhenEmpty;
    is_needed(rule, Rule::Exclusion, resizing::held_while_it_moves).await;
}

#[tokio::test]
async fn a_late_step_that_is_taken_makes_two_holders() {
    let rule = failpoint::Rule::StepGuard;
    let schedule = resizing::opened_late_by_an_earlier_move;
    is_needed(rule, Rule::Exclusion, schedule).await;
}

#[tokio::test]
async fn already_yours_outside_its_move_makes_two_holders() {
    let rule = failpoint::Rule::AdoptByMove;
    let schedule = resizing::brought_along_while_it_is_turned_back;
    is_needed(rule, Rule::Exclusion, schedule).await;
}

#[tokio::test]
async fn without_grace_a_restart_makes_more_permits_than_there_are() {
    let (rule, breaks) = (failpoint::Rule::Grace, Rule::Exclusion);
    is_needed(rule, breaks, shares::restarted_empty).await;
}

#[tokio::test]
async fn room_without_the_shares_left_at_the_former_shard_makes_permits() {
    let (rule, breaks) = (failpoint::Rule::RoomLeft, Rule::Exclusion);
    is_needed(rule, breaks, shares::held_while_it_moves).await;
}

#[tokio::test]
async fn a_newcomer_that_fits_goes_before_a_waiter_that_does_not() {
    let (rule, breaks) = (failpoint::Rule::NoBarging, Rule::Queue);
    let schedule = shares::newcomer_for_one_behind_a_waiter_for_two;
    is_needed(rule, breaks, schedule).await;
}

#[tokio::test]
async fn a_lend_that_debits_again_when_repeated_loses_money() {
    keeps_money(failpoint::Rule::LendOnce, accounts::lent_without_an_answer).await;
}

#[tokio::test]
async fn ids_that_are_not_remembered_make_money() {
    let schedule = accounts::deposited_without_an_answer;
    keeps_money(failpoint::Rule::RememberIds, schedule).await;
}

#[tokio::test]
async fn a_source_that_takes_its_money_back_by_itself_makes_money() {
    let schedule = accounts::swept_amid_a_transfer;
    keeps_money(failpoint::Rule::FinishByDestination, schedule).await;
}
