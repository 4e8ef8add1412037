//! `ringfence locks`: holders and waiters.

mod list;
mod output;
mod release;
mod show;
mod which;

use std::process::ExitCode;

use clap::Subcommand;
use ringfence_client::{AcquireError, Effect};

use super::{FAILED, Nature, USAGE, ring::RingError};

const EXIT_CODES: &str = "\
Exit codes:
    0  printed; also for a free lock: --json has no holder then
    1  a server was unreachable or misconfigured; the answers of the others are
       printed
    2  invalid command line or argument

JSON:
  A key is any bytes. \"key_hex\" is the key in hexadecimal; \"key\" is the key as
  text, with a replacement character for bytes that are no text. Tokens are
  strings, since many programs round such large numbers.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Show(show::Args),
    List(list::Args),
    Release(release::Args),
}

/// The reason why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocksError {
    #[error("{0}")]
    Key(String),
    #[error(transparent)]
    Servers(#[from] RingError),
    #[error(transparent)]
    Shard(#[from] AcquireError),
}

impl LocksError {
    /// Its retryability and effect.
    pub(super) fn nature(&self) -> Nature {
        match self {
            Self::Key(_) => Nature::new(false, Effect::None),
            Self::Servers(error) => error.nature(),
            Self::Shard(error) => Nature::new(error.is_retryable(), error.effect()),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Key(_) => USAGE,
            Self::Servers(error) => error.code(),
            Self::Shard(_) => FAILED,
        }
    }
}

/// Runs the command, and prints the result.
pub(crate) fn run(command: &Command) -> Result<ExitCode, LocksError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RingError::Runtime)?;
    match command {
        Command::Show(args) => runtime.block_on(args.run()),
        Command::List(args) => runtime.block_on(args.run()),
        Command::Release(args) => runtime.block_on(args.run()),
    }
}
