//! `ringfence counter show`: an account's segments.

use std::fmt;

use ringfence_client::counter::segment::Look;
use serde::Serialize;

use super::{CliError, READ_EXIT_CODES, account::One};
use crate::table::Table;

/// Show the segments of an account
///
/// Prints one line per segment. "to spend": its money. "set aside": held reservations and transfers under way. "losses":
/// how often it may have lost its last changes in a restart, and went on. "state": sure, or "in doubt": it may have
/// lost its last changes, and moves no money until ringfence counter accept. Each segment is read on its own: the
/// lines are not of one instant, and money on its way between two segments is in none of them. For the sum:
/// ringfence counter balance
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
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
