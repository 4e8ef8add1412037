//! The commands.

mod demo;
mod ring;
mod seeds;
mod table;

use std::{error::Error, io::IsTerminal, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

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
    Demo(Box<demo::Args>),
}

/// Does what the command line says. Exit code 0; 1 if it failed; 2 if it cannot be understood.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    log_to_stderr();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ringfence: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

impl Command {
    fn run(&self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Self::Ring(command) => ring::run(command)?,
            Self::Demo(args) => return Ok(demo::run(args)?),
        }
        Ok(ExitCode::SUCCESS)
    }
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
    eprint!("ringfence: {}", without_credentials(problem));
    ExitCode::from(USAGE)
}

/// `text` with what stands between `//` and `@` left out: an argument in the wrong place may be a
/// URL with a password.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split("//");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part
            .split([' ', '\'', '"', '\n'])
            .next()
            .unwrap_or_default();
        let credentials = word.rfind('@').map_or(0, |at| at + 1);
        shown.push_str("//");
        shown.push_str(&part[credentials..]);
    }
    shown
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(ansi)
        .with_writer(std::io::stderr)
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

    #[test]
    fn credentials_are_left_out_of_what_is_shown() {
        let shown =
            without_credentials("unexpected argument 'redis://coin:p@ss@db:1' // found a@b");
        assert_eq!(shown, "unexpected argument 'redis://db:1' // found a@b");
    }
}
