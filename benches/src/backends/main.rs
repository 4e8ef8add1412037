//! Locks on PostgreSQL, MariaDB, etcd and ZooKeeper, beside what people do with the same server without us.
//!
//! Two situations. *64 keys*: 64 tasks make pairs of acquire and release, each with a key of its own. *1 key*: 64 tasks want
//! one key, and give it back at once. The recipes: a row with an owner and an end, which is asked for again and again; the
//! server's own locks by name (`pg_advisory_lock`, `GET_LOCK`); `SELECT … FOR UPDATE` in a transaction; on etcd, of one
//! node, `concurrency.Mutex`, as its lock service runs it, with one connection and a lease per task; and on ZooKeeper
//! ephemeral znodes in a sequence, as Curator makes them. Each task of another
//! recipe has a connection of its own, over TCP, as we have. In each round every contender has its turn, in another order
//! each time, and Ringfence takes part twice. Servers sync every commit, as they do by default.
//!
//! *Not* measured: networks, several processes, how busy the servers are.
//!
//! Run: `scripts/bench backends [--quick]`.

mod contenders;
mod measure;
mod recipes;
mod report;

use std::path::PathBuf;

use clap::Parser;
use contenders::Engine;
use ringfence_benches::{Failure, Machine, Timing};

/// Locks on PostgreSQL, MariaDB, etcd and ZooKeeper, beside what people do with the same server without us.
#[derive(Debug, Parser)]
struct Options {
    /// Short slices and few rounds.
    #[arg(long)]
    quick: bool,
    /// Only this server, again for more of them.
    #[arg(long)]
    on: Vec<Engine>,
    /// Where the report goes.
    #[arg(long, default_value = "target/bench/backends.json")]
    json: PathBuf,
}

impl Options {
    fn plan(&self) -> measure::Plan {
        let (rounds, timing) = match self.quick {
            true => (5, Timing::of_ms(200, 800)),
            false => (9, Timing::of_ms(300, 1500)),
        };
        measure::Plan { rounds, timing }
    }
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<(), Failure> {
    let plan = options.plan();
    let mut rows = Vec::new();
    let is_wanted = |engine: &Engine| options.on.is_empty() || options.on.contains(engine);
    for engine in Engine::ALL.into_iter().filter(is_wanted) {
        // One server runs at a time.
        let server = engine.start().await?;
        rows.extend(measure::run(&server, &plan).await?);
    }
    report::Report::new(Machine::here(), plan, &rows).publish(&options.json)
}
