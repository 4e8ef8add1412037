//! One grant, and the time during which its holder believed in it.

use std::{iter, ops::Range};

use super::nonces::Nonces;
use crate::history::{Event, Phase, Share, Token};

/// How much the rates of two clocks may differ, in parts per thousand.
const RHO_PERMILLE: u64 = 10;
/// Subtracted from every deadline, in addition.
const MARGIN_NS: u64 = 20_000_000;
/// The maximum length of a grant to a ticket.
pub(super) const CLAIM_MAX_MS: u64 = 3000;

/// One grant, and its history.
#[derive(Debug)]
pub struct Grant<'h> {
    /// The answer that informed its holder.
    pub acquired: &'h Event,
    /// The time when its request began.
    pub asked_ns: u64,
    /// The lock.
    pub key: &'h str,
    /// Its acquisition. Grants that are handed on within a process share one.
    pub nonce: &'h str,
    /// The token of the grant.
    pub token: Token,
    /// Answers to renewals of its nonce while it was the nonce's last grant, in the order of time.
    pub renewals: Vec<&'h Event>,
    /// When it became a reader's.
    pub downgraded_ns: Option<u64>,
    /// The time when its release began, and the end of that release.
    pub release: Option<(&'h Event, Option<&'h Event>)>,
    /// The time when its process was killed.
    pub killed_ns: Option<u64>,
    /// The time when an operator began to take its key from its holders by force.
    pub forced_ns: Option<u64>,
    /// Whether its process handed the lock on after it, so that its release did not end the record.
    pub handed_on: bool,
    /// Whether it counts from a request of its nonce that may have had this answer.
    pub(super) is_founded: bool,
    /// The length granted by the request that it counts from.
    length_ms: u64,
}

/// The time when belief ends, for a request sent at `sent_ns` and granted for `length_ms`.
pub(super) fn believed_until(sent_ns: u64, length_ms: u64) -> u64 {
    let length_ns = length_ms * 1_000_000;
    sent_ns + (length_ns - length_ns / 1000 * RHO_PERMILLE).saturating_sub(MARGIN_NS)
}

impl<'h> Grant<'h> {
    /// The grant of `acquired`, requested at `asked_ns`; None if it is not a grant.
    pub(super) fn new(acquired: &'h Event, asked_ns: u64, nonces: &Nonces<'h>) -> Option<Self> {
        let deed = &acquired.deed;
        let (key, nonce) = (deed.key.as_deref()?, deed.nonce.as_deref()?);
        let request = nonces.answered(acquired);
        let lease_ms = deed.lease_ms.unwrap_or(0);
        let claimed = request.map_or(deed.turn, |request| request.turn);
        let mut grant = Self {
            acquired,
            asked_ns,
            key,
            nonce,
            token: deed.token?,
            renewals: Vec::new(),
            downgraded_ns: None,
            release: None,
            killed_ns: None,
            forced_ns: None,
            handed_on: nonces.is_handed_on(acquired),
            is_founded: true,
            length_ms: lease_ms.min(if claimed { CLAIM_MAX_MS } else { u64::MAX }),
        };
        let sent = grant.sent_ns();
        grant.is_founded = match (deed.handed, deed.turn) {
            (true, _) => request.is_some(),
            (false, true) if nonces.first_ask(nonce).is_some() => nonces.asked_at(nonce, sent),
            (false, _) => {
                let first = nonces.first_ask(nonce).unwrap_or(asked_ns);
                (first.min(asked_ns)..=acquired.t_ns).contains(&sent)
            }
        };
        Some(grant)
    }

    /// How much of the key it has at `t_ns`.
    pub fn share_at(&self, t_ns: u64) -> Share {
        let share = self.acquired.deed.share;
        match self
            .downgraded_ns
            .filter(|downgraded_ns| *downgraded_ns <= t_ns)
        {
            Some(_) => Share { count: 1, ..share },
            None => share,
        }
    }

    /// The time when its holder was informed.
    pub fn told_ns(&self) -> u64 {
        self.acquired.t_ns
    }

