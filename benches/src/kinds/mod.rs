//! Semaphores, read-write locks and multi-locks, beside our mutex in the same run.
//!
//! Three situations. *64 keys*: 64 tasks make pairs of acquire and release, each with a key of its own. *1 key*: 64 tasks
//! want one mutex, or one of 8 permits of one semaphore, and keep it for a millisecond; a mutex also with hand-off off,
//! as no semaphore hands on. *4 keys*: a multi-lock of 4 keys on 3 servers, beside 4 locks one after the other, by one
//! task and by 16. In each round every contender has its turn, in another order each time, and the mutex takes part
//! twice. *Not* measured: networks, several processes, persistence.
//!
//! Run: `scripts/bench kinds [--quick]`.

mod contenders;
mod measure;
mod report;

use std::time::Duration;

use clap::Args;
use ringfence_client::Client;
use ringfence_coordinator::spawn::RedisServer;

use crate::{Common, Effort, Failure, Machine, Timing};

/// Semaphores, read-write locks and multi-locks, beside our mutex.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
}

impl Options {
    fn plan(&self) -> measure::Plan {
        let (rounds, timing) = match self.common.effort() {
            Effort::Full => (11, Timing::of_ms(200, 1000)),
            Effort::Quick => (5, Timing::of_ms(100, 300)),
            Effort::Smoke => (1, Timing::of_ms(5, 20)),
        };
        measure::Plan { rounds, timing }
    }
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let plan = options.plan();
    let (mut servers, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let server = RedisServer::spawn().await?;
        urls.push(server.url());
        servers.push(server);
    }
    let of = async |urls: &[String], hands_on: bool| {
        let mut builder = Client::builder().redis(urls).servers_are_new(true);
        if !hands_on {
            builder = builder.handoff(0, Duration::ZERO);
        }
        Ok::<_, Failure>(builder.build().await?)
    };
    let lone = RedisServer::spawn().await?;
    let lone_url = [lone.url()];
    let clients = contenders::Clients {
        one: of(&lone_url, true).await?,
        without_hand_off: of(&lone_url, false).await?,
        three: of(&urls, true).await?,
    };
    servers.push(lone);
    let pids: Vec<u32> = servers.iter().filter_map(RedisServer::pid).collect();
    let rows = measure::run(&clients, &plan, &pids).await?;
    report::Report::new(Machine::here(), plan, &rows).publish(&options.common)
}
