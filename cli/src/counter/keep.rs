//! `ringfence counter sweep`, `accept`: the regular work on accounts, one or many.

use std::{collections::BTreeSet, fmt, time::Duration};

use futures_util::{StreamExt as _, stream};
use ringfence_client::{Counter, counter::CounterError};
use serde::Serialize;
use tokio::time::sleep;

use super::{
    CliError, EXIT_CODES,
    account::{Location, Opened},
    list::Which,
    output::Output,
};
use crate::say;

/// Accounts that are worked on at a time.
const AT_A_TIME: usize = 256;

/// Failures that are said.
const SAID_MAX: usize = 20;

/// Expire reservations, finish interrupted transfers, forget old answers
///
/// It may run at any time, from any number of processes at once: from a timer, for example.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Sweep {
    #[command(flatten)]
    these: These,
}

/// Accept segments in doubt as they are, and replace lost segments
///
/// If a server restarted and may have lost its last changes, its segments are in doubt: they move
/// no money until a person compares them with other books (ringfence counter show) and accepts
/// them. If a server came back empty, its segments are lost, with their money, their reservations
/// and the transfers to them. New segments replace them; requests from before the loss are refused
/// there as too old. Takes about 11 s, for one account or for many. With --all, accounts without
/// doubt or loss stay as they are; if it is interrupted, repeat it: it goes on with the others
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Accept {
    #[command(flatten)]
    these: These,
}

/// One account, or all of some.
#[derive(Debug, clap::Args)]
struct These {
    /// The name of the account: 1 to 255 bytes
    #[arg(required_unless_present = "all", conflicts_with_all = ["all", "prefix", "in_doubt", "lost", "held", "unfinished"])]
    account: Option<String>,
    /// All accounts of the namespace, or those that --prefix, --in-doubt, --lost, --held and --unfinished choose
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    place: Location,
}

/// What was done to many accounts.
#[derive(Debug, Serialize)]
struct Many {
    outcome: &'static str,
    accounts: u64,
    failed: u64,
}

impl Sweep {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let opened = self.these.place.open().await?;
        let Some(account) = &self.these.account else {
            let swept = async |counter: Counter| {
                let mut swept = counter.sweep().await?;
                match swept.errors.is_empty() {
                    true => Ok(Duration::ZERO),
                    false => Err(swept.errors.swap_remove(0)),
                }
            };
            return self.these.each(opened, "swept", |_| true, swept).await;
        };
        let mut swept = opened.counters.open(account)?.sweep().await?;
        if !swept.errors.is_empty() {
            return Err(swept.errors.swap_remove(0).into());
        }
        let sentence = format!(
            "{} reservations expired, {} transfers delivered, {} transfers returned, {} answers forgotten",
            swept.expired, swept.delivered, swept.returned, swept.purged
        );
        opened.tell(Output::new(account, "swept", sentence)).await
    }
}

impl Accept {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let opened = self.these.place.open().await?;
        let Some(account) = &self.these.account else {
            let accepted = async |counter: Counter| {
                let (_, until_new) = counter.accept_now().await?;
                Ok(until_new)
            };
            let needs_it = |is_sound: bool| !is_sound;
            return self
                .these
                .each(opened, "accepted", needs_it, accepted)
                .await;
        };
        let before = opened.counters.open(account)?.accept().await?;
        let sentence = match before.lost.0.is_empty() {
            true => format!("{account} is taken for what it is"),
            false => format!(
                "{account} lost {}; it goes on without that money",
                before.lost
            ),
        };
        opened
            .tell(Output::new(account, "accepted", sentence))
            .await
    }
}

impl These {
    /// Does `work` to each account that is chosen, if it `needs` that, by whether it is sound; and waits for the longest
    /// of the times that this returned.
    async fn each(
        &self,
        opened: Opened,
        outcome: &'static str,
        needs: impl Fn(bool) -> bool,
        work: impl AsyncFn(Counter) -> Result<Duration, CounterError>,
    ) -> Result<(), CliError> {
        let mut chosen = BTreeSet::new();
        let accounts = opened.counters.list(&self.which.prefix);
        let unreachable = self.which.of(accounts, |listed| {
            if listed
                .found
                .as_ref()
                .map_or(true, |found| needs(found.is_sound()))
            {
                chosen.insert(listed.account.to_string());
            }
        });
        let unreachable = unreachable.await;
        let (work, counters) = (&work, opened.counters.clone());
        let counters = &counters;
        let done = stream::iter(chosen).map(async |account: String| {
            let done = match counters.open(&account) {
                Ok(counter) => work(counter).await,
                Err(error) => Err(error),
            };
            (account, done)
        });
        let mut done = std::pin::pin!(done.buffer_unordered(AT_A_TIME));
        let (mut accounts, mut failed, mut longest) = (0, 0, Duration::ZERO);
        while let Some((account, done)) = done.next().await {
            match done {
                Ok(length) => {
                    accounts += 1;
                    longest = longest.max(length);
                }
                Err(error) => {
                    failed += 1;
                    if failed <= SAID_MAX as u64 {
                        say(&format!("{account}: {error}"));
                    }
                }
            }
        }
        sleep(longest).await;
        let many = Many {
            outcome,
            accounts,
            failed,
        };
        opened.tell(many).await?;
        for (shard, error) in &unreachable {
            say(&format!("accounts of shard {shard} are missing: {error}"));
        }
        match (unreachable.len(), failed) {
            (0, 0) => Ok(()),
            (0, failed) => Err(CliError::Undone { failed }),
            (shards, _) => Err(CliError::Unlisted { shards }),
        }
    }
}

impl fmt::Display for Many {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            outcome,
            accounts,
            failed,
        } = self;
        write!(out, "{accounts} accounts {outcome}")?;
        match failed {
            0 => writeln!(out),
            failed => writeln!(out, ", {failed} not: repeat the command"),
        }
    }
}
