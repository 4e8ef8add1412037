//! `ringfence counter history`: the log of an account.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_millis;
use ringfence_client::counter::{AccountEffect, AccountHistory, HistoryCursor, segment::Effect};
use serde::Serialize;

use super::{
    CliError, READ_EXIT_CODES,
    account::{One, id_text},
};
use crate::table::Table;

/// Effects that are read, and printed, at a time.
const PAGE: u32 = 1_000;

/// How long to wait for more effects.
const PAUSE: Duration = Duration::from_secs(1);

/// Print the log of an account: every change of its money
///
/// Prints one line per effect, oldest first: its time, what changed, the amount, what can be spent
/// and what is set aside in the segment after it, and the request with the other account of a
/// transfer. Money that moves between segments of the account is "lent" and "landed". Effects of
/// different segments are in the order of their shards' clocks. "missing" says that effects before
/// that line are no longer kept, or were lost by the server. With --json, each page is one object on a
/// line of its own, and its `next` is the cursor for --after
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_CODES)]
pub(crate) struct History {
    #[command(flatten)]
    one: One,
    /// Only effects of the last LENGTH, such as 90m
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    since: Option<Duration>,
    /// Go on behind the effects that were printed before: the `next` of their page
    #[arg(long, value_name = "CURSOR", conflicts_with = "since")]
    after: Option<HistoryCursor>,
    /// Wait for more effects at the end, until a signal comes
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, Serialize)]
struct Page {
    account: String,
    effects: Vec<Line>,
    next: String,
    lost_segments: Vec<u32>,
    #[serde(skip)]
    is_first: bool,
}

/// An effect. Amounts are texts: many programs round such great numbers.
#[derive(Debug, Serialize)]
struct Line {
    at_ms: u64,
    segment: u32,
    number: u64,
    /// Whether effects before it are missing.
    follows_gap: bool,
    effect: &'static str,
    amount: String,
    available: String,
    held: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counterpart: Option<String>,
    /// Of money that moves between segments: the other segment, and the number of the loan.
    #[serde(skip_serializing_if = "Option::is_none")]
    loan: Option<(u32, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl History {
    pub(super) async fn run(&self) -> Result<(), CliError> {
        let (opened, counter) = self.one.open().await?;
        let mut from = match (&self.after, self.since) {
            (Some(after), _) => after.clone(),
            (None, Some(ago)) => HistoryCursor::since(since_ms(ago)),
            (None, None) => HistoryCursor::default(),
        };
        let mut is_first = true;
        loop {
            let found = counter.history(&from, PAGE).await?;
            let (is_end, is_empty) = (found.is_end, found.effects.is_empty());
            from = found.next.clone();
            if is_first || !is_empty {
                let page = Page::of(&self.one.account, found, is_first);
                opened.tell_part(&page)?;
            }
            is_first = false;
            match (is_end, self.follow) {
                (true, false) => break,
                (true, true) => tokio::time::sleep(PAUSE).await,
                (false, _) => {}
            }
        }
        opened.close().await;
        Ok(())
    }
}

/// The time so long ago, in ms since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the clocks of the shards show the time of day"
)]
fn since_ms(ago: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = now.unwrap_or_default().saturating_sub(ago);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Page {
    fn of(account: &str, found: AccountHistory, is_first: bool) -> Self {
        Self {
            account: account.to_owned(),
            effects: found.effects.into_iter().map(Line::from).collect(),
            next: found.next.to_string(),
            lost_segments: found.lost,
            is_first,
        }
    }
}

impl From<AccountEffect> for Line {
    fn from(found: AccountEffect) -> Self {
        let Effect {
            number,
            at_ms,
            kind,
            amount,
            value,
            held,
            reference,
        } = found.effect;
        Self {
            at_ms,
            segment: found.segment,
            number,
            follows_gap: found.follows_gap,
            effect: kind.word(),
            amount: amount.to_string(),
            available: value.to_string(),
            held: held.to_string(),
            request: kind.request().map(id_text),
            counterpart: kind.counterpart().map(ToString::to_string),
            loan: kind.loan(),
            reference: reference.map(|reference| reference.to_string()),
        }
    }
}

impl Line {
    /// The request and the other side, and what is missing before.
    fn about(&self) -> String {
        let request = self.request.clone().unwrap_or_default();
        let preposition = match self.effect {
            "received" | "landed" => "from",
            _ => "to",
        };
        let account = self.counterpart.as_ref();
        let account = account.map(|account| format!(" {preposition} {account}"));
        let loan = self
            .loan
            .map(|(of, _)| format!("{preposition} segment {of}"));
        let missing = if self.follows_gap {
            " (missing before)"
        } else {
            ""
        };
        let (account, loan) = (account.unwrap_or_default(), loan.unwrap_or_default());
        let reference = self.reference.as_ref();
        let reference = reference.map_or_else(String::new, |of| format!(", reference {of}"));
        format!("{request}{account}{loan}{reference}{missing}")
    }
}

impl fmt::Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.lost_segments {
            writeln!(out, "segment {segment} is lost, with its effects")?;
        }
        if self.is_first && self.effects.is_empty() {
            return writeln!(out, "no effects");
        }
        let headings = [
            "time",
            "effect",
            "amount",
            "to spend",
            "set aside",
            "segment",
            "request",
        ];
        let mut table = Table::new(&headings);
        for line in &self.effects {
            let at = UNIX_EPOCH + Duration::from_millis(line.at_ms);
            table.row([
                format_rfc3339_millis(at).to_string(),
                line.effect.to_owned(),
                line.amount.clone(),
                line.available.clone(),
                line.held.clone(),
                line.segment.to_string(),
                line.about(),
            ]);
        }
        write!(out, "{table}")
    }
}