    /// The time when its process knew of it, or handed it on.
    pub fn judged_ns(&self) -> u64 {
        self.acquired.deed.judged_ns.unwrap_or(self.told_ns())
    }

    /// The time when the request that it counts from had left.
    pub fn sent_ns(&self) -> u64 {
        self.acquired.deed.sent_ns.unwrap_or(self.asked_ns)
    }

    /// The earliest time at which the shard can have granted it.
    pub(super) fn made_since_ns(&self) -> u64 {
        if self.acquired.deed.handed {
            self.judged_ns()
        } else {
            self.sent_ns()
        }
    }

    /// Whether it was handed on within its process once its record was taken by force.
    pub(super) fn is_handed_after_force(&self) -> bool {
        let is_after = |forced: u64| forced <= self.judged_ns();
        self.acquired.deed.handed && self.forced_ns.is_some_and(is_after)
    }

    /// Each answer that sets a deadline, with that deadline.
    pub fn deadlines(&self) -> impl Iterator<Item = (&'h Event, u64)> {
        let lease_ms = self.acquired.deed.lease_ms.unwrap_or(0);
        let mut deadline = self.first_deadline_ns();
        let granted = (self.acquired, deadline);
        let renewed = self.renewals.iter().filter_map(move |event| {
            let sent = event
                .deed
                .sent_ns
                .filter(|_| event.deed.phase == Phase::Ok)?;
            if event.t_ns < deadline {
                deadline = deadline.max(believed_until(sent, lease_ms));
            }
            Some((*event, deadline))
        });
        iter::once(granted).chain(renewed)
    }

    /// When its fixed hold ends, at the latest.
    pub(super) fn ends_ns(&self) -> Option<u64> {
        let hold_ms = self.acquired.deed.hold_ms?;
        // What is handed on ends as the grant of before.
        (!self.acquired.deed.handed).then(|| self.judged_ns() + hold_ms * 1_000_000)
    }

    /// Its first deadline.
    pub(super) fn first_deadline_ns(&self) -> u64 {
        believed_until(self.sent_ns(), self.length_ms)
    }

    /// Its last deadline.
    pub fn deadline_ns(&self) -> u64 {
        self.deadlines().last().map_or(0, |(_, deadline)| deadline)
    }

    /// The time during which its holder may have believed in it. May be empty.
    pub(super) fn possible(&self) -> Range<u64> {
        self.told_ns()..self.ended_by(self.deadline_ns())
    }

    /// The time during which its holder certainly believed in it, and nobody took it by force. May be empty.
    pub fn certain(&self) -> Range<u64> {
        let ended = self.ended_by(self.told_deadline_ns());
        self.told_ns()..self.forced_ns.map_or(ended, |forced| forced.min(ended))
    }

    /// Its deadline in the end, as its engine told it: earlier with `removal = leased`, where belief ends with the view of
    /// the topology, unless that is confirmed.
    pub(super) fn told_deadline_ns(&self) -> u64 {
        let told = self.deadlines().map(|(event, allowed)| {
            let told = event.deed.deadline_ns.unwrap_or(allowed);
            told.min(allowed)
        });
        told.max().unwrap_or(0)
    }

    /// When belief ended that could last until `deadline_ns`.
    fn ended_by(&self, deadline_ns: u64) -> u64 {
        let released = self.release.map(|(begun, _)| begun.t_ns);
        let ends = [released, self.killed_ns].into_iter().flatten();
        ends.fold(deadline_ns, u64::min)
    }

    /// The shard's answer to its release, if it came while the holder believed in it.
    pub fn released(&self) -> Option<&'h Event> {
        let (_, ended) = self.release.filter(|_| !self.handed_on)?;
        ended.filter(|event| event.deed.phase == Phase::Ok && event.t_ns < self.deadline_ns())
    }

    /// The last time at which an answer to one of its requests showed a record in place.
    pub fn last_sent_ns(&self) -> u64 {
        let renewed = self
            .renewals
            .iter()
            .filter(|event| event.deed.phase == Phase::Ok);
        let sent = renewed.filter_map(|event| event.deed.sent_ns).max();
        sent.map_or(self.sent_ns(), |sent| sent.max(self.sent_ns()))
    }
}
