//! The commands.

mod counter;
mod demo;
mod lock;
mod locks;
mod redact;
mod ring;
mod seeds;
mod signals;
mod table;

use std::{
    env,
    error::Error,
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

/// What was asked for cannot be done.
const FAILED: u8 = 1;
/// What was asked for cannot be understood.
const USAGE: u8 = 2;

/// A sharded lock coordinator: one holder, rising fencing tokens, no lost coin.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The topology: which servers are shards, and which slots are whose
    #[command(subcommand)]
    Ring(ring::Command),
    Lock(Box<lock::Args>),
    /// The locks: who has them, and who waits for them
    #[command(subcommand)]
    Locks(locks::Command),
    /// Accounts of money, coins or stock: what is put in, taken out, set aside, moved
    #[command(subcommand)]
    Counter(counter::Command),
    Demo(Box<demo::Args>),
    /// Ends the process group it leads when its stdin closes: for `lock` alone
    #[command(name = lock::GUARDIAN, hide = true)]
    Guardian,
}

/// Why a command did not do what was asked, and what to exit with.
struct Failure {
    code: u8,
    error: Box<dyn Error>,
}

/// Does what the command line says. Exit code 0; 1 if it failed; 2 if it cannot be understood; `lock`
/// has some of its own.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    log_to_stderr(cli.command.log_level());
    match cli.command.run() {
        Ok(code) => code,
        Err(Failure { code, error }) => {
            say(&chain(&*error));
            ExitCode::from(code)
        }
    }
}

impl Command {
    fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Ring(command) => match ring::run(command) {
                Ok(()) => Ok(ExitCode::SUCCESS),
                Err(error) => Err(Failure::new(error.code(), error)),
            },
            Self::Lock(args) => {
                lock::run(args).map_err(|error| Failure::new(error.code(args), error))
            }
            Self::Locks(command) => {
                locks::run(command).map_err(|error| Failure::new(error.code(), error))
            }
            Self::Counter(command) => {
                counter::run(command).map_err(|error| Failure::new(error.code(), error))
            }
            Self::Demo(args) => demo::run(args).map_err(|error| Failure::new(FAILED, error)),
            Self::Guardian => Ok(lock::guardian()),
        }
    }

    /// What is logged where `RUST_LOG` does not say. `lock` and `locks` tell their stories themselves.
    fn log_level(&self) -> &'static str {
        match self {
            Self::Lock(_) | Self::Locks(_) | Self::Counter(_) | Self::Guardian => "error",
            Self::Ring(_) | Self::Demo(_) => "warn",
        }
    }
}

impl Failure {
    fn new(code: u8, error: impl Error + 'static) -> Self {
        let error = Box::new(error);
        Self { code, error }
    }
}

/// Prints to stdout. Whoever reads it may stop reading: that is no failure.
fn show(what: impl Display) -> io::Result<()> {
    match write!(io::stdout(), "{what}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints to stdout, as one JSON object or for people.
fn print(what: &(impl Serialize + Display), json: bool) -> io::Result<()> {
    if json {
        let object = serde_json::to_string_pretty(what);
        show(object.expect("numbers, texts and lists") + "\n")
    } else {
        show(what)
    }
}

/// Tells whoever is at stderr, if anybody still is.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "ringfence: {what}");
}

/// `error` and what caused it, each cause once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Help, the version, or what is wrong with the command line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return error
            .print()
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let text = error.render().to_string();
    let problem = text.strip_prefix("error: ").unwrap_or(&text);
    let arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    say(redact::redacted(problem, arguments).trim_end());
    ExitCode::from(USAGE)
}

fn log_to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let ansi = io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(ansi)
        .with_writer(io::stderr)
        .init();
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
