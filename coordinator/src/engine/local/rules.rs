//! One key in this process: its waiters in order, and its request or record at the shard. Pure: no
//! lock, no clock, no I/O.
//!
//! A caller that changes a local queue then performs the [effects](LocalQueue::next_effects). A process
//! has at most one request or one record at the shard at a time.

use std::collections::VecDeque;

use super::{
    Handoff,
    record::Record,
    terms::{LeaseView, Terms},
    tokens::Tokens,
};
use crate::{clock::Instant, ids::Token, limits::TOKENS_MAX};

/// Tokens requested at first if several waiters come: four times as many each time they were too
/// few.
const TOKENS_FIRST: u32 = 128;

/// The permitted uses of a record without a holder in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) handoff: Handoff,
    /// Keep it for the next waiter.
    pub(crate) lingers: bool,
}

/// Identifies a waiter of a local queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaiterId(u64);

#[derive(Debug)]
struct Waiter<W> {
    id: WaiterId,
    terms: Terms,
    /// Takes the first answer, and does not wait for another.
    once: bool,
    who: W,
}

/// The state at the shard.
#[derive(Debug)]
enum State<H> {
    Nothing,
    /// A request, with or without a place in the shard's queue.
    Asking {
        lease: H,
        /// Another process waits already, although the grant's answer has not arrived.
        contended: bool,
    },
    Held(Record<H>),
    /// A record on its way back, for which another process waits. A request sent together with that
    /// release would be served before the other process is notified.
    Yielding(H),
}

/// A key's local queue. `H` is the entry at the shard, `W` a waiter here.
#[derive(Debug)]
pub(crate) struct LocalQueue<H, W> {
    waiters: VecDeque<Waiter<W>>,
    /// Some waiters may have asked once.
    once: bool,
    next: u64,
    state: State<H>,
    /// How many tokens to request. One, until a waiter here could have been handed another.
    tokens: u32,
}

/// The effects of a change, in this order.
#[derive(Debug)]
pub(crate) struct Effects<H, W, E> {
    /// The record is to be released.
    pub(crate) give_back: Option<H>,
    /// Another process waits for that record: [`over`](LocalQueue::over) is due once the release is
    /// answered.
    pub(crate) yields: bool,
    /// The request is to be taken back.
    pub(crate) abandon: Option<H>,
    /// The request is to be sent.
    pub(crate) ask: Option<H>,
    /// The record is kept without a holder.
    pub(crate) linger: Option<H>,
    /// The next grant.
    pub(crate) grant: Option<Granted<H, W>>,
    /// More grants of the same record, to readers.
    pub(crate) beside: Vec<Granted<H, W>>,
    /// Waiters that asked once, and find the record in use.
    pub(crate) busy: Option<(H, Vec<W>)>,
    /// Waiters whose request cannot be made.
    pub(crate) refused: Vec<(W, E)>,
}

/// A grant to a waiter.
#[derive(Debug)]
pub(crate) struct Granted<H, W> {
    pub(crate) who: W,
    pub(crate) lease: H,
    pub(crate) token: Token,
    /// It had a holder in this process before.
    pub(crate) handed: bool,
}

impl<H, W, E> Default for Effects<H, W, E> {
    fn default() -> Self {
        Self {
            give_back: None,
            yields: false,
            abandon: None,
            ask: None,
            linger: None,
            grant: None,
            beside: Vec::new(),
            busy: None,
            refused: Vec::new(),
        }
    }
}

impl<H, W> Default for LocalQueue<H, W> {
    fn default() -> Self {
        Self {
            waiters: VecDeque::new(),
            once: false,
            next: 0,
            state: State::Nothing,
            tokens: 1,
        }
    }
}

impl<H: LeaseView, W> LocalQueue<H, W> {
    /// A waiter comes to the end of the local queue.
    pub(crate) fn join(&mut self, terms: Terms, once: bool, who: W) -> WaiterId {
        let id = WaiterId(self.next);
        self.next += 1;
        self.once |= once;
        if self.waiters.capacity() == 0 {
            // Usually no other waiter comes.
            self.waiters.reserve_exact(1);
        }
        self.waiters.push_back(Waiter {
            id,
            terms,
            once,
            who,
        });
        id
    }

    /// A waiter leaves before its grant; `None` if it has been granted.
    pub(crate) fn leave(&mut self, id: WaiterId) -> Option<W> {
        let at = self.waiters.binary_search_by_key(&id, |waiter| waiter.id);
        Some(self.waiters.remove(at.ok()?)?.who)
    }

