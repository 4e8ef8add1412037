use std::{fmt, fmt::Debug, hash::Hash};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// What the checker found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// States generated, those met again counted again.
    pub generated: usize,
    /// Different states.
    pub unique: usize,
    /// Steps from the start to the farthest state.
    pub depth: usize,
    /// Whether every reachable state was looked at; otherwise the cap came first, or a violation.
    pub exhausted: bool,
    /// The property that does not hold, and the shortest way there.
    pub violated: Option<(&'static str, Vec<String>)>,
    /// What should have happened, and did not.
    pub unreached: Vec<&'static str>,
}

impl Verdict {
    /// Whether nothing is violated, and all that should have happened did.
    pub fn holds(&self) -> bool {
        self.violated.is_none() && self.unreached.is_empty()
    }
}

/// A model that can be checked.
pub trait Checkable:
    Model<Action: Clone + Debug + PartialEq, State: Clone + Debug + Hash + PartialEq + Send + Sync>
    + Send
    + Sync
    + 'static
{
}

impl<M> Checkable for M where
    M: Model<
            Action: Clone + Debug + PartialEq,
            State: Clone + Debug + Hash + PartialEq + Send + Sync,
        > + Send
        + Sync
        + 'static
{
}

/// Looks at every state that can be reached, breadth first, until `cap` are generated or a
/// property is violated. On one thread, so that the same run finds the same.
pub fn check<M: Checkable>(model: M, cap: usize) -> Verdict {
    let properties = model.properties();
    let checker = (model.checker())
        .target_state_count(cap)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let mut found = checker.discoveries();
    let (sometimes, always): (Vec<_>, Vec<_>) = properties
        .iter()
        .partition(|property| matches!(property.expectation, Expectation::Sometimes));
    let unreached = (sometimes.iter().map(|property| property.name))
        .filter(|name| !found.contains_key(name))
        .collect();
    let violated = (always.iter().map(|property| property.name)).find_map(|name| {
        let actions = found.remove(name)?.into_actions();
        let steps = actions.iter().map(|action| format!("{action:?}"));
        Some((name, steps.collect()))
    });
    Verdict {
        generated: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        exhausted: violated.is_none() && checker.state_count() < cap,
        violated,
        unreached,
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            generated, unique, ..
        } = self;
        let end = match &self.violated {
            Some((name, steps)) => format!("violated in {} steps: {name}", steps.len()),
            None if self.exhausted => format!("exhausted, depth {}", self.depth),
            None => format!("capped at depth {}", self.depth),
        };
        write!(
            formatter,
            "{generated:>9} states, {unique:>8} different, {end}"
        )?;
        for event in &self.unreached {
            write!(formatter, "; never: {event}")?;
        }
        Ok(())
    }
}
