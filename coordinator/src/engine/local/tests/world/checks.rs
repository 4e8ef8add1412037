//! The required properties of every effect that a local queue requests.

use super::{Did, LeaseView, Stands, World};
use crate::{engine::local::rules::Granted, limits::TOKENS_MAX};

impl World {
    pub(super) fn check_taken_back(&mut self, did: &Did) {
        for (gone, asked) in [(&did.give_back, false), (&did.abandon, true)] {
            let Some(gone) = gone else { continue };
            assert_eq!(asked, gone.0.until.get().is_none(), "the other way to end");
            assert!(self.holder.is_none(), "taken from its holder");
            assert!(!gone.0.ended.replace(true), "ended twice");
            let stood = self.stands.take().expect("only what stands there");
            assert!(stood.id() == gone.id());
            self.former.push(stood);
            if asked {
                let front = self.expected.first();
                assert!(front.is_none_or(|front| front.terms != *gone.terms()));
            } else {
                self.check_reason(gone);
                assert_eq!(did.yields, gone.0.contended.get().is_some());
                if did.yields {
                    assert!(
                        did.ask.is_none(),
                        "asked before another process is notified"
                    );
                    self.yielding = Some(gone.clone());
                }
            }
        }
    }

    /// No record goes back that a waiter here could have.
    fn check_reason(&mut self, gone: &Stands) {
        let facts = &gone.0;
        let handoff = self.policy.handoff;
        let spent = facts.left.get() == 0;
        let handed = facts.last.get().is_some();
        let fixed = facts.terms.hold_for.is_some();
        let enough = facts.contended.get().is_some_and(|since| {
            facts.handed_since.get() >= handoff.max || self.now.since(since) >= handoff.length
        });
        let never = handed && (fixed || handoff.max == 0 || enough);
        let nobody = match self.expected.first() {
            Some(front) => front.terms != facts.terms,
            None => !self.policy.lingers || facts.tired.get() || facts.contended.get().is_some(),
        };
        assert!(
            !gone.is_held(self.now) || spent || never || nobody,
            "given back without a reason: {facts:?}"
        );
        if !fixed && handoff.max > 0 {
            let ran_out = spent && facts.contended.get().is_none();
            self.last_block = Some((facts.asked, ran_out));
        }
    }

    pub(super) fn check_asked(&mut self, did: &Did, begun: &[Stands]) {
        assert_eq!(did.ask.is_some(), !begun.is_empty());
        let Some(ask) = &did.ask else { return };
        assert!(begun.len() == 1 && begun[0].id() == ask.id());
        assert!(self.stands.is_none(), "two things at the shard");
        assert!(
            self.yielding.is_none(),
            "asked before the release is answered"
        );
        let front = self.expected.first().expect("nobody wants it");
        assert_eq!(front.terms, *ask.terms(), "not as the first wants it");
        let queues = self.expected.iter().any(|known| !known.once);
        let callers = if queues { self.expected.len() } else { 0 };
        assert_eq!(ask.0.callers as usize, callers);
        let asked = ask.0.asked;
        assert!((1..=TOKENS_MAX).contains(&asked));
        if self.policy.handoff.max == 0 || front.terms.hold_for.is_some() {
            assert_eq!(asked, 1, "nobody else is handed any");
        } else if let Some((before, ran_out)) = self.last_block.take() {
            assert!(asked <= before || ran_out || before == 1, "grew unused");
        }
        self.stands = Some(ask.clone());
    }

    pub(super) fn check_granted(&mut self, granted: &Granted<Stands, u32>) {
        let Granted {
            who,
            lease,
            token,
            handed,
        } = granted;
        let facts = &lease.0;
        assert!(self.holder.replace(*who).is_none(), "two holders");
        assert!(
            self.stands
                .as_ref()
                .is_some_and(|stands| stands.id() == lease.id())
        );
        assert!(!facts.ended.get(), "handed on after its end");
        assert!(lease.is_held(self.now), "handed on past its deadline");
        let first = self.expected.remove(0);
        assert_eq!(first.name, *who, "out of turn");
        assert_eq!(first.terms, facts.terms, "on another's terms");
        let before = facts.last.replace(Some(*token));
        assert!(before.is_none_or(|before| before < *token), "not rising");
        assert!(token.counter() <= self.counter, "not one of the block");
        assert_eq!(*handed, before.is_some());
        facts
            .left
            .set(facts.left.get().checked_sub(1).expect("spent"));
        if *handed {
            assert!(facts.terms.hold_for.is_none(), "fixed, and handed on");
            assert!(self.policy.handoff.max > 0, "never hands on");
            if let Some(since) = facts.contended.get() {
                let handed = facts.handed_since.get() + 1;
                facts.handed_since.set(handed);
                assert!(handed <= self.policy.handoff.max, "too often");
                assert!(
                    self.now.since(since) < self.policy.handoff.length,
                    "too long"
                );
            }
        }
    }

    pub(super) fn check_busy(&mut self, did: &Did) {
        if let Some((lease, events)) = &did.busy {
            assert!(
                self.stands
                    .as_ref()
                    .is_some_and(|stands| stands.id() == lease.id())
            );
            assert!(self.holder.is_some());
            assert_eq!(*events, self.drop_known(|known| known.once));
        }
        if self.holder.is_some() {
            let once = self.expected.iter().any(|known| known.once);
            assert!(!once, "asked once, and waits for a second answer");
        }
    }

    /// No waiter is forgotten, and nothing is kept for none.
    pub(super) fn check_rest(&self, did: &Did) {
        assert_eq!(self.queue.len(), self.expected.len());
        assert_eq!(
            self.queue.is_empty(),
            self.expected.is_empty() && self.stands.is_none()
        );
        match self.expected.first() {
            Some(_) if self.yielding.is_some() => assert!(self.stands.is_none()),
            Some(front) => {
                let stands = self.stands.as_ref().expect("somebody is forgotten");
                if self.asks() {
                    assert_eq!(front.terms, *stands.terms());
                } else {
                    assert!(self.holder.is_some(), "somebody is forgotten");
                }
            }
            None => {
                if let (Some(stands), None) = (&self.stands, self.holder) {
                    let facts = &stands.0;
                    assert!(self.policy.lingers && !self.asks(), "kept for nobody");
                    assert!(facts.contended.get().is_none(), "kept, and contended");
                    assert!(!facts.tired.get() && stands.is_held(self.now));
                    assert!(
                        did.linger
                            .as_ref()
                            .is_some_and(|kept| kept.id() == stands.id())
                    );
                }
            }
        }
    }
}
