//! What the benches share: rounds, slices, medians and their spread, bounds, tables, the machine they ran on.

mod bounds;
pub mod etcd;
mod machine;
mod place;
mod report;
mod rounds;
mod share;
mod slice;
mod stats;
mod usage;

use std::{
    error::Error,
    time::{Duration, Instant},
};

pub use bounds::{Bound, Limit, print_bounds};
pub use machine::Machine;
pub use place::Place;
pub use report::{print_table, write_json};
pub use rounds::{Timing, order};
pub use share::HalfShare;
pub use slice::{Slice, Task};
pub use stats::Spread;
pub use usage::{Clocks, Reading};

/// Why a bench cannot go on.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What every contender asks for: long enough that nobody has to renew in a slice.
pub const LEASE: Duration = Duration::from_secs(30);

/// Now, for measuring how long something took.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures elapsed time, on a machine that is awake"
)]
pub fn now() -> Instant {
    Instant::now()
}
