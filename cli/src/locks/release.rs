//! `ringfence locks release`: takes a lock from its holder.

use std::{fmt, process::ExitCode};

use serde::Serialize;

use super::{
    LocksError,
    output::{HolderOutput, Key},
    which::Which,
};
use crate::{
    place::Place,
    ring::{self, RingError},
};

const AFTER: &str = "\
Consequences for the holder:
  It learns of the loss with its next renewal, after at most a third of its lease,
  and works until then: make sure that it is dead, or that the resource checks
  tokens. `ringfence lock` then ends its command, with exit code 80.

Exit codes:
    0  released, or already free; --json tells which
    1  servers unreachable or misconfigured
    2  invalid command line or argument";

/// Take a lock from its holder by force
///
/// The first waiter gets it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result.
#[derive(Debug, Serialize)]
struct Released {
    #[serde(flatten)]
    key: Key,
    namespace: String,
    reason: String,
    released: bool,
    /// The holder that lost it; `None`: the lock was free.
    holder: Option<HolderOutput>,
}

impl Args {
    pub(super) async fn run(&self) -> Result<ExitCode, LocksError> {
        let key = self.which.key()?;
        let client = ring::connected(&self.place.named().map_err(RingError::from)?).await?;
        let lock = client.lock(&key);
        let lock = lock.namespace(self.which.namespace.as_str());
        let holder = lock.force_release(&self.reason).await;
        client.close().await;
        let holder = holder?;
        let released = Released {
            key: Key::new(&key),
            namespace: self.which.namespace.to_string(),
            reason: self.reason.clone(),
            released: holder.is_some(),
            holder: holder.as_ref().map(HolderOutput::from),
        };
        ring::print(&released, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl fmt::Display for Released {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, namespace) = (&self.key, &self.namespace);
        match &self.holder {
            None => writeln!(out, "{key}, namespace {namespace}, was free"),
            Some(holder) => writeln!(
                out,
                "{key}, namespace {namespace}, released: {} held it with token {}",
                holder.label, holder.last_token
            ),
        }
    }
}
