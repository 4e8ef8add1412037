//! What ringfence has to reach with 64 tasks.

use Goal::{Grants, Jain, Starved, Wait};
use Limit::{AtLeast, AtMost};
use Who::{HandoffOff, Mutex, Ringfence, Rslock, TrySubscribe};

use super::{contenders::Who, measure::Row, setup::Setup};
use crate::{Bound, Limit, Spread};

const ONE: Setup = Setup::new(1, 64, 0);
const FOUR: Setup = Setup::new(4, 16, 0);
const ONE_HELD: Setup = Setup::new(1, 64, 1);
const FOUR_HELD: Setup = Setup::new(4, 16, 1);

enum Goal {
    /// Grants per second of this contender, divided by another's in the given set-up.
    Grants(Who, Who, Setup),
    Jain,
    Starved,
    /// The 99th percentile of waits, divided by what it takes everybody to hold the lock once.
    Wait,
}

const GOALS: &[(Setup, Goal, Limit)] = &[
    (ONE, Grants(Ringfence, Rslock, ONE), AtLeast(50.0)),
    (FOUR, Grants(Ringfence, TrySubscribe, FOUR), AtLeast(10.0)),
    (FOUR, Grants(HandoffOff, TrySubscribe, FOUR), AtLeast(1.5)),
    (ONE_HELD, Grants(Ringfence, Mutex, ONE_HELD), AtLeast(0.97)),
    (FOUR_HELD, Grants(Ringfence, Mutex, ONE_HELD), AtLeast(0.95)),
    (ONE_HELD, Jain, AtLeast(0.99)),
    (FOUR_HELD, Jain, AtLeast(0.99)),
    (ONE_HELD, Starved, AtMost(0.0)),
    (FOUR_HELD, Starved, AtMost(0.0)),
    (ONE_HELD, Wait, AtMost(1.3)),
    (FOUR_HELD, Wait, AtMost(1.3)),
];

/// The goals with measured set-ups and contenders, and whether they were reached.
pub(crate) fn bounds(rows: &[Row]) -> Vec<Bound> {
    let bound = |(setup, goal, limit): &(Setup, Goal, Limit)| {
        let measured = goal.measure(Ringfence, *setup, rows)?;
        // A ratio's counterpart is ringfence against itself, a value's is the other's value.
        let again = Who::RingfenceAgain;
        let same = match goal {
            Grants(..) => Grants(Ringfence, again, *setup).measure(Ringfence, *setup, rows),
            Jain | Starved | Wait => goal.measure(again, *setup, rows),
        };
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
            Grants(who, other, there) => {
                let of = if *who == Ringfence { "" } else { who.name() };
                let at = if *there == setup {
                    String::new()
                } else {
                    format!(" at {there}")
                };
                let name = format!("{of} grants / {}'s{at} ({setup})", other.name());
                name.trim_start().to_owned()
            }
            Jain => format!("Jain's index ({setup})"),
            Starved => format!("starved tasks, all rounds ({setup})"),
            Wait => format!("p99 wait / (tasks x hold) ({setup})"),
        }
    }

    /// The result in `ours`; none if it or its counterpart was not measured.
    fn measure(&self, ours: Who, setup: Setup, rows: &[Row]) -> Option<Spread> {
        let row = find(rows, ours, setup)?;
        Some(match self {
            Grants(who, other, there) => {
                let (who, other) = (find(rows, *who, setup)?, find(rows, *other, *there)?);
                Spread::of_ratios(&who.grants_per_s, &other.grants_per_s)
            }
            Jain => Spread::of(row.jain.iter().copied()),
            // A median would hide what happened in one round only.
            Starved => Spread::of([row.starved.iter().sum()]),
            Wait => {
                // As long as a hold takes on this machine, timer and all: the mutex adds nothing to it.
                let hold = &find(rows, Mutex, ONE_HELD)?.hold_ms;
                let everybody: Vec<f64> = hold
                    .iter()
                    .map(|hold| hold * setup.all_tasks() as f64)
                    .collect();
                Spread::of_ratios(&row.p99_ms, &everybody)
            }
        })
    }
}
