//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule,
    properties::{ARMED_BY_ITS_OWN, COMES_INTO_USE, ONE_IN_USE},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let overlapping = Configuration::overlapping("control");
    let containing = Configuration::containing("control").restarting();
    let (violates, config) = match rule {
        Rule::ClaimsAreUndone => (
            COMES_INTO_USE,
            Configuration::sharing("control").restarting(),
        ),
        Rule::HomeIsAskedFirst => (ONE_IN_USE, overlapping),
        Rule::PointersOfTheArmedStay => (ARMED_BY_ITS_OWN, containing),
        Rule::OnlyActiveArms => (ARMED_BY_ITS_OWN, overlapping),
    };
    Control {
        rule,
        config,
        violates,
    }
}
