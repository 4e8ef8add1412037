//! Locks over the service, beside calls that do nothing, the library on the same server, and the lock service of etcd.
//!
//! 1, 64 and 256 tasks make pairs of acquire and release, each with a key of its own. *Unary*: two calls of LockService;
//! *empty calls*: two calls of the health check at the same coordinator, over the same connection, which do nothing.
//! *Session*: the library over the service, one stream for all tasks; *library*: the same on the Redis server itself, by
//! its own batches. *etcd*: Lock and Unlock of its lock service, one lease per task for the whole run, synced to disk as
//! by default. Coordinator, Redis and etcd are processes of their own; one connection has all calls of a contender. In
//! each round every contender has its turn, in another order each time, and unary calls take part twice.
//!
//! *Not* measured: networks, TLS, several processes of callers.
//!
//! Run: `scripts/bench service [--quick]`.

mod contenders;
mod coordinator;
mod measure;
mod report;

use clap::Args;
use ringfence_coordinator::spawn::RedisServer;

use crate::{Common, Effort, Failure, Machine, Timing, etcd};

/// Locks over the service, beside empty calls, the library and etcd's lock service.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Is the coordinator on this server: the bench starts it.
    #[arg(long, hide = true)]
    coordinator_on: Option<String>,
}

impl Options {
    fn plan(&self) -> measure::Plan {
        let (rounds, timing) = match self.common.effort() {
            Effort::Full => (9, Timing::of_ms(300, 1500)),
            Effort::Quick => (5, Timing::of_ms(100, 400)),
            Effort::Smoke => (1, Timing::of_ms(5, 20)),
        };
        measure::Plan { rounds, timing }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    if let Some(url) = &options.coordinator_on {
        return coordinator::serve(url).await;
    }
    let plan = options.plan();
    let redis = RedisServer::spawn().await?;
    let coordinator = coordinator::Coordinator::start(&redis.url()).await?;
    let etcd = etcd::Etcd::start().await?;
    let contenders = contenders::Contenders::new(&redis.url(), &coordinator.url, &etcd).await?;
    let pids = redis
        .pid()
        .into_iter()
        .chain([coordinator.pid(), etcd.pid()]);
    let rows = measure::run(&contenders, &plan, &pids.collect::<Vec<_>>()).await?;
    report::Report::new(Machine::here(), plan, &rows).publish(&options.common)
}
