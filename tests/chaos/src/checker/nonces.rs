//! The requests, answers and grants of each nonce, for all holders in its process.

use std::collections::{HashMap, HashSet};

use crate::history::{Event, History, Kind, Phase};

/// A request that its nonce's deadline may count from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    sent_ns: u64,
    judged_ns: u64,
    /// Whether the answer was a turn, valid only for the claim time.
    pub(super) turn: bool,
}

/// The knowledge about every nonce.
#[derive(Debug, Default)]
pub(super) struct Nonces<'h> {
    /// The times when its requests with a ticket left.
    asks: HashMap<&'h str, HashSet<u64>>,
    answered: HashMap<&'h str, Vec<Answered>>,
    /// The time when the lock was last handed on under it.
    handed: HashMap<&'h str, u64>,
}

impl<'h> Nonces<'h> {
    pub(super) fn of(history: &'h History) -> Self {
        let mut nonces = Self::default();
        for event in &history.events {
            if let Some(nonce) = event.deed.nonce.as_deref() {
                nonces.note(nonce, event);
            }
        }
        nonces
    }

    fn note(&mut self, nonce: &'h str, event: &Event) {
        let deed = &event.deed;
        let judged_ns = deed.judged_ns.unwrap_or(event.t_ns);
        match (deed.kind, deed.phase) {
            (Kind::Ask, _) => drop(self.asks.entry(nonce).or_default().insert(event.t_ns)),
            (Kind::Acquire | Kind::Grant, Phase::Ok) if deed.handed => {
                let last = self.handed.entry(nonce).or_default();
                *last = judged_ns.max(*last);
            }
            (Kind::Acquire | Kind::Grant | Kind::Renew, Phase::Ok) => {
                let of_nonce = self.answered.entry(nonce).or_default();
                of_nonce.extend(deed.sent_ns.map(|sent_ns| Answered {
                    sent_ns,
                    judged_ns,
                    turn: deed.turn,
                }));
            }
            _ => {}
        }
    }

    /// The time when the first request with a ticket of `nonce` left.
    pub(super) fn first_ask(&self, nonce: &str) -> Option<u64> {
        self.asks.get(nonce)?.iter().min().copied()
    }

    /// Whether a request with a ticket of `nonce` left at `sent_ns`.
    pub(super) fn asked_at(&self, nonce: &str, sent_ns: u64) -> bool {
        let asks = self.asks.get(nonce);
        asks.is_some_and(|asks| asks.contains(&sent_ns))
    }

    /// The request, answered by then, that the grant `acquired` counts from.
    pub(super) fn answered(&self, acquired: &Event) -> Option<Answered> {
        let deed = &acquired.deed;
        let of_nonce = self.answered.get(deed.nonce.as_deref()?)?;
        let is_it = |answered: &&Answered| {
            Some(answered.sent_ns) == deed.sent_ns && answered.judged_ns <= acquired.t_ns
        };
        of_nonce.iter().find(is_it).copied()
    }

    /// Whether its process handed the lock on after it made the grant `acquired`.
    pub(super) fn is_handed_on(&self, acquired: &Event) -> bool {
        let made = acquired.deed.judged_ns.unwrap_or(acquired.t_ns);
        let nonce = acquired.deed.nonce.as_deref().unwrap_or_default();
        self.handed.get(nonce).is_some_and(|last| *last > made)
    }
}
