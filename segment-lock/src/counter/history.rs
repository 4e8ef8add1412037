//! Reads the log of an account: the logs of its segments, in the order of time.

use std::{fmt, str::FromStr};

use super::{Counter, CounterError};
use crate::{
    Manifest,
    limits::EFFECTS_PAGE_LEN_MAX,
    segment::{Effect, History, HistoryPage, Refusal, Reply, Request},
};

/// A place in the log of an account: behind the effects that were read. As a text, it can be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryCursor {
    since_ms: u64,
    /// By segment: the number of the last effect that was read.
    read: Vec<u64>,
}

/// A text that is no [`HistoryCursor`]. A repeat of the call cannot succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be a cursor of this account's history, as it was given")]
pub struct HistoryCursorError;

impl HistoryCursor {
    /// Before the first effect of this time or later, in ms since 1970. 0: before the oldest effect.
    pub fn since(since_ms: u64) -> Self {
        Self {
            since_ms,
            read: Vec::new(),
        }
    }

    fn read_at(&self, segment: u32) -> u64 {
        self.read.get(segment as usize).copied().unwrap_or_default()
    }

    fn set_read(&mut self, segment: u32, number: u64) {
        let segment = segment as usize;
        self.read.resize(self.read.len().max(segment + 1), 0);
        self.read[segment] = number;
    }
}

impl fmt::Display for HistoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.since_ms)?;
        self.read
            .iter()
            .try_for_each(|number| write!(f, ".{number}"))
    }
}

impl FromStr for HistoryCursor {
    type Err = HistoryCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let since_ms = numbers.next().flatten().ok_or(HistoryCursorError)?;
        let read: Option<_> = numbers.collect();
        let read = read.ok_or(HistoryCursorError)?;
        Ok(Self { since_ms, read })
    }
}

/// An effect at a segment of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEffect {
    /// The number of the segment, from 0.
    pub segment: u32,
    /// The effect.
    pub effect: Effect,
    /// Whether effects of the segment are missing between the one that was read before and this one: dropped because of
    /// their age or number, or lost by the server.
    pub follows_gap: bool,
}

/// A part of the log of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountHistory {
    /// The effects. Those of one segment are in their order, and all are in the order of their times, by the clocks of
    /// their shards.
    pub effects: Vec<AccountEffect>,
    /// Where to go on.
    pub next: HistoryCursor,
    /// Whether there were no more effects.
    pub is_end: bool,
    /// Segments that are lost, with their logs.
    pub lost: Vec<u32>,
}

impl Counter {
    /// Reads effects behind `from`, about `limit`; at least one of each segment that has one, and at most
    /// [`EFFECTS_PAGE_LEN_MAX`] of each.
    ///
    /// # Errors
    ///
    /// No account, or no answer; [`Refusal::NoLog`] of an account without a log.
    pub async fn history(
        &self,
        from: &HistoryCursor,
        limit: u32,
    ) -> Result<AccountHistory, CounterError> {
        let manifest = self.newest_manifest().await.map_err(CounterError::aside)?;
        let segments = manifest.segments();
        let most = (limit / segments.max(1)).clamp(1, EFFECTS_PAGE_LEN_MAX);
        let pages = self.history_pages(&manifest, from, most);
        let (pages, lost) = pages.await.map_err(CounterError::aside)?;
        let mut history = merged(pages, from);
        history.lost = lost;
        Ok(history)
    }

    /// A page of each segment, and the segments that are lost.
    async fn history_pages(
        &self,
        manifest: &Manifest,
        from: &HistoryCursor,
        most: u32,
    ) -> Result<(Vec<(u32, HistoryPage)>, Vec<u32>), CounterError> {
        let request = |index| {
            let history = History {
                after: from.read_at(index),
                since_ms: from.since_ms,
                most,
            };
            (self.at(manifest, index), Request::from(history))
        };
        let requests = (0..manifest.segments()).map(request).collect();
        let answers = self.storage.segments.call_all(requests).await;
        let (mut pages, mut lost) = (Vec::new(), Vec::new());
        for (index, answer) in (0..).zip(answers) {
            match answer? {
                Err(Refusal::Missing) => lost.push(index),
                answer => match answer? {
                    Reply::History(page) => pages.push((index, page)),
                    reply => return Err(CounterError::unexpected("history", &reply)),
                },
            }
        }
        Ok((pages, lost))
    }
}

/// The effects of all pages up to the time until which all of them are known.
fn merged(pages: Vec<(u32, HistoryPage)>, from: &HistoryCursor) -> AccountHistory {
    let ends = pages.iter().filter_map(|(_, page)| {
        let last = page.effects.last()?;
        (last.number < page.last).then_some(last.at_ms)
    });
    let until_ms = ends.min();
    let mut next = from.clone();
    let mut effects = Vec::new();
    for (segment, page) in pages {
        let mut before = from.read_at(segment);
        // Without a number that was read, what was before that time is not asked for.
        let is_first_known = before > 0 || from.since_ms == 0;
        for (nth, effect) in page.effects.into_iter().enumerate() {
            if until_ms.is_some_and(|until_ms| effect.at_ms > until_ms) {
                break;
            }
            let is_next = effect.number == before + 1;
            let follows_gap = !is_next && (nth > 0 || is_first_known);
            before = effect.number;
            next.set_read(segment, before);
            effects.push(AccountEffect {
                segment,
                effect,
                follows_gap,
            });
        }
    }
    // Stable: those of one segment stay in their order.
    effects.sort_by_key(|found| found.effect.at_ms);
    AccountHistory {
        effects,
        next,
        is_end: until_ms.is_none(),
        lost: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let mut cursor = HistoryCursor::since(17);
        cursor.set_read(2, 5);
        assert_eq!(cursor.to_string(), "17.0.0.5");
        for cursor in [HistoryCursor::default(), HistoryCursor::since(9), cursor] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "1.", "x", "1.-1", "1 2"] {
            assert_eq!(text.parse::<HistoryCursor>(), Err(HistoryCursorError));
        }
    }
}
