//! What the benches share: medians and their spread, tables, the machine they ran on.

mod machine;
mod report;
mod stats;

use std::time::Instant;

pub use machine::{Machine, busy_time};
pub use report::{print_table, write_json};
pub use stats::Spread;

/// Now, for measuring how long something took.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures elapsed time, on a machine that is awake"
)]
pub fn now() -> Instant {
    Instant::now()
}
