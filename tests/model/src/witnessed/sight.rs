//! What a process knows of the store's clock, by its own.

use super::{Rule, WitnessedModel, state::Clock};

/// A tick is at most so long.
const TICK_MAX: u8 = 2;

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) clock: Clock,
    /// No later was it put.
    seen: u8,
    /// When the latest request was sent that found it.
    asked: u8,
    /// It was put after this, if that is known.
    since: Option<u8>,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) sent: u8,
    pub(super) answered: u8,
    /// It put the clock forward.
    pub(super) put: bool,
}

impl WitnessedModel {
    /// What is known after `request` found `clock`.
    pub(super) fn sight(&self, known: Option<Sight>, request: Asked, clock: Clock) -> Sight {
        let Asked {
            sent,
            answered,
            put,
        } = request;
        let since = match known {
            Some(known) if known.clock.revision > clock.revision => return known,
            Some(known) if known.clock == clock => {
                let asked = known.asked.max(sent);
                return Sight { asked, ..known };
            }
            _ if self.breaks(Rule::SlackCountsFromAnEarlierClock) => Some(answered),
            Some(known) if put => Some(known.asked.max(sent)),
            Some(known) => Some(known.asked),
            None => put.then_some(sent),
        };
        let seen = match self.holds(Rule::TicksCountFromTheAnswer) {
            true => answered,
            false => sent,
        };
        Sight {
            clock,
            seen,
            asked: sent,
            since,
        }
    }

    /// What the clock may be put forward to.
    pub(super) fn tick(&self, sight: &Sight, now: u8) -> Option<Clock> {
        let unchanged = now - sight.seen;
        let length = match self.holds(Rule::TicksAreBounded) {
            true => unchanged.min(TICK_MAX),
            false => unchanged,
        };
        (unchanged > 0).then_some(Clock {
            revision: sight.clock.revision,
            shows: sight.clock.shows + length,
        })
    }

    /// By how much the next tick may exceed the time since a read that found this clock, or another.
    pub(super) fn slack(&self, sight: &Sight, request: Asked, clock: Clock) -> u8 {
        if self.breaks(Rule::EndsHaveSlack) {
            return 0;
        }
        let until = match self.holds(Rule::SlackCountsToTheAnswer) {
            true => request.answered,
            false => request.sent,
        };
        let since = sight.since.filter(|_| sight.clock == clock);
        since.map_or(TICK_MAX, |since| until.saturating_sub(since).min(TICK_MAX))
    }

    /// By how much the clock may exceed what it showed here, and the time from `now` on: it may have been put forward since.
    pub(super) fn late(&self, sight: &Sight, now: u8) -> Option<u8> {
        let unseen = now - sight.since?;
        match self.holds(Rule::SlackWithoutAReadIsWhole) {
            true => (unseen <= TICK_MAX).then_some(unseen),
            false => Some(unseen.min(TICK_MAX)),
        }
    }
}
