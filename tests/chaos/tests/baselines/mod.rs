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

use std::{collections::BTreeSet, fmt::Debug, future::Future, time::Duration};

use ringfence_chaos::{
    checker::{Counts, Rule, check},
    counters::{self, Violation},
    history::History,
};
use ringfence_coordinator::failpoint::{self, switch_off};
use tokio::{sync::RwLock, time::timeout};

/// Rules are switched off in the whole process: a schedule that lacks one is alone.
static RULES: RwLock<()> = RwLock::const_new(());

fn broken(history: &History) -> BTreeSet<Rule> {
    let violations = check(history, &Counts::default());
    for violation in &violations {
        println!("{violation}");
    }
    violations.iter().map(|violation| violation.rule).collect()
}

/// The time limit of a control.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats `schedule` until its outcome is `found`: on a slow machine a lease may end too early for that.
async fn repeat_until<T: Debug>(
    what: &str,
    schedule: impl AsyncFn() -> T,
    found: impl Fn(&T) -> bool,
) {
    let mut last = None;
    let repeats = async {
        loop {
            let outcome = schedule().await;
            if found(&outcome) {
                return;
            }
            last = Some(outcome);
        }
    };
    let is_found = timeout(PATIENCE, repeats).await.is_ok();
    assert!(is_found, "{what}: not within {PATIENCE:?}: {last:?}");
}

/// Repeats `schedule` while `rule` is switched off, until its outcome is `found`.
async fn without<T: Debug>(
    rule: failpoint::Rule,
    schedule: impl AsyncFn() -> T,
    found: impl Fn(&T) -> bool,
) {
    let _alone = RULES.write().await;
    let _off = switch_off(rule);
    repeat_until(&format!("{rule:?} off"), schedule, found).await;
}

/// Without `rule` the schedule breaks `breaks`, with it nothing.
async fn is_needed<F: Future<Output = History>>(
    rule: failpoint::Rule,
    breaks: Rule,
    schedule: impl Fn() -> F,
) {
    let breaks = |rules: &BTreeSet<Rule>| rules.contains(&breaks);
    without(rule, async || broken(&schedule().await), breaks).await;
    let _all = RULES.read().await;
    let with = broken(&schedule().await);
    assert!(with.is_empty(), "{rule:?} on: {with:?}");
}

/// Without `rule` the schedule loses or makes money, with it nothing is wrong.
async fn keeps_money<F: Future<Output = Vec<Violation>>>(
    rule: failpoint::Rule,
    schedule: impl Fn() -> F,
) {
    let conservation = counters::Rule::Conservation;
    let breaks = |violations: &Vec<Violation>| {
        let mut violations = violations.iter();
        violations.any(|violation| violation.rule == conservation)
    };
    without(rule, async || schedule().await, breaks).await;
    let _all = RULES.read().await;
    let with = schedule().await;
    assert!(with.is_empty(), "{rule:?} on: {with:?}");
}

/// `plain` has two holders, and `ours`, in the same schedule, breaks nothing.
async fn has_two_holders<P: Future<Output = History>, O: Future<Output = History>>(
    plain: impl Fn() -> P,
    ours: impl Fn() -> O,
) {
    let _all = RULES.read().await;
    let breaks = |rules: &BTreeSet<Rule>| rules.contains(&Rule::Exclusion);
    repeat_until("two holders", async || broken(&plain().await), breaks).await;
    let rules = broken(&ours().await);
    assert!(rules.is_empty(), "{rules:?}");
}

