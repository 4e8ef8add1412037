//! What counters, and segmented locks, have to reach.

use How::{Alone, Counter, CounterAgain, Lock, Logged, PostgreSql, Segments};
use Log::{Always, Off};

use super::{
    measure::Row,
    setup::{How, Log, Setup, Share},
};
use crate::{Bound, Limit, Spread};

const LOCK: Setup = Setup::new(Lock, 1, 1, Off);
const LOCKS: Setup = Setup::new(Segments, 16, 4, Off);
const ALONE: Setup = Setup::new(Alone, 4, 1, Off);
const COUNTER: Setup = Setup::new(Counter, 4, 1, Off);
const LOGGED: Setup = Setup::new(Logged, 4, 1, Off);
const LOGGED_SYNCED: Setup = Setup::new(Logged, 4, 1, Always);
const COUNTER_OVER_2: Setup = Setup::new(Counter, 4, 2, Off);
const SYNCED: Setup = Setup::new(Counter, 4, 1, Always);
const ROW: Setup = Setup::new(PostgreSql, 1, 1, Always);

/// The deductions a second of one, divided by those of another, at so many tasks.
const GOALS: &[(Setup, Setup, usize, f64)] = &[
    (LOCKS, LOCK, 64, 8.0),
    (COUNTER, ALONE, 64, 1.3),
    (COUNTER, ALONE, 1024, 1.5),
    (COUNTER, LOCK, 64, 40.0),
    (LOGGED, COUNTER, 64, 0.75),
    (LOGGED, COUNTER, 1024, 0.75),
    (LOGGED_SYNCED, SYNCED, 64, 0.75),
    (COUNTER, LOCK, 256, 40.0),
    (COUNTER, LOCK, 1024, 40.0),
    // Where servers are the scarce resource: one server on its own processor and the client already use two.
    (COUNTER_OVER_2.halved(), COUNTER.halved(), 1024, 1.6),
    (SYNCED, ROW, 64, 20.0),
    (SYNCED, ROW, 256, 20.0),
    (SYNCED, ROW, 1024, 20.0),
];

/// The goals with measured set-ups, and whether they were reached.
pub(crate) fn bounds(rows: &[Row]) -> Vec<Bound> {
    let bound = |(one, other, tasks, least): &(Setup, Setup, usize, f64)| {
        let measured = ratio(rows, one, other, *tasks)?;
        let same = same(rows, other.share, *tasks);
        let name = format!("{one} / {other}, {tasks} tasks");
        Some(Bound::new(name, Limit::AtLeast(*least), measured, same))
    };
    GOALS.iter().filter_map(bound).collect()
}

fn same(rows: &[Row], share: Share, tasks: usize) -> Option<Spread> {
    let counter = Setup { share, ..COUNTER };
    let again = Setup {
        how: CounterAgain,
        ..counter
    };
    ratio(rows, &again, &counter, tasks)
}

fn ratio(rows: &[Row], one: &Setup, other: &Setup, tasks: usize) -> Option<Spread> {
    let find = |setup: &Setup| {
        let mut rows = rows.iter();
        rows.find(|row| row.setup == *setup && (row.tasks, row.processes) == (tasks, 1))
    };
    let (one, other) = (find(one)?, find(other)?);
    Some(Spread::of_ratios(
        &one.deductions_per_s,
        &other.deductions_per_s,
    ))
}
