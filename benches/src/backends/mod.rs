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
//! *Not* measured: networks, several processes, how busy the servers are. `crowd.rs`: many clients that want one key.
//!
//! Run: `scripts/bench backends [--crowd] [--quick]`.

mod contenders;
mod crowd;
mod measure;
mod recipes;
mod report;

use clap::Args;
use contenders::Engine;

use crate::{Common, Effort, Failure, Machine, Timing};

/// Locks on PostgreSQL, MariaDB, etcd and ZooKeeper, beside what people do with the same server without us.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Only this server, again for more of them.
    #[arg(long)]
    on: Vec<Engine>,
    /// Instead: how 10 and how 100 clients pass one key on.
    #[arg(long)]
    crowd: bool,
}

impl Options {
    fn plan(&self) -> measure::Plan {
        let (rounds, timing) = match self.common.effort() {
            Effort::Full => (9, Timing::of_ms(300, 1500)),
            Effort::Quick => (5, Timing::of_ms(200, 800)),
            Effort::Smoke => (1, Timing::of_ms(5, 20)),
        };
        let tasks = match self.common.effort() {
            Effort::Full | Effort::Quick => 64,
            Effort::Smoke => 4,
        };
        measure::Plan {
            rounds,
            timing,
            tasks,
        }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let is_wanted = |engine: &Engine| options.on.is_empty() || options.on.contains(engine);
    if options.crowd {
        let plan = crowd::Plan::of(options.common.effort());
        let mut rows = Vec::new();
        for engine in Engine::ALL.into_iter().filter(is_wanted) {
            rows.extend(crowd::run(engine, &plan).await?);
        }
        return crowd::publish(plan, rows, &options.common);
    }
    let plan = options.plan();
    let mut rows = Vec::new();
    for engine in Engine::ALL.into_iter().filter(is_wanted) {
        // One server runs at a time.
        let server = engine.start(plan.tasks).await?;
        rows.extend(measure::run(&server, &plan).await?);
    }
    report::Report::new(Machine::here(), plan, &rows).publish(&options.common)
}
