//! `ringfence counter balance`: how much there is.

use std::fmt;

use ringfence_client::counter;
use serde::Serialize;

use super::{CliError, EXIT_CODES, account::One};

/// Show how much an account has
///
/// By one look at each segment, which is fast: what changes meanwhile may count or not, and what moves between
/// segments twice, or not at all. With --exact: as it was at one instant.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Balance {
    #[command(flatten)]
    one: One,
    /// As it was at one instant
    #[arg(long)]
    exact: bool,
}

/// How much there is. Amounts are texts: many programs round numbers that great.
#[derive(Debug, Serialize)]
struct Shown {
    account: String,
    exact: bool,
    available: String,
    in_flight: String,
    held: String,
    losses: u64,
    counts_twice: bool,
}

impl Balance {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let balance = match self.exact {
            true => counter.exact_balance().await?,
            false => counter.balance().await?,
        };
        let counter::Balance {
            available,
            in_flight,
            held,
            losses,
            counts_twice,
        } = balance;
        let shown = Shown {
            account: self.one.account.clone(),
            exact: self.exact,
            available: available.to_string(),
            in_flight: in_flight.to_string(),
            held: held.to_string(),
            losses,
            counts_twice,
        };
        opened.tell(shown).await
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            available, held, ..
        } = self;
        let about = if self.exact { "" } else { "about " };
        writeln!(out, "{about}{available} to spend, {held} set aside")?;
        if self.counts_twice {
            writeln!(
                out,
                "some of it moved while it was counted, and counts twice: try --exact"
            )?;
        }
        if self.losses > 0 {
            let losses = self.losses;
            writeln!(out, "a shard may have lost changes to it, {losses} times")?;
        }
        Ok(())
    }
}
