//! The checker passes what a right lock does, and finds each thing done wrong: that rule, no other.

mod composed;
mod majority;
mod mutations;
mod queueing;
mod reference;
mod shares;
mod stops;

use std::collections::BTreeSet;

use ringfence_chaos::{
    checker::{Counts, Minima, Rule, check},
    history::History,
};

const SEEDS: std::ops::Range<u64> = 0..200;

/// What each generated history has at least.
fn minima() -> Minima {
    Counts {
        grants: 10,
        grants_in_faults: 1,
        ..Counts::default()
    }
}

/// Applies `mutate` wherever it can be, and demands that `rule` is broken, and nothing else.
fn fires(rule: Rule, mutate: impl Fn(&History) -> Option<History>) {
    let mut mutated = 0;
    for seed in SEEDS {
        let Some(history) = mutate(&reference::history(seed)) else {
            continue;
        };
        mutated += 1;
        let violations = check(&history, &minima());
        let rules: BTreeSet<Rule> = violations.iter().map(|violation| violation.rule).collect();
        let listed: String = violations
            .iter()
            .map(|violation| format!("{violation}\n"))
            .collect();
        assert_eq!(rules, BTreeSet::from([rule]), "seed {seed}:\n{listed}");
    }
    assert!(
        mutated * 2 > SEEDS.end,
        "only {mutated} histories could be mutated"
    );
}

#[test]
fn what_a_right_lock_does_passes() {
    let mut total = Counts::default();
    for seed in SEEDS {
        let history = reference::history(seed);
        let violations = check(&history, &minima());
        let listed: String = violations
            .iter()
            .map(|violation| format!("{violation}\n"))
            .collect();
        assert!(violations.is_empty(), "seed {seed}:\n{listed}");
        let counts = Counts::of(&history);
        total.rejected += counts.rejected;
        total.reclaimed += counts.reclaimed;
        total.unknown += counts.unknown;
        total.lost += counts.lost;
        total.behind += counts.behind;
        total.turns += counts.turns;
        total.handed += counts.handed;
    }
    let Counts {
        rejected,
        reclaimed,
        unknown,
        lost,
        behind,
        turns,
        handed,
        ..
    } = total;
    assert!(
        [rejected, reclaimed, unknown, lost, behind, turns, handed]
            .iter()
            .all(|count| *count > 100),
        "{total:?}"
    );
}

/// Applies `change` wherever it can be, and demands that nothing is found.
fn passes(change: impl Fn(&History) -> Option<History>) {
    let histories = SEEDS.map(reference::history);
    let changed: Vec<_> = histories.filter_map(|history| change(&history)).collect();
    assert!(changed.len() * 2 > SEEDS.end as usize);
    for history in changed {
        assert!(check(&history, &minima()).is_empty());
    }
}

#[test]
fn coordinators_excuse_no_loss_and_stopped_processes_do() {
    passes(|history| Some(mutations::of_service(history)));
}

#[test]
fn a_lock_that_a_coordinator_told_late_may_be_lost() {
    passes(mutations::lost_as_a_coordinator_told_it_late);
}

#[test]
fn a_holder_does_not_know_that_its_lock_was_taken_by_force() {
    passes(mutations::hold_past_the_deadline_by_force);
}

#[test]
fn a_waiter_whose_slot_moves_queues_again() {
    passes(queueing::newcomer_granted_before_one_whose_slot_moves);
}

#[test]
fn a_waiter_whose_slot_turns_back_has_no_certain_place() {
    passes(queueing::newcomer_granted_before_one_whose_slot_turns_back);
}

#[test]
fn a_waiter_may_lose_by_force_what_it_does_not_know_to_have() {
    passes(queueing::newcomer_granted_before_one_that_was_released_by_force);
}

#[test]
fn a_waiter_for_a_short_hold_may_miss_its_turn() {
    passes(queueing::newcomer_granted_before_one_whose_turn_is_short);
}

#[test]
fn a_violation_is_told_in_words_with_its_events() {
    let history =
        (0..).find_map(|seed| mutations::hold_past_the_deadline(&reference::history(seed)));
    let violations = check(&history.unwrap(), &minima());
    let told = violations[0].to_string();
    assert!(told.starts_with("mutual exclusion of key-"), "{told}");
    assert!(
        told.contains("still believed in its grant with token"),
        "{told}"
    );
    assert!(told.lines().count() >= 3, "{told}");
}

macro_rules! each_fires_its_rule {
    ($from:ident: $($mutation:ident => $rule:ident;)+) => {
        $(#[test]
        fn $mutation() {
            fires(Rule::$rule, $from::$mutation);
        })+
    };
}

each_fires_its_rule! { mutations:
    hold_past_the_deadline => Exclusion;
    later_deadline_logged => Deadline;
    later_deadline_logged_by_a_renewal => Deadline;
    deadline_from_the_receipt => Deadline;
    write_after_the_deadline => Belief;
    write_after_the_release => Belief;
    write_without_a_grant => Belief;
    smaller_token_accepted => Fence;
    refused_without_a_greater => Fence;
    token_of_nobody_accepted => Fence;
    token_granted_twice => Uniqueness;
    tokens_swapped => Order;
    renewed_after_the_release => Resurrection;
    renewal_overtaken_by_the_release => Resurrection;
    renewed_after_a_later_grant => Resurrection;
    renewed_after_a_later_grant_by_force => Resurrection;
    renewed_after_the_end_of_a_fixed_hold => Deadline;
    release_answered_not_there => Loss;
    renewal_answered_lost => Loss;
    lost_though_a_coordinator_served => Loss;
    nobody_granted_after_healing => Liveness;
    resize_without_an_end => Liveness;
    asked_without_an_answer => Liveness;
    answered_much_too_late => Liveness;
    no_grants_during_faults => Minima;
}

each_fires_its_rule! { queueing:
    newcomer_granted_before_a_waiter => Queue;
    newcomer_granted_before_one_that_kept_its_place => Queue;
    newcomer_granted_by_the_lead_before_a_waiter => Queue;
    ticket_overtaken_by_a_later_one => Queue;
    overtaken_in_its_own_process => Line;
    handed_on_though_another_waits => HandOff;
    turn_believed_in_for_a_whole_lease => Deadline;
    turn_counted_from_its_receipt => Deadline;
    handed_on_with_a_deadline_from_nowhere => Deadline;
    handed_on_past_the_deadline => Deadline;
    handed_on_before_it_was_given_back => Exclusion;
    handed_on_with_the_same_token => Uniqueness;
    handed_on_with_an_earlier_token => Order;
}
