//! One hot account: everybody takes from it, one unit at a time.
//!
//! So many tasks of one process deduct, with nothing in between, for as long as a slice lasts: under one lock
//! (take it, read, write, give it back; each task asks the shard for it, as with any other library, and beside it one that
//! goes from task to task), under any of 16 locks, from a counter, and from a row of a database.
//! In each round every contender has its turn, in another order each time; a bound counts on the median of the
//! rounds, and the counter takes part twice, so that its ratio against itself shows what the machine does to a
//! ratio.
//!
//! After the last round every contender's books are audited: the balance is the initial sum less one for every
//! deduction that was answered. Counters remember each deduction for two seconds, and forget it while they are
//! measured.
//!
//! What a second shard brings is asked of servers that may use half a processor each: on two cores, one shard and the
//! client leave nothing for another. That takes root; without, it is left out, and said.
//!
//! With `--processes 4`, as many processes have their shares of the tasks: each batches its own requests.
//!
//! *Not* measured: networks, replicas, TLS, accounts that are short. The processes and all
//! servers share the machine.
//!
//! Run: `scripts/bench hot-account [--quick]`; with `--soak 10m`, one counter with the default terms for ten minutes instead.

mod contenders;
mod curve;
mod goals;
mod measure;
mod report;
mod servers;
mod setup;
mod soak;
mod worker;

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::Args;
use measure::Plan;
use servers::Servers;
use setup::{Setup, Share};

use crate::{Common, Effort, Failure, HalfShare, Machine, Place, Timing, given_or};

/// One hot account: everybody takes from it, one unit at a time.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// How many tasks: 64,256,1024 if not said.
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<usize>,
    /// In how many processes, each with its share of the tasks: 1 if not said.
    #[arg(long, value_delimiter = ',')]
    processes: Vec<NonZeroUsize>,
    /// Rounds; bounds want 5 or more. 11 if not said, 5 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only set-ups whose names start with one of these, as the table has them.
    #[arg(long, value_name = "START", value_delimiter = ';')]
    only: Vec<String>,
    /// Which processors the servers and the client may run on.
    #[arg(long, value_enum, default_value = "free")]
    place: Place,
    /// Instead: one counter of four segments on one server with the default terms, by as many tasks as the greatest number says, for so long,
    /// such as 10m. A line per minute: the rate, the server's memory, the ids that are remembered and forgotten, and refusals.
    #[arg(long, value_name = "LENGTH", conflicts_with = "smoke", value_parser = humantime::parse_duration)]
    soak: Option<Duration>,
    /// Draw deductions a second against segments into FILE, as an SVG image.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// What this process is to do for the one that started it.
    #[arg(long, hide = true)]
    worker: Option<worker::Assignment>,
}

impl Options {
    fn plan(&self) -> Plan {
        let (rounds, timing) = match self.common.effort() {
            Effort::Full => (11, Timing::of_ms(250, 1000)),
            Effort::Quick => (5, Timing::of_ms(150, 400)),
            Effort::Smoke => (1, Timing::of_ms(5, 20)),
        };
        let processes: &[usize] = match self.common.effort() {
            Effort::Full | Effort::Quick => &[1],
            Effort::Smoke => &[1, 2],
        };
        let mut setups: Vec<_> = Setup::all().filter(|setup| self.wants(setup)).collect();
        let halved = |setup: &Setup| setup.share == Share::Half;
        let probe = format!("ringfence-bench-{}", std::process::id());
        if setups.iter().any(halved)
            && let Err(error) = HalfShare::new(&probe)
        {
            eprintln!("no server can be held to half a processor ({error}): left out");
            setups.retain(|setup| !halved(setup));
        }
        let asked: Vec<usize> = self.processes.iter().map(|count| count.get()).collect();
        Plan {
            setups,
            tasks: self.tasks(),
            processes: given_or(&asked, processes),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            timing,
            place: self.place,
        }
    }

    fn tasks(&self) -> Vec<usize> {
        let usual = match self.common.effort() {
            Effort::Full | Effort::Quick => &[64, 256, 1024][..],
            Effort::Smoke => &[8],
        };
        given_or(&self.tasks, usual)
    }

    fn wants(&self, setup: &Setup) -> bool {
        let name = setup.to_string();
        let starts = |start: &String| name.starts_with(start.as_str());
        self.only.is_empty() || self.only.iter().any(starts)
    }
}

pub(crate) fn main(options: &Options) -> Result<(), Failure> {
    if let Some(assignment) = &options.worker {
        return worker::main(assignment);
    }
    let machine = Machine::here();
    options.place.client(machine.cores)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(options, machine))
}

async fn run(options: &Options, machine: Machine) -> Result<(), Failure> {
    if let Some(length) = options.soak {
        let tasks = options.tasks().into_iter().max().unwrap_or(1);
        return soak::run(length, tasks, options.place, machine, &options.common).await;
    }
    let plan = options.plan();
    let servers = Servers::start(&plan.setups, plan.place).await?;
    let contenders = contenders::all(&plan.setups, &plan.tasks, &servers).await?;
    let rows = measure::run(&contenders, &plan, &servers).await?;
    contenders::audit(&contenders).await?;
    let report = report::Report::new(machine, &plan, &rows);
    if let Some(file) = &options.svg {
        std::fs::write(file, curve::svg(&rows))?;
        println!("drawn to {}", file.display());
    }
    report.publish(&options.common)
}
