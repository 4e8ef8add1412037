//! The gate: everything that a change must pass. `scripts/test` runs it.

mod binaries;
mod check;
mod context;
mod gate;
mod group;
mod leftovers;
mod libtest;
mod plan;
mod pool;
mod repeat;
mod report;

use std::{env, io, process::ExitCode, time::Duration};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{context::Context, gate::Gate};

/// Everything that a change must pass: format, lints, docs, and tests on real servers.
///
/// Installs what it needs where it may, and otherwise says what is missing. Nothing that fails stops anything else. The
/// last lines name what failed, with the command that repeats it, and what did not run, with the reason.
#[derive(Debug, Parser)]
#[command(name = "scripts/test")]
struct Args {
    /// Also the long part: long tests, more random cases, long runs of chaos, all models, Valkey, packages
    #[arg(long, conflicts_with_all = ["until", "repeat"])]
    long: bool,
    /// Also as much of the long part as ends within this time of the start, as `40m`; the commit chooses what comes first
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "repeat")]
    until: Option<Duration>,
    /// The tests alone, N times; prints a table of the tests that ever failed, with the seeds
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// … beside K processes that keep a processor busy
    #[arg(long, value_name = "K", default_value_t = 0, requires = "repeat")]
    busy: usize,
    /// The tests of servers on Valkey alone
    #[arg(long, conflicts_with_all = ["long", "until", "repeat"])]
    valkey: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scripts/test: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all passed.
async fn run(args: &Args) -> io::Result<bool> {
    let context = Context::new(env::current_dir()?)?;
    let gate = Gate::new(context);
    let whole = async {
        match (args.repeat, args.valkey) {
            (Some(rounds), _) => repeat::run(&gate, rounds, args.busy).await?,
            (None, true) => gate.valkey_alone().await,
            (None, false) => gate.whole(args.long, args.until).await,
        }
        io::Result::Ok(())
    };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    // What is dropped ends the processes that it started.
    tokio::select! {
        whole = whole => whole?,
        _ = interrupts.recv() => gate.stopped("SIGINT"),
        _ = terminations.recv() => gate.stopped("SIGTERM"),
    }
    gate.clear().await;
    if let Ok(free) = gate.free_disk() {
        println!("\nDisk: {} MiB free", free >> 20);
    }
    println!("{}", gate.report().summary());
    Ok(gate.report().failures().is_empty())
}
