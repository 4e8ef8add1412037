//! The benches: one binary, with a subcommand per bench. `scripts/bench` lists them.
//!
//! They share rounds, slices, medians and their spread, bounds, tables, and the machine they run on.

mod backends;
mod bounds;
mod etcd;
mod hot_account;
mod hot_key;
mod isolation;
mod kinds;
mod machine;
mod options;
mod place;
mod replicated;
mod report;
mod resize;
mod ring;
mod rounds;
mod service;
mod share;
mod slice;
mod stats;
mod uncontended;
mod usage;
mod workers;

use std::{
    error::Error,
    time::{Duration, Instant},
};

use clap::Parser;

use bounds::{Bound, Limit, print_bounds};
use machine::Machine;
use options::{Common, Effort, given_or};
use place::Place;
use report::print_table;
use rounds::{Timing, order};
use share::HalfShare;
use slice::{Slice, Task};
use stats::Spread;
use usage::{Clocks, Reading};

/// As in the `ringfence` command.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a bench cannot go on.
type Failure = Box<dyn Error + Send + Sync>;

/// The lease of every contender: long enough that nobody has to renew in a slice.
const LEASE: Duration = Duration::from_secs(30);

/// The benches of Ringfence.
#[derive(Debug, Parser)]
#[command(name = "ringfence-bench")]
enum Bench {
    Backends(backends::Options),
    HotAccount(hot_account::Options),
    HotKey(hot_key::Options),
    Isolation(isolation::Options),
    Kinds(kinds::Options),
    Replicated(replicated::Options),
    Resize(resize::Options),
    Ring(ring::Options),
    Service(service::Options),
    Uncontended(uncontended::Options),
}

fn main() -> Result<(), Failure> {
    match Bench::parse() {
        Bench::Backends(options) => on_two_threads(backends::run(&options)),
        Bench::HotAccount(options) => hot_account::main(&options),
        Bench::HotKey(options) => hot_key::main(&options),
        Bench::Isolation(options) => on_two_threads(isolation::run(&options)),
        Bench::Kinds(options) => on_two_threads(kinds::run(&options)),
        Bench::Replicated(options) => on_two_threads(replicated::run(&options)),
        Bench::Resize(options) => on_two_threads(resize::run(&options)),
        Bench::Ring(options) => ring::main(&options),
        Bench::Service(options) => on_two_threads(service::run(&options)),
        Bench::Uncontended(options) => uncontended::main(&options),
    }
}

fn on_two_threads(bench: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(bench)
}

/// Now, for measuring how long something took.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures elapsed time, on a machine that is awake"
)]
fn now() -> Instant {
    Instant::now()
}
