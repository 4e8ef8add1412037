//! Locks with 3 and with 5 replicas, beside the rslock crate's Redlock over the same servers, and beside our locks with one.
//!
//! Two situations: pairs of acquire and release on distinct keys, one key per task; and 64 tasks that want one key and
//! release it at once, from one client and from four, as if they were four processes. In each round every contender has
//! its turn, in another order each time; a bound counts on the median of the rounds' ratios, and ringfence takes part
//! twice. *Confirms* is the share of pairs whose acquisition needed a second round trip.
//!
//! All tasks, and the servers, share the machine: on few processors they are what is scarce. *Not* measured: networks,
//! servers that are away, persistence, TLS.
//!
//! With `--away` instead: how long acquisitions take while a minority of the servers is cut off, stopped, killed, or in its recovery
//! period after a restart.
//!
//! Run: `scripts/bench replicated [--quick] [--away]`.

mod away;
mod contenders;
mod measure;
mod report;

use clap::Args;
use ringfence_coordinator::spawn::RedisServer;

use self::{
    contenders::Contender,
    measure::{Plan, Row, Situation},
};

use crate::{Common, Effort, Failure, Machine, Timing};

/// Locks with 3 and with 5 replicas, beside the rslock crate's Redlock over the same servers.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// With a minority of the servers away.
    #[arg(long, conflicts_with = "smoke")]
    away: bool,
    /// Servers: as many as a lock has replicas.
    #[arg(long, value_delimiter = ',', default_value = "3,5")]
    servers: Vec<u32>,
    /// Rounds; bounds want 5 or more. 7 if not said, 5 with --quick.
    #[arg(long)]
    rounds: Option<usize>,
}

impl Options {
    fn plan(&self) -> Plan {
        let (rounds, distinct, one_key) = match self.common.effort() {
            Effort::Full => (7, Timing::of_ms(100, 700), Timing::of_ms(500, 2000)),
            Effort::Quick => (5, Timing::of_ms(100, 300), Timing::of_ms(300, 1000)),
            Effort::Smoke => (1, Timing::of_ms(5, 20), Timing::of_ms(5, 20)),
        };
        Plan {
            rounds: self.rounds.unwrap_or(rounds).max(1),
            distinct,
            one_key,
            wanted_by: match self.common.effort() {
                Effort::Smoke => 8,
                Effort::Full | Effort::Quick => 64,
            },
        }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let plan = options.plan();
    if options.away {
        return away::run(&options.servers, plan.rounds, &options.common).await;
    }
    let mut rows = Vec::new();
    for &count in &options.servers {
        rows.extend(over(count, &plan).await?);
    }
    report::Report::new(Machine::here(), plan, &rows).publish(&options.common)
}

/// Measures everything over as many servers.
async fn over(count: u32, plan: &Plan) -> Result<Vec<Row>, Failure> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(RedisServer::spawn().await?);
    }
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let contenders = Contender::all(&urls, count).await?;
    let pids: Vec<u32> = servers.iter().filter_map(RedisServer::pid).collect();
    measure::run(&contenders, count, &Situation::ALL, plan, &pids).await
}
