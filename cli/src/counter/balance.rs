//! `ringfence counter balance`: the balance of an account.

use std::fmt;

use ringfence_client::counter;
use serde::Serialize;

use super::{CliError, READ_EXIT_CODES, account::One};

/// Show the balance of an account
///
/// Prints the available money, with the credit line; the money held by reservations and by transfers
/// under way; and the balance: both together without the credit line.
/// Without --exact each segment is read once, at about the same time: a concurrent change may count
/// or not, and money that moves between segments may count twice or not at all.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
pub(crate) struct Balance {
    #[command(flatten)]
    one: One,
    /// The balance at one instant. A busy account is frozen for a moment
    #[arg(long)]
    exact: bool,
}

/// The balance. Amounts are texts: many programs round such great numbers.
#[derive(Debug, Serialize)]
struct Shown {
    account: String,
    exact: bool,
    /// What the account has, without its credit line.
    ledger: String,
    available: String,
    in_flight: String,
    held: String,
    losses: u64,
    /// The number of lost segments. Their money does not count.
    lost: usize,
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
            ledger,
            available,
            in_flight,
            held,
            losses,
            lost,
            counts_twice,
        } = balance;
        let shown = Shown {
            account: self.one.account.clone(),
            exact: self.exact,
            ledger: ledger.to_string(),
            available: available.to_string(),
            in_flight: in_flight.to_string(),
            held: held.to_string(),
            losses,
            lost,
            counts_twice,
        };
        opened.tell(shown).await
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ledger,
            available,
            held,
            ..
        } = self;
        let about = if self.exact { "" } else { "about " };
        writeln!(
            out,
            "{about}{available} to spend, {held} set aside; the balance is {ledger}"
        )?;
        if self.counts_twice {
            writeln!(
                out,
                "some of it moved while it was counted, and counts twice: try --exact"
            )?;
        }
        if self.lost > 0 {
            let (lost, account) = (self.lost, &self.account);
            writeln!(
                out,
                "{lost} of its segments are lost, and what was in them does not count: ringfence counter show {account}"
            )?;
        }
        if self.losses > 0 {
            let losses = self.losses;
            writeln!(out, "a shard may have lost changes to it, {losses} times")?;
        }
        Ok(())
    }
}
