//! `ringfence counter show`: an account's segments.

use std::fmt;

use ringfence_client::counter::segment::Look;
use serde::Serialize;

use super::{CliError, EXIT_CODES, account::One};
use crate::table::Table;

/// Show an account's segments: what each has, and whether it is in doubt
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Show {
    #[command(flatten)]
    one: One,
}

#[derive(Debug, Serialize)]
struct Shown {
    account: String,
    segments: Vec<Segment>,
}

/// A segment. Amounts are texts: many programs round numbers that great.
#[derive(Debug, Serialize)]
struct Segment {
    value: String,
    held: String,
    /// It moves no money until a person has accepted its state.
    doubtful: bool,
    /// How often it may have lost its last changes, and went on.
    losses: u64,
}

impl Show {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let looks = counter.inspect().await?;
        let shown = Shown {
            account: self.one.account.clone(),
            segments: looks.iter().map(Segment::from).collect(),
        };
        opened.tell(shown).await
    }
}

impl From<&Look> for Segment {
    fn from(look: &Look) -> Self {
        Self {
            value: look.value.to_string(),
            held: look.held.to_string(),
            doubtful: look.doubtful,
            losses: look.losses,
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["segment", "to spend", "set aside", "losses", "state"]);
        for (index, segment) in self.segments.iter().enumerate() {
            let state = if segment.doubtful { "in doubt" } else { "sure" };
            table.row([
                index.to_string(),
                segment.value.clone(),
                segment.held.clone(),
                segment.losses.to_string(),
                state.into(),
            ]);
        }
        write!(out, "{table}")
    }
}
