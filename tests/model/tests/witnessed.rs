//! A clock that processes put forward: the clean configurations hold, and no rule may be left out.

use crate::common::{assert_breaks, assert_holds};
use ringfence_model::{
    Named,
    witnessed::{Rule, clean, control},
};

/// More states than any clean configuration has.
const CLEAN_CAP: usize = 3_000_000;

hold! {
    a_holder_that_renews_and_a_waiter: "renewing",
    a_waiter_that_hears_late_of_its_claim: "claiming",
    processes_that_may_give_up: "giving-up" long,
    a_process_that_knows_nothing_of_the_clock: "coming",
    requests_that_overtake_each_other: "overtaking" long,
    commits_without_a_read: "recalling",
}

break_without! {
    a_tick_that_replaces_any_clock: TicksDependOnTheClock long,
    a_tick_that_counts_from_the_sending: TicksCountFromTheAnswer long,
    a_tick_that_counts_all_time: TicksAreBounded,
    an_end_without_slack: EndsHaveSlack,
    a_slack_that_counts_from_this_clock: SlackCountsFromAnEarlierClock,
    a_slack_that_counts_to_the_sending: SlackCountsToTheAnswer,
    a_slack_of_one_tick_without_a_read: SlackWithoutAReadIsWhole,
    a_deadline_that_counts_from_the_answer: DeadlinesCountFromTheSending long,
}

fn must_hold(name: &str) {
    let config = clean().into_iter().find(|config| config.name == name);
    let verdict = assert_holds::<_, Rule>(name, config, CLEAN_CAP);
    assert!(verdict.exhausted, "{verdict}");
}

fn must_break_without(rule: Rule) {
    assert_breaks(&control(rule));
}
