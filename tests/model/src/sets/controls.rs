//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule,
    properties::{AFTER_A_CRASH, ALL, IN_TIME, NO_CIRCLE, NOTHING},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (config, violates) = match rule {
        Rule::OneOrder => (Configuration::opposite("control"), NO_CIRCLE),
        Rule::NothingBehindTheFirstRefusal => (Configuration::circle("control"), NO_CIRCLE),
        Rule::FailedTriesGiveBack => (Configuration::tries("control"), NOTHING),
        Rule::AbandonedRequestsAreReleased => (Configuration::opposite("control"), NOTHING),
        Rule::HeldInTheEnd => (Configuration::losing("control"), ALL),
        Rule::OneDeadline => (Configuration::circle("control"), IN_TIME),
        Rule::LeasesEnd => (Configuration::opposite("control"), AFTER_A_CRASH),
    };
    Control {
        rule,
        config,
        violates,
    }
}
