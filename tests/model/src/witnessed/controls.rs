//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{Configuration, Rule, properties::ONE_HOLDER};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let config = match rule {
        Rule::TicksDependOnTheClock
        | Rule::TicksCountFromTheAnswer
        | Rule::DeadlinesCountFromTheSending => Configuration::overtaking("control"),
        Rule::EndsHaveSlack | Rule::SlackCountsFromAnEarlierClock => {
            Configuration::renewing("control")
        }
        Rule::SlackCountsToTheAnswer => Configuration::claiming("control"),
        Rule::SlackWithoutAReadIsWhole => Configuration::recalling("control"),
        Rule::TicksAreBounded => Configuration::coming("control"),
    };
    Control {
        rule,
        config,
        violates: ONE_HOLDER,
    }
}
