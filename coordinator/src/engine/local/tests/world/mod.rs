//! A local queue with a shard and a process around it, which checks every effect that the local queue requests.

mod checks;

use std::{cell::Cell, rc::Rc, time::Duration};

use super::super::{
    Handoff,
    rules::{Effects, LocalQueue, Policy, WaiterId},
    terms::{LeaseView, Terms},
    tokens::Tokens,
};
use crate::{
    clock::Instant,
    ids::{Epoch, Token},
    name::Label,
    shard::LockMode,
};

pub(super) const LEASE: Duration = Duration::from_millis(100);

/// The tests' knowledge of the local queue's entry at the shard.
#[derive(Debug)]
pub(super) struct Facts {
    terms: Terms,
    pub(super) asked: u32,
    pub(super) callers: u32,
    /// The time until which it is granted.
    until: Cell<Option<Instant>>,
    left: Cell<u32>,
    last: Cell<Option<Token>>,
    contended: Cell<Option<Instant>>,
    handed_since: Cell<u32>,
    tired: Cell<bool>,
    /// Given back, taken back, or lost.
    ended: Cell<bool>,
}

/// It is at the shard.
#[derive(Clone, Debug)]
pub(super) struct Stands(pub(super) Rc<Facts>);

impl LeaseView for Stands {
    type Id = *const Facts;

    fn id(&self) -> Self::Id {
        Rc::as_ptr(&self.0)
    }

    fn terms(&self) -> &Terms {
        &self.0.terms
    }

    fn is_held(&self, now: Instant) -> bool {
        self.0.until.get().is_some_and(|until| now < until)
    }
}

/// A waiter of the local queue, as the tests know it.
#[derive(Clone, Debug)]
struct Known {
    id: WaiterId,
    name: u32,
    terms: Terms,
    once: bool,
}

type Did = Effects<Stands, u32, ()>;

pub(super) struct World {
    pub(super) policy: Policy,
    queue: LocalQueue<Stands, u32>,
    expected: Vec<Known>,
    pub(super) stands: Option<Stands>,
    /// Given back for another process, and not answered yet.
    pub(super) yielding: Option<Stands>,
    /// The former entry at the shard.
    former: Vec<Stands>,
    pub(super) holder: Option<u32>,
    now: Instant,
    names: u32,
    counter: u64,
    /// The number of next requests that cannot even begin.
    pub(super) unbegun: u32,
    /// The number of tokens in the last request that could be handed on, and whether they ran out
    /// before another process waited for the lock.
    last_block: Option<(u32, bool)>,
}

/// The terms: equal for equal numbers; an odd number is a fixed hold.
pub(super) fn terms(number: u8) -> Terms {
    Terms {
        label: Label::new(&format!("terms {number}")),
        mode: LockMode::Exclusive,
        preferred: false,
        share: 0,
        tokens: 1,
        lease: LEASE,
        hold_for: (number % 2 == 1).then_some(LEASE / 2),
    }
}

impl World {
    pub(super) fn new(handoff: Handoff, lingers: bool) -> Self {
        Self {
            policy: Policy { handoff, lingers },
            queue: LocalQueue::default(),
            expected: Vec::new(),
            stands: None,
            yielding: None,
            former: Vec::new(),
            holder: None,
            now: Instant::from_nanos(1),
            names: 0,
            counter: 0,
            unbegun: 0,
            last_block: None,
        }
    }

    pub(super) fn join(&mut self, number: u8, once: bool) -> u32 {
        self.names += 1;
        let (name, terms) = (self.names, terms(number));
        let id = self.queue.join(terms.clone(), once, name);
        self.expected.push(Known {
            id,
            name,
            terms,
            once,
        });
        self.check_effects();
        name
    }

    pub(super) fn leave(&mut self, at: usize) {
        if self.expected.is_empty() {
            return;
        }
        let known = self.expected.remove(at % self.expected.len());
        assert_eq!(self.queue.leave(known.id), Some(known.name));
        assert_eq!(self.queue.leave(known.id), None, "left before");
        self.check_effects();
    }

    /// Whether a request is out.
    pub(super) fn asks(&self) -> bool {
        self.stands
            .as_ref()
            .is_some_and(|stands| stands.0.until.get().is_none())
    }

