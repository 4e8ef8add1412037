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
mod workers;

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Parser;
use contenders::Who;
use measure::Plan;
use messages::Assignment;
use ringfence_benches::{Failure, Machine, Place, Timing};
use ringfence_coordinator::spawn::RedisServer;
use server::Server;
use setup::Setup;

/// One hot key: 64 tasks want the same lock, in one process and in four.
#[derive(Debug, Parser)]
struct Options {
    /// Short slices and few rounds: about two minutes, and less exact.
    #[arg(long)]
    quick: bool,
    /// In how many processes.
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    processes: Vec<NonZeroUsize>,
    /// How many tasks, shared out among the processes.
    #[arg(long, default_value = "64")]
    tasks: NonZeroUsize,
    /// For how many milliseconds the lock is held each time.
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
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
    /// Where the report goes.
    #[arg(long, default_value = "target/bench/hot-key.json")]
    json: PathBuf,
    /// What this process is to do for the one that started it.
    #[arg(long, hide = true)]
    worker: Option<Assignment>,
}

impl Options {
    fn plan(&self) -> Result<Plan, Failure> {
        let (rounds, timing) = if self.quick {
            (5, Timing::of_ms(150, 500))
        } else {
            (11, Timing::of_ms(250, 1000))
        };
        let mut setups = Vec::new();
        for &processes in &self.processes {
            for &hold_ms in &self.hold_ms {
                setups.push(Setup::share(self.tasks.get(), processes.get(), hold_ms)?);
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

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    if let Some(assignment) = &options.worker {
        return worker::main(assignment);
    }
    let plan = options.plan()?;
    let machine = Machine::here();
    options.place.client(machine.cores)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(&options, &plan, machine))
}

async fn run(options: &Options, plan: &Plan, machine: Machine) -> Result<(), Failure> {
    let redis = RedisServer::spawn().await?;
    let server = Server::new(&redis).await?;
    options.place.server(server.pid)?;
    contenders::prepare(&server.url).await?;
    let rows = measure::run(plan, &server).await?;
    report::Report::new(machine, plan, &rows).publish(&options.json)
}
