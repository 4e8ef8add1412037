//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule, Survival,
    properties::{COMES_TO_REST, EPOCHS_MEAN_ONE_THING, ONE_HOLDER, TOKENS_RISE},
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
        | Rule::NewestIsRestored
        | Rule::StepsHeedTheFence
        | Rule::StepsLeaveACopy => (ONE_HOLDER, twice()),
        Rule::ArmsHeedTheFence | Rule::ArmsLeaveACopy => (ONE_HOLDER, emptied(new().restarting())),
        Rule::IncarnationIsItsOwn => (
            ONE_HOLDER,
            Configuration {
                moves: 2,
                ..set_back()
            },
        ),
        Rule::RestoredIfStillFenced => (COMES_TO_REST, idle(set_back().restarting())),
        Rule::UnarmedAreFenced => (COMES_TO_REST, twice().clockless()),
        Rule::MovesArePlannedAgain => (COMES_TO_REST, idle(emptied(twice()))),
        Rule::CopiedAhead => (EPOCHS_MEAN_ONE_THING, twice().clockless()),
        Rule::ReplacedIsArmedAnew | Rule::AnewHasItsGrace | Rule::RequestsGoToTheNamedLife => {
            (ONE_HOLDER, retargeted())
        }
        Rule::RecoveredIfArmedAsNamed => (
            COMES_TO_REST,
            Configuration {
                home_restarts: 1,
                survives: &[Survival::All],
                ..retargeted()
            },
        ),
        Rule::StepsGoToTheArmed => (
            COMES_TO_REST,
            Configuration {
                moves: 1,
                retargets: 0,
                rearms: 1,
                ..retargeted()
            },
        ),
        Rule::EpochIsUsedOnce => (
            TOKENS_RISE,
            Configuration {
                retargets: 0,
                flushes: 1,
                ..retargeted()
            },
        ),
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

/// Homes come back empty.
fn emptied(config: Configuration) -> Configuration {
    Configuration {
        survives: &[Survival::Nothing],
        ..config
    }
}

/// The home comes back with the record of before.
fn set_back() -> Configuration {
    Configuration {
        survives: &[Survival::AllButTheLast],
        ..new().three().racing()
    }
}

/// The owner's address leads to its replica, and back.
fn retargeted() -> Configuration {
    Configuration {
        owner: 1,
        moves: 0,
        home_restarts: 0,
        retargets: 2,
        ..new()
    }
}

/// No process requests the lock.
fn idle(config: Configuration) -> Configuration {
    Configuration {
        grants: 0,
        ..config
    }
}
