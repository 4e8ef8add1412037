//! One hot key: everybody wants the same lock, in one process and in four.
//!
//! 64 tasks take it, hold it and give it back, with nothing in between, for as long as a slice lasts:
//! in one process, or as 4 × 16 in four processes. In each round every contender has its turn, in
//! another order each time, in processes of its own (this program, started again by itself); a bound
//! counts on the median of the rounds, and ringfence takes part twice, so that its ratio against
//! itself shows what the machine does to a ratio.
//!
//! Everybody is checked while it runs (`exclusion.rs`): a contender that lets two in fails the bench.
//!
//! A wait is from asking to being granted, or to the end of the slice if it was not over then. A
//! lock is held without anything done, or for a timer of 1 ms: one of the kernel's, for tokio's count
//! whole milliseconds and would hide as much of every hand-over.
//!
//! *Not* measured: many keys at once, re-entry, what a crash of the holder costs, more than one
//! shard, networks, persistence, TLS. All processes, and the server, share the machine.
//!
//! Run: `scripts/bench hot-key [--quick]`.

mod contenders;
mod exclusion;
mod goals;
mod hold;
mod measure;
mod messages;
mod report;
mod server;
mod setup;
mod worker;

use std::num::NonZeroUsize;

use clap::Args;
use contenders::Who;
use measure::Plan;
use messages::Assignment;
use ringfence_coordinator::spawn::RedisServer;
use server::Server;
use setup::Setup;

use crate::{Common, Effort, Failure, Machine, Place, Timing, given_or};

/// One hot key: 64 tasks want the same lock, in one process and in four.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// In how many processes: 1,4 if not said.
    #[arg(long, value_delimiter = ',')]
    processes: Vec<NonZeroUsize>,
    /// How many tasks, shared out among the processes: 64 if not said.
    #[arg(long)]
    tasks: Option<NonZeroUsize>,
    /// For how many milliseconds the lock is held each time: 0,1 if not said.
    #[arg(long, value_delimiter = ',')]
    hold_ms: Vec<u64>,
    /// Rounds; bounds want 5 or more. 11 if not said, 5 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only contenders whose names start with one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which processors the server and the clients may run on.
    #[arg(long, value_enum, default_value = "free")]
    place: Place,
    /// What this process is to do for the one that started it.
    #[arg(long, hide = true)]
    worker: Option<Assignment>,
}

impl Options {
    fn plan(&self) -> Result<Plan, Failure> {
        let (rounds, timing) = match self.common.effort() {
            Effort::Full => (11, Timing::of_ms(250, 1000)),
            Effort::Quick => (5, Timing::of_ms(150, 500)),
            Effort::Smoke => (1, Timing::of_ms(5, 20)),
        };
        let (processes, tasks, hold_ms) = match self.common.effort() {
            Effort::Full | Effort::Quick => ([1, 4], 64, &[0, 1][..]),
            Effort::Smoke => ([1, 2], 4, &[1][..]),
        };
        let given: Vec<usize> = self.processes.iter().map(|count| count.get()).collect();
        let tasks = self.tasks.map_or(tasks, NonZeroUsize::get);
        let mut setups = Vec::new();
        for processes in given_or(&given, &processes) {
            for hold_ms in given_or(&self.hold_ms, hold_ms) {
                setups.push(Setup::share(tasks, processes, hold_ms)?);
            }
        }
        Ok(Plan {
            setups,
            contenders: Who::ALL
                .into_iter()
                .filter(|who| self.wants(*who))
                .collect(),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            timing,
            place: self.place,
        })
    }

    fn wants(&self, who: Who) -> bool {
        let starts = |start: &String| who.name().starts_with(start.as_str());
        self.only.is_empty() || self.only.iter().any(starts)
    }
}

pub(crate) fn main(options: &Options) -> Result<(), Failure> {
    if let Some(assignment) = &options.worker {
        return worker::main(assignment);
    }
    let plan = options.plan()?;
    let machine = Machine::here();
    options.place.client(machine.cores)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(options, &plan, machine))
}

async fn run(options: &Options, plan: &Plan, machine: Machine) -> Result<(), Failure> {
    let redis = RedisServer::spawn().await?;
    let server = Server::new(&redis).await?;
    options.place.server(server.pid)?;
    contenders::prepare(&server.url).await?;
    let rows = measure::run(plan, &server).await?;
    report::Report::new(machine, plan, &rows).publish(&options.common)
}
