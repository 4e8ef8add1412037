//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule,
    properties::{COMES_TO_REST, EPOCHS_MEAN_ONE_THING, ONE_HOLDER},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (violates, config) = match rule {
        Rule::UsedInItsLife
        | Rule::RecoverFences
        | Rule::NobodyIsSkipped
        | Rule::AnsweredWithTheFence
        | Rule::IncarnationIsItsOwn
        | Rule::NewestIsRestored
        | Rule::StepsHeedTheFence
        | Rule::StepsLeaveACopy => (ONE_HOLDER, twice()),
        Rule::ArmsHeedTheFence | Rule::ArmsLeaveACopy => (ONE_HOLDER, new().racing().restarting()),
        Rule::FencedInTheNotedLife => (
            COMES_TO_REST,
            Configuration {
                moves: 2,
                ..twice().restarting()
            },
        ),
        Rule::UnarmedAreFenced | Rule::MovesArePlannedAgain | Rule::RestoredIfStillFenced => {
            (COMES_TO_REST, twice())
        }
        Rule::CopiedAhead => (EPOCHS_MEAN_ONE_THING, twice().clockless()),
    };
    Control {
        rule,
        config,
        violates,
    }
}

fn new() -> Configuration {
    Configuration::new("control")
}

fn twice() -> Configuration {
    new().twice().racing()
}