    /// The shard grants the request, with this many tokens.
    pub(super) fn granted(&mut self, tokens: u32, contended: bool) {
        let Some(stands) = self.stands.clone().filter(|_| self.asks()) else {
            return;
        };
        let first = Token::new(Epoch(7), self.counter + 1);
        self.counter += u64::from(tokens);
        stands.0.until.set(Some(self.now + LEASE));
        stands.0.left.set(tokens);
        if contended && stands.0.contended.get().is_none() {
            stands.0.contended.set(Some(self.now));
        } else if stands.0.contended.get().is_some() {
            // Known before the grant: it counts from the grant.
            stands.0.contended.set(Some(self.now));
        }
        self.queue
            .granted(Tokens::new(first, tokens), contended, self.now);
        self.check_effects();
    }

    /// It is not granted for now: waiters that ask once have their answer.
    pub(super) fn refused(&mut self) {
        if self.asks() {
            let once = self.drop_known(|known| known.once);
            assert_eq!(self.queue.dismiss_once(), once);
            self.check_effects();
        }
    }

    /// The request is refused for all waiters.
    pub(super) fn refused_for_good(&mut self) {
        if self.asks() {
            let all = self.drop_known(|_| true);
            assert_eq!(self.queue.dismiss(), all);
            self.check_effects();
        }
    }

    pub(super) fn released(&mut self) {
        if self.holder.take().is_some() {
            // It may have been lost meanwhile; then this has no effect.
            let held = self.queue.held().cloned();
            if let Some(held) = held {
                self.queue.released(held.id());
            }
        }
        self.check_effects();
    }

    /// The release of the entry that was given back is answered.
    pub(super) fn yielded(&mut self) {
        if let Some(yielding) = self.yielding.take() {
            self.queue.over(yielding.id());
            self.check_effects();
        }
    }

    /// The entry at the shard is gone.
    pub(super) fn over(&mut self) {
        if let Some(stands) = self.stands.take() {
            stands.0.ended.set(true);
            self.holder = None;
            self.queue.over(stands.id());
            self.former.push(stands);
            self.check_effects();
        }
    }

    /// The former entry is lost or released once more, late.
    pub(super) fn late(&mut self, at: usize) {
        if !self.former.is_empty() {
            let former = &self.former[at % self.former.len()];
            self.yielding.take_if(|its| its.id() == former.id());
            self.queue.over(former.id());
            self.queue.released(former.id());
            self.check_effects();
        }
    }

    pub(super) fn contended(&mut self) {
        if let Some(stands) = &self.stands {
            let facts = &stands.0;
            facts
                .contended
                .set(facts.contended.get().or(Some(self.now)));
        }
        self.queue.contended(self.now);
        self.check_effects();
    }

    pub(super) fn tired(&mut self) {
        if let Some(stands) = &self.stands
            && stands.0.until.get().is_some()
        {
            stands.0.tired.set(true);
        }
        self.queue.tired();
        self.check_effects();
    }

    pub(super) fn pass(&mut self, length: Duration) {
        self.now = self.now + length;
        self.check_effects();
    }

    fn drop_known(&mut self, picks: impl Fn(&Known) -> bool) -> Vec<u32> {
        let (gone, stay) = self.expected.drain(..).partition::<Vec<_>, _>(picks);
        self.expected = stay;
        gone.into_iter().map(|known| known.name).collect()
    }

    fn check_effects(&mut self) {
        let mut begun = Vec::new();
        let unbegun = &mut self.unbegun;
        let did: Did =
            self.queue
                .next_effects(self.now, self.policy, |_, terms, asked, callers| {
                    if *unbegun > 0 {
                        *unbegun -= 1;
                        return Err(());
                    }
                    let stands = Stands(Rc::new(Facts {
                        terms: terms.clone(),
                        asked,
                        callers,
                        until: Cell::default(),
                        left: Cell::default(),
                        last: Cell::default(),
                        contended: Cell::default(),
                        handed_since: Cell::default(),
                        tired: Cell::default(),
                        ended: Cell::default(),
                    }));
                    begun.push(stands.clone());
                    Ok(stands)
                });
        self.check_taken_back(&did);
        for (name, ()) in &did.refused {
            assert_eq!(self.expected.remove(0).name, *name, "refused out of turn");
        }
        self.check_asked(&did, &begun);
        if let Some(granted) = &did.grant {
            self.check_granted(granted);
        }
        self.check_busy(&did);
        self.check_rest(&did);
    }
}
