//! What is on its way for one nonce, so that nothing overtakes it.

use std::time::Duration;

use super::AcquireError;
use crate::{
    backoff::Backoff,
    driver::{Answer, Answered},
    failpoint::{Rule, is_off},
    shard::{Effect, Lane, Reply},
};

/// First and longest pause before a shard in trouble is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Requests of one kind, of which one at most is out.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    out: bool,
    /// One got no answer and may still arrive: until its lane has answered another.
    unanswered: bool,
}

impl Exchange {
    pub(super) fn is_out(&self) -> bool {
        self.out
    }

    pub(super) fn sent(&mut self) {
        self.out = true;
    }

    pub(super) fn answered(&mut self, answer: &Answer) {
        self.out = false;
        self.unanswered = match answer {
            Ok(_) => false,
            Err(error) => self.unanswered || error.effect() == Effect::Unknown,
        };
    }

    fn is_in_doubt(&self) -> bool {
        self.out || self.unanswered
    }
}

/// What is on its way for one nonce.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) asking: Exchange,
    pub(super) renewing: Exchange,
    /// Whether the next request queues.
    pub(super) ticket: bool,
    /// A grant, or a ticket, may be at the shard.
    left: bool,
    /// Pauses between requests that met trouble.
    pub(super) retry: Backoff,
    /// Why it is not granted yet.
    pub(super) refusal: Option<AcquireError>,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            asking: Exchange::default(),
            renewing: Exchange::default(),
            ticket: true,
            left: false,
            retry: Backoff::new(RETRY.0, RETRY.1),
            refusal: None,
        }
    }
}

/// How a release overtakes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// There, behind whatever is out on that lane.
    Lane(Lane),
    /// On both lanes, one after the other: on each something may still arrive.
    Both,
}

impl Flow {
    /// A request to acquire came to its end.
    pub(super) fn asked(&mut self, answer: &Answer) {
        self.asking.answered(answer);
        self.left |= match answer {
            Ok(Answered { reply, .. }) => match reply {
                Reply::Granted { .. } => true,
                Reply::Held { .. } | Reply::Grace { .. } => self.ticket,
                _ => false,
            },
            Err(error) => error.effect() == Effect::Unknown,
        };
    }

    /// Whether something may yet come to the shard that makes a record there.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.asking.is_in_doubt() || self.renewing.is_in_doubt()
    }

    /// Whether something of it may be at the shard, or may yet come there.
    pub(super) fn may_be_there(&self) -> bool {
        self.left || self.asking.is_in_doubt()
    }

    /// Where a release goes.
    pub(super) fn release_behind(&self) -> Behind {
        let renewing = self.renewing.is_in_doubt() && !is_off(Rule::ReleaseBehindRenewal);
        match (self.asking.is_in_doubt(), renewing) {
            (_, false) => Behind::Lane(Lane::Work),
            (false, true) => Behind::Lane(Lane::Renew),
            (true, true) => Behind::Both,
        }
    }
}