#[tokio::test]
async fn plain_set_nx_px_has_two_holders_when_its_server_restarts() {
    has_two_holders(plain::restarted_empty, schedules::restarted_empty).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn plain_set_nx_px_has_two_holders_when_its_ring_changes() {
    has_two_holders(plain::resized_while_held, resizing::held_while_it_moves).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn redlock_without_a_delay_after_a_restart_has_two_holders() {
    has_two_holders(majority::redlock_restarted_empty, majority::restarted_empty).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_waiter_that_only_waits_for_a_message_is_overtaken() {
    let _all = RULES.read().await;
    let overtaken = async || broken(&subscribing::newcomer_behind_a_waiter().await);
    let is_broken = |rules: &BTreeSet<Rule>| *rules == BTreeSet::from([Rule::Queue]);
    repeat_until("overtaken", overtaken, is_broken).await;
    let ours = async || {
        let history = schedules::newcomer_behind_a_waiter().await;
        let rules = broken(&history);
        assert!(rules.is_empty(), "{rules:?}");
        Counts::of(&history).behind
    };
    repeat_until("a newcomer behind the waiter", ours, |behind| *behind > 0).await;
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
#[ignore = "long: controls run one after the other"]
async fn without_grace_a_restarted_replica_makes_two_holders() {
    let (rule, breaks) = (failpoint::Rule::Grace, Rule::Exclusion);
    is_needed(rule, breaks, majority::restarted_empty).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_majority_without_confirm_grants_tokens_that_fall() {
    let (rule, breaks) = (failpoint::Rule::Confirm, Rule::Order);
    is_needed(rule, breaks, majority::granted_by_another_majority).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_token_confirmed_at_a_sealed_replica_is_above_that_of_the_next_holder() {
    let rule = failpoint::Rule::ConfirmWhereOpen;
    is_needed(rule, Rule::Order, replicas::confirmed_after_the_seal).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
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
#[ignore = "long: controls run one after the other"]
async fn a_replica_opened_by_force_at_the_epoch_of_the_removal_grants_tokens_that_fall() {
    let rule = failpoint::Rule::EpochAfterViews;
    is_needed(rule, Rule::Order, replicas::confirmed_at_a_dead_shard).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_flushed_shard_that_makes_tokens_of_its_former_epoch_repeats_them() {
    let rule = failpoint::Rule::FreshTokens;
    is_needed(rule, Rule::Uniqueness, schedules::flushed).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn run_id_alone_as_the_life_makes_two_holders() {
    let rule = failpoint::Rule::ReplicationId;
    is_needed(rule, Rule::Exclusion, schedules::demoted_and_promoted).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_connection_that_outlives_demotion_and_promotion_makes_two_holders() {
    let rule = failpoint::Rule::LifeInScript;
    is_needed(rule, Rule::Exclusion, schedules::demoted_and_promoted).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_release_that_overtakes_a_renewal_in_grace_leaves_a_ghost() {
    let rule = failpoint::Rule::ReleaseBehindRenewal;
    is_needed(rule, Rule::Resurrection, schedules::released_while_renewing).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_list_made_before_the_seal_makes_two_holders() {
    let rule = failpoint::Rule::ListAfterSeal;
    is_needed(rule, Rule::Exclusion, resizing::taken_once_it_was_listed).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_slot_opened_before_its_former_shard_is_empty_has_two_holders() {
    let rule = failpoint::Rule::OpenWhenEmpty;
    is_needed(rule, Rule::Exclusion, resizing::held_while_it_moves).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_late_step_that_is_taken_makes_two_holders() {
    let rule = failpoint::Rule::StepGuard;
    let schedule = resizing::opened_late_by_an_earlier_move;
    is_needed(rule, Rule::Exclusion, schedule).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn already_yours_outside_its_move_makes_two_holders() {
    let rule = failpoint::Rule::AdoptByMove;
    let schedule = resizing::brought_along_while_it_is_turned_back;
    is_needed(rule, Rule::Exclusion, schedule).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn without_grace_a_restart_makes_more_permits_than_there_are() {
    let (rule, breaks) = (failpoint::Rule::Grace, Rule::Exclusion);
    is_needed(rule, breaks, shares::restarted_empty).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn room_without_the_shares_left_at_the_former_shard_makes_permits() {
    let (rule, breaks) = (failpoint::Rule::RoomLeft, Rule::Exclusion);
    is_needed(rule, breaks, shares::held_while_it_moves).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_newcomer_that_fits_goes_before_a_waiter_that_does_not() {
    let (rule, breaks) = (failpoint::Rule::NoBarging, Rule::Queue);
    let schedule = shares::newcomer_for_one_behind_a_waiter_for_two;
    is_needed(rule, breaks, schedule).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_lend_that_debits_again_when_repeated_loses_money() {
    keeps_money(failpoint::Rule::LendOnce, accounts::lent_without_an_answer).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn ids_that_are_not_remembered_make_money() {
    let schedule = accounts::deposited_without_an_answer;
    keeps_money(failpoint::Rule::RememberIds, schedule).await;
}

#[tokio::test]
#[ignore = "long: controls run one after the other"]
async fn a_source_that_takes_its_money_back_by_itself_makes_money() {
    let schedule = accounts::swept_amid_a_transfer;
    keeps_money(failpoint::Rule::FinishByDestination, schedule).await;
}
