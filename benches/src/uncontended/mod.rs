//! Pairs of acquire and release on distinct keys over one Redis, beside what else could be used.
//!
//! In each round every contender has its turn, in another order each time; a bound counts on the
//! median of the rounds' ratios, and ringfence takes part twice, so that its ratio against itself
//! shows what the machine does to a ratio. Latency is that of a closed loop: tasks do nothing
//! between pairs. All tasks, and the server, share the machine.
//!
//! At few tasks it matters where the scheduler puts the server: beside the client on one processor,
//! or on another that has to be woken for every call. On a virtual machine that is a factor of three,
//! and it changes by the second. `--place` decides it.
//!
//! *Not* measured: contention, waiting, more than one shard or process, networks, persistence,
//! TLS, latency at a given rate of arrivals.
//!
//! Run: `scripts/bench uncontended [--quick]`.

mod contenders;
mod measure;
mod report;

use std::num::NonZeroUsize;

use clap::Args;
use measure::Plan;
use ringfence_coordinator::spawn::RedisServer;

use crate::{Common, Effort, Failure, Machine, Place, Timing, given_or, on_two_threads};

/// Pairs of acquire and release on distinct keys over one Redis of its own, beside what else could
/// be used.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// How many tasks, one key each: 1,16,64,256,1024 if not said.
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<NonZeroUsize>,
    /// Rounds; bounds want 5 or more. 11 if not said, 5 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only contenders whose names start with one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which processors the server and this process may run on.
    #[arg(long, value_enum, default_value = "free")]
    place: Place,
}

impl Options {
    fn plan(&self) -> Plan {
        let (rounds, timing, tasks) = match self.common.effort() {
            Effort::Full => (11, Timing::of_ms(100, 550), &[1, 16, 64, 256, 1024][..]),
            Effort::Quick => (5, Timing::of_ms(40, 220), &[1, 16, 64, 256, 1024][..]),
            // More than one call takes.
            Effort::Smoke => (1, Timing::of_ms(5, 20), &[1, 200][..]),
        };
        let given: Vec<usize> = self.tasks.iter().map(|tasks| tasks.get()).collect();
        Plan {
            tasks: given_or(&given, tasks),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            timing,
            place: self.place,
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|start| name.starts_with(start))
    }
}

pub(crate) fn main(options: &Options) -> Result<(), Failure> {
    let machine = Machine::here();
    // Before there are threads: they are placed with this one.
    options.place.client(machine.cores)?;
    on_two_threads(run(options, machine))
}

async fn run(options: &Options, machine: Machine) -> Result<(), Failure> {
    let server = RedisServer::spawn().await?;
    let server_pid = server.pid().ok_or("the server is gone")?;
    options.place.server(server_pid)?;
    let mut contenders = contenders::all(&server.url()).await?;
    contenders.retain(|contender| options.wants(contender.name()));
    let plan = options.plan();
    let results = measure::run(&contenders, &plan, server_pid).await?;
    report::Report::new(machine, &plan, &results).publish(&options.common)
}
