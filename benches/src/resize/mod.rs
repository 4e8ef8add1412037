//! The cost of a resize for the clients that keep using the ring.
//!
//! Locks are held and renewed, as many as are asked for; tasks take and give back other locks as fast as they
//! can; and meanwhile a fourth Redis server joins three, and leaves again. In each round: the acquires of the
//! time before, of those while slots move, apart for slots on their way and for all others; and the least
//! that was done in any second, against what was done before, and against the least of as many seconds before:
//! at rest the machine, too, has seconds in which it does less.
//!
//! Two windows at rest, before and between, show what the machine does to such a ratio.
//!
//! Beside it, what a library does that only changes its map: the same locks, plainly taken at their shard by a
//! map of three, then asked for by a map of four. A grant of a held lock is a second holder.
//!
//! *Not* measured: several processes, networks, waiting for a held lock.
//!
//! Run: `scripts/bench resize [--quick]`.

mod held;
mod load;
mod measure;
mod naive;
mod report;

use std::time::Duration;

use clap::Args;
use measure::Plan;
use ringfence_client::Pace;
use ringfence_ring::limits::SLOTS_MAX;

use crate::{Common, Effort, Failure, Machine};

/// The cost of a resize for the clients that keep using the ring.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Resizes there and back. 5 if not said; bounds want 5 or more.
    #[arg(long)]
    rounds: Option<usize>,
    /// Tasks that take and give back locks.
    #[arg(long, default_value_t = 16)]
    tasks: usize,
    /// Acquires a second, of all tasks together; as fast as they can if not said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Locks held: 100,000 if not said, 10,000 with --quick.
    #[arg(long)]
    held: Option<usize>,
}

impl Options {
    fn plan(&self) -> Plan {
        let ms = Duration::from_millis;
        let (rounds, held, lease, window) = match self.common.effort() {
            Effort::Full => (5, 100_000, ms(30_000), ms(90_000)),
            Effort::Quick => (5, 10_000, ms(6_000), ms(30_000)),
            Effort::Smoke => (1, 50, ms(2_000), ms(100)),
        };
        let (rate, pace) = match self.common.effort() {
            Effort::Full | Effort::Quick => (None, Pace::default()),
            // All slots at once: their locks follow with one renewal.
            Effort::Smoke => (
                Some(500),
                Pace {
                    slots_in_flight: SLOTS_MAX as usize,
                    pause: Duration::ZERO,
                },
            ),
        };
        Plan {
            rounds: self.rounds.unwrap_or(rounds).max(1),
            tasks: self.tasks,
            rate: self.rate.or(rate),
            held: self.held.unwrap_or(held),
            lease,
            window,
            pace,
        }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let plan = options.plan();
    let (rounds, naive) = measure::run(&plan).await?;
    report::Report::new(Machine::here(), &plan, &rounds, naive).publish(&options.common)
}
