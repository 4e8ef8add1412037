//! `ringfence demo` without the rest of the command `ringfence`.

use std::{env, ffi::OsString, io, io::IsTerminal, process::ExitCode};

use clap::{Parser, Subcommand};
use ringfence_demo::{
    Args,
    console::say,
    failure::{USAGE, fail, usage},
    run,
};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

/// The demo of Ringfence alone. The command `ringfence` has it, too: `cargo install --path cli`
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(Box<Args>),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

fn main() -> ExitCode {
    match Cli::try_parse().map(|cli| cli.command) {
        Ok(Command::Demo(args)) => {
            start_logs();
            run(&args).unwrap_or_else(|failure| fail(&failure))
        }
        Ok(Command::Other(given)) => {
            let command = given[0].display();
            say(&format!(
                "this binary has the demo alone; the whole command: \
                 cargo run --release -p ringfence-cli -- {command} …, or cargo install --path cli"
            ));
            ExitCode::from(USAGE)
        }
        Err(error) => usage(error),
    }
}

/// Logs to stderr: warnings, or as `RUST_LOG` says.
fn start_logs() {
    let named = env::var("RUST_LOG").ok();
    let filter = named.and_then(|filter| filter.parse().ok());
    let warnings = || Targets::new().with_default(LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .with_filter(filter.unwrap_or_else(warnings));
    registry().with(lines).init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