    /// The shard granted the request.
    pub(crate) fn granted(&mut self, tokens: Tokens, contended: bool, now: Instant) {
        let State::Asking {
            lease,
            contended: known,
        } = &self.state
        else {
            return;
        };
        let mut record = Record::new(lease.clone(), tokens);
        if contended || *known {
            record.contended(now);
        }
        self.state = State::Held(record);
    }

    /// Another process waits for this process's record.
    pub(crate) fn contended(&mut self, now: Instant) {
        match &mut self.state {
            State::Nothing | State::Yielding(_) => {}
            State::Asking { contended, .. } => *contended = true,
            State::Held(record) => record.contended(now),
        }
    }

    /// The holder of `lease` has released it.
    pub(crate) fn released(&mut self, lease: H::Id) {
        if let State::Held(held) = &mut self.state
            && held.lease.id() == lease
        {
            held.released();
        }
    }

    /// The record was without a holder for as long as allowed.
    pub(crate) fn tired(&mut self) {
        if let State::Held(held) = &mut self.state {
            held.tired = true;
        }
    }

    /// `lease` is gone: it was in use, or only requested, or its release was answered.
    pub(crate) fn over(&mut self, lease: H::Id) {
        let is_its = match &self.state {
            State::Nothing => false,
            State::Asking { lease: its, .. } | State::Yielding(its) => its.id() == lease,
            State::Held(record) => record.lease.id() == lease,
        };
        if is_its {
            self.state = State::Nothing;
        }
    }

    /// All waiters leave.
    pub(crate) fn dismiss(&mut self) -> Vec<W> {
        self.waiters.drain(..).map(|waiter| waiter.who).collect()
    }

    /// The waiters that asked once leave.
    pub(crate) fn dismiss_once(&mut self) -> Vec<W> {
        if std::mem::take(&mut self.once) {
            self.dismiss_if(|waiter| waiter.once)
        } else {
            Vec::new()
        }
    }

    /// The waiters that `picks` selects leave.
    pub(crate) fn dismiss_where(&mut self, picks: impl Fn(&W) -> bool) -> Vec<W> {
        self.dismiss_if(|waiter| picks(&waiter.who))
    }

    fn dismiss_if(&mut self, picks: impl Fn(&Waiter<W>) -> bool) -> Vec<W> {
        if !self.waiters.iter().any(&picks) {
            return Vec::new();
        }
        let (leave, stay) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition::<VecDeque<_>, _>(picks);
        self.waiters = stay;
        leave.into_iter().map(|waiter| waiter.who).collect()
    }

    /// The lease that is requested.
    pub(crate) fn asking(&self) -> Option<&H> {
        match &self.state {
            State::Asking { lease, .. } => Some(lease),
            State::Nothing | State::Held(_) | State::Yielding(_) => None,
        }
    }

    /// The lease that is in use, or kept.
    pub(crate) fn held(&self) -> Option<&H> {
        match &self.state {
            State::Held(held) => Some(&held.lease),
            State::Nothing | State::Asking { .. } | State::Yielding(_) => None,
        }
    }

    pub(crate) fn is_asking(&self, lease: H::Id) -> bool {
        self.asking().is_some_and(|asking| asking.id() == lease)
    }

    pub(crate) fn holds(&self, lease: H::Id) -> bool {
        self.held().is_some_and(|held| held.id() == lease)
    }

    /// For how many waiters a request is to queue: for none, if each wants one answer.
    pub(crate) fn callers(&self) -> u32 {
        let is_patient = self.waiters.iter().any(|waiter| !waiter.once);
        if is_patient {
            self.waiters.len() as u32
        } else {
            0
        }
    }

    pub(crate) fn waiters(&self) -> impl Iterator<Item = &W> {
        self.waiters.iter().map(|waiter| &waiter.who)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// There is no waiter, and nothing at the shard.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && matches!(self.state, State::Nothing | State::Yielding(_))
    }

