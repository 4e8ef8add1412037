//! What ringfence has to reach with 64 tasks.

use ringfence_benches::{Bound, Limit, Spread};

use crate::{contenders::Who, measure::Row, setup::Setup};

const ONE: Setup = Setup::new(1, 64, 0);
const FOUR: Setup = Setup::new(4, 16, 0);
const ONE_HELD: Setup = Setup::new(1, 64, 1);
const FOUR_HELD: Setup = Setup::new(4, 16, 1);

enum Goal {
    /// Its grants a second, divided by another's in the set-up given.
    Grants(Who, Setup),
    Jain,
    Starved,
    /// The 99th percentile of waits, divided by what it takes everybody to hold the lock once.
    Wait,
}

const GOALS: &[(Setup, Goal, Limit)] = &[
    (ONE, Goal::Grants(Who::Rslock, ONE), Limit::AtLeast(50.0)),
    (
        FOUR,
        Goal::Grants(Who::TrySubscribe, FOUR),
        Limit::AtLeast(10.0),
    ),
    (
        ONE_HELD,
        Goal::Grants(Who::Mutex, ONE_HELD),
        Limit::AtLeast(0.97),
    ),
    (
        FOUR_HELD,
        Goal::Grants(Who::Mutex, ONE_HELD),
        Limit::AtLeast(0.95),
    ),
    (ONE_HELD, Goal::Jain, Limit::AtLeast(0.99)),
    (FOUR_HELD, Goal::Jain, Limit::AtLeast(0.99)),
    (ONE_HELD, Goal::Starved, Limit::AtMost(0.0)),
    (FOUR_HELD, Goal::Starved, Limit::AtMost(0.0)),
    (ONE_HELD, Goal::Wait, Limit::AtMost(1.3)),
    (FOUR_HELD, Goal::Wait, Limit::AtMost(1.3)),
];

/// The goals whose set-ups and contenders were measured, and whether they were reached.
pub(crate) fn bounds(rows: &[Row]) -> Vec<Bound> {
    let bound = |(setup, goal, limit): &(Setup, Goal, Limit)| {
        let ours = find(rows, Who::Ringfence, *setup)?;
        let measured = goal.measure(ours, rows)?;
        // A ratio's counterpart is ringfence against itself, a value's is the other's value.
        let again = find(rows, Who::RingfenceAgain, *setup);
        let same = again.and_then(|again| match goal {
            Goal::Grants(..) => Goal::Grants(again.who, *setup).measure(ours, rows),
            _ => goal.measure(again, rows),
        });
        Some(Bound::new(goal.name(*setup), *limit, measured, same))
    };
    GOALS.iter().filter_map(bound).collect()
}

pub(crate) fn find(rows: &[Row], who: Who, setup: Setup) -> Option<&Row> {
    rows.iter().find(|row| row.who == who && row.setup == setup)
}

impl Goal {
    fn name(&self, setup: Setup) -> String {
        match self {
            Self::Grants(other, there) if *there == setup => {
                format!("grants / {}'s ({setup})", other.name())
            }
            Self::Grants(other, there) => {
                format!("grants / {}'s at {there} ({setup})", other.name())
            }
            Self::Jain => format!("Jain's index ({setup})"),
            Self::Starved => format!("starved tasks, all rounds ({setup})"),
            Self::Wait => format!("p99 wait / (tasks x hold) ({setup})"),
        }
    }

    /// What `row` shows of it; none if who it is compared with was not measured.
    fn measure(&self, row: &Row, rows: &[Row]) -> Option<Spread> {
        Some(match self {
            Self::Grants(other, there) => {
                let other = find(rows, *other, *there)?;
                Spread::of_ratios(&row.grants_per_s, &other.grants_per_s)
            }
            Self::Jain => Spread::of(row.jain.iter().copied()),
            // A median would hide what happened in one round only.
            Self::Starved => Spread::of([row.starved.iter().sum()]),
            Self::Wait => {
                let Setup { hold_ms, .. } = row.setup;
                let everybody = row.setup.all_tasks() as f64 * hold_ms as f64;
                Spread::of(row.p99_ms.iter().map(|p99| p99 / everybody))
            }
        })
    }
}
