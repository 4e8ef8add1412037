//! `ringfence-chaos`: real servers, real processes, and everything that can happen to them.

use std::{io, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use ringfence_chaos::{
    attack::{self, AttackArgs, AttackerArgs},
    checker::{Counts, check},
    client::{self, ClientArgs},
    coordinator::{self, CoordinatorArgs},
    counters::{self, CountersArgs, TellerArgs},
    history::History,
    mover::{self, MoverArgs},
    neighbour::{self, NeighbourArgs},
    run::{self, Outcome, RunArgs},
};

/// Does everything that can happen to shards, clients and connections, and checks that nobody ever
/// saw two holders.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs, and checks what happened.
    Run(RunArgs),
    /// Checks histories that were kept.
    Check {
        /// Where they are.
        dir: PathBuf,
    },
    /// The same for accounts: no coin is lost or made, and no answer is untrue.
    Counters(CountersArgs),
    /// Attacks coordinators with their default limits, and measures what becomes of a caller that means well.
    Attack(AttackArgs),
    #[command(hide = true)]
    Attacker(AttackerArgs),
    #[command(hide = true)]
    Client(ClientArgs),
    #[command(hide = true)]
    Coordinator(CoordinatorArgs),
    #[command(hide = true)]
    Mover(MoverArgs),
    #[command(hide = true)]
    Neighbour(NeighbourArgs),
    #[command(hide = true)]
    Teller(TellerArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args).await.map(|outcome| told(&outcome)),
        Command::Check { dir } => recheck(dir),
        Command::Counters(args) => counters::run(&args).await.map(|outcome| {
            print!("{outcome}");
            ExitCode::from(u8::from(!outcome.violations.is_empty()))
        }),
        Command::Attack(args) => attack::run(&args)
            .await
            .map(|broken| ExitCode::from(u8::from(!broken.is_empty()))),
        Command::Attacker(args) => attack::attacker(args).await.map(|()| ExitCode::SUCCESS),
        Command::Client(args) => client::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Coordinator(args) => coordinator::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Mover(args) => mover::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Neighbour(args) => neighbour::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Teller(args) => counters::tell(args).await.map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("ringfence-chaos: {error}");
        ExitCode::from(2)
    })
}

fn recheck(dir: PathBuf) -> io::Result<ExitCode> {
    let history = History::read(&dir)?;
    Ok(told(&Outcome {
        seed: history.events.first().map_or(0, |event| event.seed),
        length: Duration::ZERO,
        flags: "",
        counts: Counts::of(&history),
        violations: check(&history, &Counts::default()),
        kept: Some(dir),
    }))
}

fn told(outcome: &Outcome) -> ExitCode {
    print!("{outcome}");
    ExitCode::from(u8::from(!outcome.violations.is_empty()))
}
