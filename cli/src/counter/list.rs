//! `ringfence counter list`: the accounts of a namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ringfence_client::{
    AccountList, AccountListPage, ListedAccount,
    counter::{CounterError, Inspection},
};
use serde::Serialize;

use super::{CliError, READ_EXIT_CODES, account::Location, show::Facts};
use crate::{say, table::Table};

/// List accounts, by name
///
/// Prints one line per account: its name, the money that can be spent, what reservations and
/// transfers have set aside, and how many of its segments are in doubt or lost. Segments and
/// accounts are read one after the other, so the lines are not of one instant. An account whose
/// segments could not be read is listed with the reason, whatever the conditions
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
pub(crate) struct List {
    #[command(flatten)]
    place: Location,
    #[command(flatten)]
    which: Which,
    /// List at most N accounts; the others are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Which accounts.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Which {
    /// Only accounts whose names begin with TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) prefix: String,
    /// Only accounts with a segment in doubt; together with another condition, those of either kind
    #[arg(long)]
    in_doubt: bool,
    /// Only accounts with a lost segment
    #[arg(long)]
    lost: bool,
    /// Only accounts with money set aside
    #[arg(long)]
    held: bool,
    /// Only accounts with transfers from or to them that are not finished
    #[arg(long)]
    unfinished: bool,
}

#[derive(Debug, Default, Serialize)]
struct Listed {
    accounts: Vec<Line>,
    /// Accounts that are not listed.
    left_off: u64,
    /// Shards with some or all accounts missing from the list.
    unreachable: Vec<Unreachable>,
}

/// An account. Amounts are texts: many programs round such great numbers.
#[derive(Debug, Serialize)]
struct Line {
    account: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content {
    Read {
        available: String,
        held: String,
        segments: usize,
        /// The number of segments in doubt.
        in_doubt: usize,
        /// The number of lost segments.
        lost: usize,
        /// The number of transfers from or to it that are not finished.
        unfinished: usize,
        /// Whether more segments would help.
        is_hot: bool,
        #[serde(flatten)]
        details: Facts,
    },
    Failed {
        error: String,
    },
}

#[derive(Debug, Serialize)]
struct Unreachable {
    shard: String,
    error: String,
}

impl Which {
    /// Whether an account is one of these. One that could not be read may be.
    fn has(&self, found: &Result<Inspection, CounterError>) -> bool {
        let Ok(found) = found else {
            return true;
        };
        let any = !(self.in_doubt || self.lost || self.held || self.unfinished);
        any || (self.in_doubt && found.is_in_doubt())
            || (self.lost && !found.lost.0.is_empty())
            || (self.held && found.has_held())
            || (self.unfinished && found.has_unfinished())
    }

    /// The accounts of these that `accounts` lists, each once, and the shards that did not answer.
    pub(super) async fn of(
        &self,
        mut accounts: AccountList,
        mut take: impl FnMut(ListedAccount),
    ) -> Vec<(String, String)> {
        let mut unreachable = Vec::new();
        while let Some(AccountListPage { shard, accounts }) = accounts.next().await {
            match accounts {
                Ok(accounts) => accounts
                    .into_iter()
                    .filter(|listed| self.has(&listed.found))
                    .for_each(&mut take),
                Err(error) => unreachable.push((shard.to_string(), error.to_string())),
            }
        }
        unreachable
    }
}

impl List {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let opened = self.place.open().await?;
        let accounts = opened.counters.list(&self.which.prefix);
        // An account may be listed twice.
        let (mut names, mut first) = (BTreeSet::new(), BTreeMap::new());
        let unreachable = self.which.of(accounts, |listed| {
            let account = listed.account.to_string();
            names.insert(account.clone());
            first.insert(account, Content::of(&listed.found));
            if first.len() > self.limit as usize {
                first.pop_last();
            }
        });
        let unreachable: Vec<_> = (unreachable.await.into_iter())
            .map(|(shard, error)| Unreachable { shard, error })
            .collect();
        let left_off = (names.len() - first.len()) as u64;
        let lines = first.into_iter();
        let listed = Listed {
            accounts: lines
                .map(|(account, content)| Line { account, content })
                .collect(),
            left_off,
            unreachable,
        };
        let missing = missing(&listed.unreachable);
        opened.tell(listed).await?;
        missing.map_or(Ok(()), Err)
    }
}

/// Says which shards' accounts are missing.
fn missing(unreachable: &[Unreachable]) -> Option<CliError> {
    for Unreachable { shard, error } in unreachable {
        say(&format!("accounts of shard {shard} are missing: {error}"));
    }
    let shards = unreachable.len();
    (shards > 0).then_some(CliError::Unlisted { shards })
}

impl Content {
    fn of(found: &Result<Inspection, CounterError>) -> Self {
        match found {
            Ok(found) => {
                let Inspection { views, lost, .. } = found;
                let sum = |part: fn(&_) -> i64| -> String {
                    let parts = views.values().map(|view| i128::from(part(view)));
                    parts.sum::<i128>().to_string()
                };
                Self::Read {
                    available: sum(|view: &ringfence_client::counter::segment::SegmentView| {
                        view.value
                    }),
                    held: sum(|view| view.held),
                    segments: views.len(),
                    in_doubt: views.values().filter(|view| view.doubtful).count(),
                    lost: lost.0.len(),
                    unfinished: views.values().map(|view| view.unfinished).sum(),
                    is_hot: found.is_hot(),
                    details: Facts::of(&found.details),
                }
            }
            Err(error) => Self::Failed {
                error: error.to_string(),
            },
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.accounts.is_empty() {
            return writeln!(out, "no account is listed");
        }
        let mut table = Table::new(&["account", "to spend", "set aside", "state"]);
        for Line { account, content } in &self.accounts {
            let row = match content {
                Content::Read {
                    available,
                    held,
                    in_doubt,
                    lost,
                    ..
                } => {
                    let state = match (in_doubt, lost) {
                        (0, 0) => "sure".to_owned(),
                        (doubt, 0) => format!("{doubt} in doubt"),
                        (0, lost) => format!("{lost} lost"),
                        (doubt, lost) => format!("{doubt} in doubt, {lost} lost"),
                    };
                    [account.clone(), available.clone(), held.clone(), state]
                }
                Content::Failed { error } => {
                    let unknown = String::from("?");
                    [account.clone(), unknown.clone(), unknown, error.clone()]
                }
            };
            table.row(row);
        }
        write!(out, "{table}")?;
        match self.left_off {
            0 => Ok(()),
            left_off => writeln!(out, "\nand {left_off} more, which --limit left off"),
        }
    }
}
