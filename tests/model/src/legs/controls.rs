//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule,
    properties::{ALL_OR_NOTHING, CONSERVED, ONCE},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (config, violates) = match rule {
        Rule::PromisesKeepRoom | Rule::RefusalsAreRecorded => {
            (Configuration::used("control", true), ALL_OR_NOTHING)
        }
        Rule::PromisesOutliveClosing
        | Rule::AllPromiseFirst
        | Rule::OnlyRefusalsTakeBack
        | Rule::OnlyTheEndTakesBack => (Configuration::closing("control", true), ALL_OR_NOTHING),
        Rule::DecidedBeforePaid | Rule::DecisionsStand => {
            (Configuration::closing("control", true), CONSERVED)
        }
        Rule::OneDecision => (Configuration::twice("control"), ONCE),
        Rule::PinnedUntilFinished => (Configuration::forgetting("control", true), CONSERVED),
    };
    Control {
        rule,
        config,
        violates,
    }
}
