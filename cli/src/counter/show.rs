//! `ringfence counter show`: an account's segments.

use std::{collections::BTreeMap, fmt};

use ringfence_client::counter::{Details, LostSegment, segment::SegmentView};
use serde::Serialize;

use super::{CliError, READ_EXIT_CODES, account::One};
use crate::table::Table;

/// Show the segments of an account
///
/// Prints its unit, its limits and its labels, if it has any, and one line per segment. "to spend":
/// its available money. "set aside": reservations and transfers under way. "losses": how many restarts may have lost its last changes. "state": sure;
/// "in doubt": it may have lost its last changes, and moves no money until ringfence counter
/// accept; lost: its server came back empty, and ringfence counter accept replaces it without its
/// money. Each segment is read on its own: the lines are not of one instant, and money that moves
/// between two segments is in neither line. For the balance: ringfence counter balance
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
pub(crate) struct Show {
    #[command(flatten)]
    one: One,
}

#[derive(Debug, Serialize)]
struct Shown {
    account: String,
    #[serde(flatten)]
    details: Facts,
    segments: Vec<Segment>,
    lost: Vec<Lost>,
    /// Whether a segment has so many changes that more segments would help.
    is_hot: bool,
}

/// What the account is.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    unit: String,
    floor: String,
    ceiling: Option<String>,
    labels: BTreeMap<String, String>,
}

/// A segment. Amounts are texts: many programs round such great numbers.
#[derive(Debug, Serialize)]
struct Segment {
    index: u32,
    value: String,
    held: String,
    /// It moves no money until an operator has accepted its state.
    doubtful: bool,
    /// How often it may have lost its last changes and continued.
    losses: u64,
    /// The number of transfers from or to it that are not finished.
    unfinished: usize,
    /// Requests created at this time or before may be forgotten. 0: none is.
    forgotten_until_ms: u64,
    /// Changes of its money since a sweep has seen it.
    changes_per_s: Option<u64>,
}

/// A lost segment, and its content at the last sweep.
#[derive(Debug, Serialize)]
struct Lost {
    index: u32,
    last_seen: Option<LastSeen>,
}

#[derive(Debug, Serialize)]
struct LastSeen {
    /// Available and held money together.
    owned: String,
    at_ms: u64,
}

impl Show {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let found = counter.inspect().await?;
        let segment = |(&index, view)| Segment::of(index, view, &found.changes_per_s);
        let shown = Shown {
            account: self.one.account.clone(),
            details: Facts::of(&found.details),
            segments: found.views.iter().map(segment).collect(),
            lost: found.lost.0.iter().map(Lost::of).collect(),
            is_hot: found.is_hot(),
        };
        opened.tell(shown).await
    }
}

impl Facts {
    pub(super) fn of(details: &Details) -> Self {
        Self {
            unit: details.unit.to_string(),
            floor: details.floor.to_string(),
            ceiling: details.ceiling.map(|ceiling| ceiling.to_string()),
            labels: details.labels.clone(),
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unit.is_empty() {
            writeln!(out, "unit: {}", self.unit)?;
        }
        if self.floor != "0" {
            writeln!(out, "floor: {}", self.floor)?;
        }
        if let Some(ceiling) = &self.ceiling {
            writeln!(out, "ceiling: {ceiling}")?;
        }
        for (name, value) in &self.labels {
            writeln!(out, "label {name}={value}")?;
        }
        Ok(())
    }
}

impl Segment {
    fn of(index: u32, view: &SegmentView, changes_per_s: &BTreeMap<u32, u64>) -> Self {
        Self {
            index,
            value: view.value.to_string(),
            held: view.held.to_string(),
            doubtful: view.doubtful,
            losses: view.losses,
            unfinished: view.unfinished,
            forgotten_until_ms: view.mark_ms,
            changes_per_s: changes_per_s.get(&index).copied(),
        }
    }
}

impl Lost {
    fn of(lost: &LostSegment) -> Self {
        let last_seen = lost.last_seen.map(|seen| LastSeen {
            owned: seen.owned.to_string(),
            at_ms: seen.at_ms,
        });
        Self {
            index: lost.index,
            last_seen,
        }
    }

    fn state(&self) -> String {
        match &self.last_seen {
            Some(LastSeen { owned, at_ms }) => {
                format!("lost: {owned} in it at {at_ms} ms since 1970")
            }
            None => "lost: never seen by a sweep".into(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = self.segments.iter().map(|segment| {
            let state = if segment.doubtful { "in doubt" } else { "sure" };
            let row = [
                segment.index.to_string(),
                segment.value.clone(),
                segment.held.clone(),
                segment.losses.to_string(),
                state.into(),
            ];
            (segment.index, row)
        });
        let lost = self.lost.iter().map(|lost| {
            let unknown = || String::from("?");
            let index = lost.index.to_string();
            (
                lost.index,
                [index, unknown(), unknown(), unknown(), lost.state()],
            )
        });
        let rows: BTreeMap<_, _> = there.chain(lost).collect();
        let mut table = Table::new(&["segment", "to spend", "set aside", "losses", "state"]);
        for row in rows.into_values() {
            table.row(row);
        }
        write!(out, "{}{table}", self.details)?;
        if self.is_hot {
            let rate = self
                .segments
                .iter()
                .filter_map(|segment| segment.changes_per_s);
            writeln!(
                out,
                "a segment has {} changes/s; more segments share them: ringfence counter resegment {} {}",
                rate.max().unwrap_or_default(),
                self.account,
                2 * self.segments.len(),
            )?;
        }
        match self.lost.is_empty() {
            true => Ok(()),
            false => writeln!(
                out,
                "to go on without that money: ringfence counter accept {}",
                self.account
            ),
        }
    }
}
