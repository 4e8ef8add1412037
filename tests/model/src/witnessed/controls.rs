//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule,
    properties::{FREE_AGAIN, ONE_HOLDER},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let watching = Configuration::watching("control");
    let giving_up = Configuration::giving_up("control");
    let removing = Configuration::removing("control");
    let (violates, config) = match rule {
        Rule::TakeOversCheckTheBeat
        | Rule::DeadlinesCountFromTheSending
        | Rule::WaitsCountFromTheAnswer => (ONE_HOLDER, watching),
        Rule::ClaimsGoByTheDocument => (FREE_AGAIN, giving_up),
        Rule::StoreTimersHaveSlack | Rule::GrantsWriteTheBeat => (ONE_HOLDER, removing),
    };
    Control {
        rule,
        config,
        violates,
    }
}
