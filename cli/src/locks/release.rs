//! `ringfence locks release`: takes a lock from its holders.

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
Consequences for each holder:
  It learns of the loss with its next renewal, after at most a third of its lease,
  and works until then: make sure that it is dead, or that the resource checks
  tokens. `ringfence lock` then ends its command, with exit code 80.

Exit codes:
    0  released
    3  it was free
    1  servers unreachable or misconfigured
    2  invalid command line or argument";

/// Nobody held the lock.
const FREE: u8 = 3;

/// Take a lock from all of its holders by force
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
    /// The holders that lost it, by their tokens; none: the lock was free.
    holders: Vec<HolderOutput>,
}

impl Args {
    pub(super) async fn run(&self) -> Result<ExitCode, LocksError> {
        let key = self.which.key()?;
        let client = ring::connected(&self.place.named().map_err(RingError::from)?).await?;
        let lock = client.lock(&key);
        let lock = lock.namespace(self.which.namespace.as_str());
        let holders = lock.force_release(&self.reason).await;
        client.close().await;
        let holders = holders?;
        let released = Released {
            key: Key::new(&key),
            namespace: self.which.namespace.to_string(),
            reason: self.reason.clone(),
            released: !holders.is_empty(),
            holders: holders.iter().map(HolderOutput::from).collect(),
        };
        ring::print(&released, self.json)?;
        Ok(match released.released {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(FREE),
        })
    }
}

impl fmt::Display for Released {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, namespace) = (&self.key, &self.namespace);
        if self.holders.is_empty() {
            return writeln!(out, "{key}, namespace {namespace}, was free");
        }
        for HolderOutput {
            label, last_token, ..
        } in &self.holders
        {
            writeln!(
                out,
                "{key}, namespace {namespace}, released: {label} held it with token {last_token}"
            )?;
        }
        Ok(())
    }
}
