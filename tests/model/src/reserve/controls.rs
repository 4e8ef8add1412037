//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{Configuration, Rule, properties::TOKENS_RISE};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let config = match rule {
        Rule::ReadsDraw | Rule::ReservesEnd | Rule::RefusalsForget => {
            Configuration::forgetting("control")
        }
        Rule::ReservesHaveAHead | Rule::RaisesEndReserves => Configuration::moving("control"),
    };
    Control {
        rule,
        config,
        violates: TOKENS_RISE,
    }
}
