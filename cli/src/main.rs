//! The `ringfence` command: founds topologies, runs commands under locks, shows what the locks do.

mod counter;
mod describe;
mod doctor;
mod lock;
mod locks;
mod logs;
mod place;
mod ring;
mod schema;
mod seeds;
mod serve;
mod signals;
mod uninstall;

use std::{env, process::ExitCode};

use clap::{
    CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use mimalloc::MiMalloc;
use ringfence_demo::{
    arguments::{self, length},
    console::{print, say, show},
    failure::{self, FAILED, Failure, Nature, UNAVAILABLE, USAGE, chain},
    redact, table,
};

/// Sessions make 8 % more pairs with it (docs/benchmarks/notes.md); that of musl, in the static image, is slow.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The version, and the commit that it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RINGFENCE_BUILT_FROM"));

/// A sharded lock coordinator: one holder, rising fencing tokens, no lost coin.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version = VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show and change the topology: the shards, and the slots of each shard
    #[command(subcommand)]
    Ring(ring::Command),
    Lock(Box<lock::Args>),
    /// Show and release locks: holders and waiters
    #[command(subcommand)]
    Locks(locks::Command),
    /// Accounts of money, coins or stock: deposit, deduct, reserve, transfer
    #[command(subcommand)]
    Counter(counter::Command),
    Serve(serve::Args),
    Dev(serve::dev::Args),
    /// The settings of a coordinator
    #[command(subcommand)]
    Config(serve::Command),
    /// The tables of servers that need some
    #[command(subcommand)]
    Schema(schema::Command),
    Demo(Box<ringfence_demo::Args>),
    Doctor(doctor::Args),
    Uninstall(uninstall::Args),
    Completions(describe::Completions),
    Man(describe::Man),
    /// Ends the process group it leads when its stdin closes: for `lock` alone
    #[command(name = lock::GUARDIAN, hide = true)]
    Guardian,
}

/// Runs the command line. Exit code 0; 1 if the command failed; 2 if the command line is invalid; `lock` has further
/// ones.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            hint(&mut error);
            return failure::usage(error);
        }
    };
    let ran = logs::start(&cli.command).and_then(|_traces| cli.command.run());
    match ran {
        Ok(code) => code,
        Err(failure) => failure::fail(&failure),
    }
}

impl Command {
    fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Ring(command) => match ring::run(command) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(error) => {
                    let nature = error.nature();
                    Err(Failure::new(error.code(), error).of(nature))
                }
            },
            Self::Lock(args) => {
                lock::run(args).map_err(|error| Failure::new(error.code(args), error))
            }
            Self::Locks(command) => locks::run(command).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Counter(command) => counter::run(command).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Serve(args) => serve::run(args).map_err(Failure::from),
            Self::Dev(args) => serve::dev::run(args).map_err(Failure::from),
            Self::Config(command) => serve::config(command).map_err(Failure::from),
            Self::Schema(command) => {
                schema::run(command).map_err(|error| Failure::new(FAILED, error))
            }
            Self::Demo(args) => ringfence_demo::run(args),
            Self::Doctor(args) => doctor::run(args).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Uninstall(args) => uninstall::run(args).map_err(|error| {
                let nature = error.nature();
                Failure::new(error.code(), error).of(nature)
            }),
            Self::Completions(args) => {
                describe::completions(args, <Cli as CommandFactory>::command())
                    .map_err(|error| Failure::new(FAILED, error))
            }
            Self::Man(args) => describe::man(args, <Cli as CommandFactory>::command())
                .map_err(|error| Failure::new(FAILED, error)),
            Self::Guardian => Ok(lock::guardian()),
        }
    }

    /// The log level unless `RUST_LOG` sets one; of a coordinator, until its settings are read. All commands except `config check`, `demo`, `dev` and `serve` print
    /// everything that a person needs to know.
    fn log_level(&self) -> &'static str {
        match self {
            Self::Demo(_)
            | Self::Dev(_)
            | Self::Serve(_)
            | Self::Config(serve::Command::Check(_)) => "warn",
            _ => "off",
        }
    }
}

impl From<serve::ServeError> for Failure {
    fn from(error: serve::ServeError) -> Self {
        let nature = error.nature();
        Self::new(error.code(), error).of(nature)
    }
}

/// Options of similar programs, and their names here.
const OPTIONS_ELSEWHERE: [(&str, &str); 8] = [
    ("--timeout", "--wait"),
    ("-w", "--wait"),
    ("-t", "--wait"),
    ("--nonblock", "--wait 0s"),
    ("--nb", "--wait 0s"),
    ("-n", "--wait 0s"),
    ("--lease", "--ttl"),
    ("--expires", "--ttl"),
];

/// Adds the name here to an error about an option of a similar program.
fn hint(error: &mut clap::Error) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let mut known = OPTIONS_ELSEWHERE.iter();
    let known = known.find(|(elsewhere, _)| elsewhere == given);
    if let Some((_, here)) = known
        && env::args_os()
            .nth(1)
            .is_some_and(|command| command == "lock")
    {
        error.remove(ContextKind::Suggested);
        let here = ContextValue::String((*here).to_owned());
        error.insert(ContextKind::SuggestedArg, here);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }
}
