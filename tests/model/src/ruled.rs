//! What the models have in common: rules, of which a control switches one off.

use clap::ValueEnum;
use stateright::{Model, Property};

/// A rule of the protocol, by its name on the command line.
pub trait Named: ValueEnum + Copy + PartialEq + 'static {
    /// All of them.
    fn every() -> &'static [Self] {
        Self::value_variants()
    }

    /// What it is called on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl<Rule: ValueEnum + Copy + PartialEq + 'static> Named for Rule {}

/// A configuration, with all rules or without one.
#[derive(Clone, Debug)]
pub struct Ruled<Configuration, Rule> {
    /// The participants and the bounds.
    pub config: Configuration,
    /// The rule that is off.
    pub broken: Option<Rule>,
    /// The only property to check; otherwise all, and that the configuration's events happen.
    pub only: Option<&'static str>,
}

impl<Configuration, Rule: Named> Ruled<Configuration, Rule> {
    /// All rules on, everything checked.
    pub fn with_every_rule(config: Configuration) -> Self {
        Self {
            config,
            broken: None,
            only: None,
        }
    }

    pub(crate) fn holds(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    pub(crate) fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    /// The properties to check: those that must hold, and those that must happen.
    pub(crate) fn chosen(
        &self,
        mut hold: Vec<Property<Self>>,
        happen: impl IntoIterator<Item = Property<Self>>,
    ) -> Vec<Property<Self>>
    where
        Self: Model,
    {
        match self.only {
            Some(only) => hold.retain(|property| property.name == only),
            None => hold.extend(happen),
        }
        hold
    }
}

/// One rule off.
#[derive(Clone, Debug)]
pub struct Control<Configuration, Rule> {
    /// Which.
    pub rule: Rule,
    /// Where.
    pub config: Configuration,
    /// The property that must be violated.
    pub violates: &'static str,
}

impl<Configuration: Clone, Rule: Named> Control<Configuration, Rule> {
    /// Without the rule; only the property that must be violated is looked at.
    pub fn model(&self) -> Ruled<Configuration, Rule> {
        Ruled {
            config: self.config.clone(),
            broken: Some(self.rule),
            only: Some(self.violates),
        }
    }

    /// The same with the rule, for what holding is worth there.
    pub fn with_the_rule(&self) -> Ruled<Configuration, Rule> {
        Ruled {
            broken: None,
            ..self.model()
        }
    }
}
