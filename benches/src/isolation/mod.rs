//! What a stopped shard costs everybody else.
//!
//! One client, three Redis servers of its own. Tasks take and give back locks on keys of each shard, on a
//! schedule; some hundreds of other locks are held and renewed. In each round two windows follow one
//! another, and in every second round one server is stopped (SIGSTOP) between them: the p99 of the *others'*
//! keys while it is stopped, against that of just before. The rounds between, in which nothing is
//! stopped, show what the machine does to such a ratio.
//!
//! Nothing is omitted: a pair counts from when it was due, not from when its task got to it, and in
//! the window in which it was due, however late it is done. A shard's tasks have only its keys.
//!
//! *Not* measured: throughput (see `uncontended`), several processes, networks, waiting for a held lock.
//!
//! Run: `scripts/bench isolation [--quick]`.

mod load;
mod measure;
mod renewals;
mod report;

use std::time::Duration;

use clap::Args;
use measure::Plan;

use crate::{Common, Effort, Failure, Machine};

/// What a stopped shard costs the locks of the others.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Pairs of windows with a stop, and as many without. 9 if not said, 5 with --quick; bounds want
    /// 5 or more.
    #[arg(long)]
    rounds: Option<usize>,
    /// Tasks for each shard; each takes and gives back a lock of its own 100 times a second. 8 if not said.
    #[arg(long)]
    tasks: Option<usize>,
    /// Locks held on each shard. 150 if not said.
    #[arg(long)]
    held: Option<usize>,
}

impl Options {
    fn plan(&self) -> Plan {
        let ms = Duration::from_millis;
        let (rounds, window, tasks, held) = match self.common.effort() {
            Effort::Full => (9, ms(3000), 8, 150),
            Effort::Quick => (5, ms(1500), 8, 150),
            Effort::Smoke => (1, ms(200), 2, 10),
        };
        Plan {
            rounds: self.rounds.unwrap_or(rounds).max(1),
            window,
            tasks: self.tasks.unwrap_or(tasks),
            held: self.held.unwrap_or(held),
        }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let plan = options.plan();
    let rounds = measure::run(&plan).await?;
    report::Report::new(Machine::here(), &plan, &rounds).publish(&options.common)
}