    /// The effects that are due now. `begin` makes a request for the first waiter, on these terms,
    /// for this many tokens, with a place in the shard's queue for so many callers.
    pub(crate) fn next_effects<E>(
        &mut self,
        now: Instant,
        policy: Policy,
        mut begin: impl FnMut(&W, Terms, u32, u32) -> Result<H, E>,
    ) -> Effects<H, W, E> {
        let mut effects = Effects::default();
        self.share_record(now, &mut effects);
        if let State::Held(held) = &self.state
            && !held.is_in_use()
        {
            self.use_record(now, policy, &mut effects);
        }
        if let State::Held(held) = &self.state
            && held.is_in_use()
        {
            let lease = held.lease.clone();
            effects.busy = Some((lease, self.dismiss_once())).filter(|(_, once)| !once.is_empty());
        }
        if let State::Asking { lease, .. } = &self.state
            && self
                .waiters
                .front()
                .is_none_or(|front| front.terms != *lease.terms())
        {
            effects.abandon = Some(lease.clone());
            self.state = State::Nothing;
        }
        while let (State::Nothing, Some(front)) = (&self.state, self.waiters.front()) {
            let tokens = self.tokens_for(&front.terms, policy);
            match begin(&front.who, front.terms.clone(), tokens, self.callers()) {
                Ok(lease) => {
                    self.tokens = self.tokens.max(tokens);
                    effects.ask = Some(lease.clone());
                    self.state = State::Asking {
                        lease,
                        contended: false,
                    };
                }
                Err(error) => {
                    let refused = self.waiters.pop_front().expect("just seen");
                    effects.refused.push((refused.who, error));
                }
            }
        }
        effects
    }

    /// Whether another acquisition, on `terms`, may come to it. A reader may if it can have the record together with those
    /// that have it, or wait for it; a writer waits for its turn anyway.
    pub(crate) fn is_open(&self, terms: &Terms, now: Instant) -> bool {
        let (lease, has_room) = match &self.state {
            State::Nothing => return true,
            State::Asking { lease, .. } => (lease, self.waiters.len() < self.tokens as usize),
            State::Held(record) => {
                let has_room = record.is_shared(now) && !record.is_contended();
                (&record.lease, has_room)
            }
            State::Yielding(lease) => (lease, false),
        };
        lease.terms() == terms && (has_room || !terms.is_shared())
    }

    /// The record of `lease`, in a queue of its own: the waiters of this one ask anew.
    pub(crate) fn split_off(&mut self, lease: H::Id) -> Option<Self> {
        self.holds(lease).then(|| Self {
            state: std::mem::replace(&mut self.state, State::Nothing),
            ..Self::default()
        })
    }

    /// Gives a record of readers to all that wait for it: each of them came while the queue was
    /// [open](Self::is_open).
    fn share_record<E>(&mut self, now: Instant, effects: &mut Effects<H, W, E>) {
        while let State::Held(record) = &self.state
            && record.is_shared(now)
        {
            match self.grant() {
                Some(granted) if effects.grant.is_none() => effects.grant = Some(granted),
                Some(granted) => effects.beside.push(granted),
                None => return,
            }
        }
    }

    /// Gives the record to the first waiter, keeps it, or gives it back.
    fn use_record<E>(&mut self, now: Instant, policy: Policy, effects: &mut Effects<H, W, E>) {
        let State::Held(record) = &mut self.state else {
            return;
        };
        let next = self.waiters.front();
        let goes_on = record.may_be_used(now, policy.handoff);
        if next.is_some_and(|next| goes_on && next.terms == *record.lease.terms()) {
            effects.grant = self.grant();
        } else if next.is_none()
            && goes_on
            && policy.lingers
            && !record.tired
            && !record.is_contended()
        {
            effects.linger = Some(record.lease.clone());
        } else {
            if next.is_some() && record.ran_out(policy.handoff) {
                let more = if record.is_contended() { 1 } else { 4 };
                self.tokens = (self.tokens * more).clamp(TOKENS_FIRST, TOKENS_MAX);
            }
            effects.yields = record.is_contended();
            let lease = record.lease.clone();
            self.state = match effects.yields {
                true => State::Yielding(lease.clone()),
                false => State::Nothing,
            };
            effects.give_back = Some(lease);
        }
    }

    fn grant(&mut self) -> Option<Granted<H, W>> {
        let State::Held(record) = &mut self.state else {
            return None;
        };
        self.waiters.front()?;
        let (token, handed) = record.take()?;
        Some(Granted {
            who: self.waiters.pop_front()?.who,
            lease: record.lease.clone(),
            token,
            handed,
        })
    }

    /// How many tokens to request on `terms`: those of one holder, if no other waiter could be handed another.
    fn tokens_for(&self, terms: &Terms, policy: Policy) -> u32 {
        if policy.handoff.max == 0 || terms.hold_for.is_some() {
            return terms.tokens;
        }
        if self.waiters.len() > 1 || policy.lingers || terms.is_shared() {
            self.tokens.max(TOKENS_FIRST)
        } else {
            self.tokens
        }
    }
}
