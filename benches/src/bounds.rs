use std::fmt;

use serde::Serialize;

use crate::{Spread, print_table};

/// A bound counts on as many rounds, at least.
const ROUNDS_MIN: usize = 5;

/// Processors that others may use before the results stop to count.
const OTHERS_MAX: f64 = 0.1;

/// On which side of a value it is good to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// Not under it.
    AtLeast(f64),
    /// Not over it.
    AtMost(f64),
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(value) => write!(formatter, "at least {value:.2}"),
            Self::AtMost(value) => write!(formatter, "at most {value:.2}"),
        }
    }
}

/// Something ringfence has to reach, and whether it did.
#[derive(Debug, Serialize)]
pub(crate) struct Bound {
    /// The bounded quantity.
    pub(crate) of: String,
    /// By what.
    #[serde(flatten)]
    pub(crate) limit: Limit,
    /// What the rounds found.
    pub(crate) measured: Spread,
    /// What ringfence under its other name shows: what the machine does to such a value.
    pub(crate) same_against_same: Option<Spread>,
    /// Whether the median of `measured` is on the good side.
    pub(crate) reached: bool,
}

impl Bound {
    /// `limit` on `of`, which was `measured`.
    pub(crate) fn new(of: String, limit: Limit, measured: Spread, same: Option<Spread>) -> Self {
        let reached = match limit {
            Limit::AtLeast(value) => measured.median >= value,
            Limit::AtMost(value) => measured.median <= value,
        };
        Self {
            of,
            limit,
            measured,
            same_against_same: same,
            reached,
        }
    }
}

/// Prints `bounds`, and whether they count after so many `rounds`, beside `others` busy processors.
pub(crate) fn print_bounds(bounds: &[Bound], rounds: usize, others: Spread) {
    if bounds.is_empty() {
        return;
    }
    let head = ["bound", "wanted", "measured", "same against same", ""];
    let cells = bounds.iter().map(|bound| {
        let same = bound.same_against_same;
        let reached = if bound.reached {
            "reached"
        } else {
            "NOT REACHED"
        };
        vec![
            bound.of.clone(),
            bound.limit.to_string(),
            format!("{:.2}", bound.measured),
            same.map_or_else(String::new, |same| format!("{same:.2}")),
            reached.to_owned(),
        ]
    });
    print_table(&head, &cells.collect::<Vec<_>>());
    if rounds < ROUNDS_MIN {
        println!("fewer than {ROUNDS_MIN} rounds: none of this counts");
    }
    if others.median > OTHERS_MAX {
        println!("the machine was busy with other work: none of this counts");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_reached_on_the_good_side_of_its_limit_only() {
        let reached = |limit| Bound::new(String::new(), limit, Spread::of([2.0]), None).reached;
        assert!(reached(Limit::AtLeast(2.0)) && !reached(Limit::AtLeast(2.1)));
        assert!(reached(Limit::AtMost(2.0)) && !reached(Limit::AtMost(1.9)));
    }
}
