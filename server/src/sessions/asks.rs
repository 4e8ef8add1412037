//! The asks of a caller.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{
        AcquireAsk, AcquireRequest, Ask, DowngradeAsk, ReleaseAsk, ReleaseNotice, ReleaseOutcome,
        ResumeAsk, SessionOpened, SessionRequest, SessionTerms, answer, ask,
    },
};
use ringfence_client::{LeaseRef, limits::SESSION_TOKENS_MAX};
use tokio::time::Instant;

use super::{
    Shared,
    session::{Entry, Session, Terms},
    work,
};
use crate::{
    access::Call,
    fields::{label, length, to_length},
    locks::Told,
};

/// Pings have all locks of a session renewed this often at most, or within a twelfth of their leases if that is less.
const RENEWS_EVERY: Duration = Duration::from_millis(50);

impl Session {
    /// Takes in a message. The error ends the session.
    pub(super) fn ask(&mut self, message: SessionRequest) -> Result<(), Error> {
        match (message.terms, &self.terms) {
            (Some(terms), None) => {
                let terms = self.terms_of(terms)?;
                let ttl = Some(to_length(terms.ttl));
                self.terms = Some(terms);
                self.tell(0, answer::Kind::Opened(SessionOpened { ttl }));
            }
            (None, Some(_)) => {}
            (None, None) => {
                let limit = "set in the first message";
                return Err(Error::invalid("terms", "unset", limit));
            }
            (Some(_), Some(_)) => {
                let limit = "unset after the first message";
                return Err(Error::invalid("terms", "set", limit));
            }
        }
        self.room_for_asks = Some(self.caller.room_for_asks(message.asks.len())?);
        self.asks = message.asks.into();
        Ok(())
    }

    fn terms_of(&self, terms: SessionTerms) -> Result<Terms, Error> {
        let max = self.shared.client.topology().constants.max_lease();
        let ttl = length("terms.ttl", terms.ttl)?.unwrap_or(max);
        let min = ringfence_client::limits::LEASE_MIN;
        if !(min..=max).contains(&ttl) {
            let limit = format!("{min:?} to {max:?}");
            return Err(Error::invalid("terms.ttl", format!("{ttl:?}"), limit));
        }
        let label = label(&terms.label);
        Ok(Terms { ttl, label })
    }

    /// Begins what an ask asks for. The error ends the session.
    pub(super) fn one(&mut self, Ask { id, kind }: Ask) -> Result<(), Error> {
        let Some(kind) = kind else {
            return Err(Error::invalid("asks.kind", "unset", "one of the kinds"));
        };
        self.latest = id;
        let is_for_a_lock = matches!(kind, ask::Kind::Acquire(_) | ask::Kind::Resume(_));
        if is_for_a_lock && self.entries.contains_key(&id) {
            let limit = "an id that no lock or wait of the session has";
            return Err(Error::invalid("asks.id", id, limit));
        }
        let begun = match kind {
            ask::Kind::Acquire(ask) => self.acquire(id, ask),
            ask::Kind::Resume(ask) => self.resume(id, &ask),
            ask::Kind::Release(ask) => {
                self.release(id, &ask);
                Ok(())
            }
            ask::Kind::Downgrade(ask) => self.downgrade(id, &ask),
            ask::Kind::Ping(_) => {
                self.ping(id);
                Ok(())
            }
        };
        if let Err(error) = begun {
            self.refuse(id, &error);
        }
        Ok(())
    }

    fn acquire(&mut self, id: u64, ask: AcquireAsk) -> Result<(), Error> {
        self.caller.admit(Call::Acquire(&ask.namespace, &ask.key))?;
        self.has_room()?;
        let max = self.shared.limits.session_waiters;
        if self.waits >= max {
            return Err(self.limited(Reason::TooManyWaiters, "session_waiters", max));
        }
        let Terms { ttl, label } = self.terms().clone();
        let AcquireAsk {
            namespace,
            key,
            hold_for,
            wait,
            mode,
            permits,
            capacity,
            preferred,
            tokens,
            nonce,
        } = ask;
        if tokens > SESSION_TOKENS_MAX {
            let limit = format!("at most {SESSION_TOKENS_MAX}");
            return Err(Error::invalid("tokens", tokens, limit));
        }
        let ask = AcquireRequest {
            namespace,
            key,
            lease: None,
            hold_for,
            wait,
            label,
            mode,
            permits,
            capacity,
            preferred,
            nonce,
        };
        let (shared, caller) = (self.shared.clone(), self.caller.clone());
        let (asked, reasons) = ((ask, tokens.max(1)), self.reasons.clone());
        let (acquisition, abort) = work::acquire(shared, id, caller, asked, ttl, reasons);
        self.work.push(acquisition);
        self.waits += 1;
        let told = Told::default();
        self.entries.insert(id, Entry::Waits { abort, told });
        Ok(())
    }

    fn resume(&mut self, id: u64, ask: &ResumeAsk) -> Result<(), Error> {
        // Also of a coordinator that stops: its caller may have no other, to release the lock.
        let lease = self.open(&ask.handle)?;
        self.has_room()?;
        let (shared, caller) = (self.shared.clone(), self.caller.clone());
        let (resumption, abort) = work::resume(shared, id, caller, lease.clone())?;
        self.work.push(resumption);
        self.entries.insert(id, Entry::Resumes { abort, lease });
        Ok(())
    }

    fn open(&self, handle: &[u8]) -> Result<LeaseRef, Error> {
        let Shared {
            handles, client, ..
        } = &*self.shared;
        handles.open(handle, &self.caller, client)
    }

    fn has_room(&self) -> Result<(), Error> {
        let max = self.shared.limits.session_locks;
        match self.entries.len() < max {
            true => Ok(()),
            false => Err(self.limited(Reason::TooManyHeld, "session_locks", max)),
        }
    }

    fn limited(&self, reason: Reason, setting: &'static str, max: usize) -> Error {
        self.caller.numbers.refused(setting);
        let value = format!("more than {max} locks in the session");
        Error {
            is_retryable: true,
            reason,
            ..Error::invalid("asks.acquire", value, format!("limits.{setting} = {max}"))
        }
    }

    fn release(&mut self, id: u64, ask: &ReleaseAsk) {
        self.contended.remove(&ask.ask_id);
        let lease = match self.entries.remove(&ask.ask_id) {
            Some(Entry::Held(held)) => held.reference(),
            Some(Entry::Resumes { abort, lease }) => {
                abort.abort();
                lease
            }
            waits => {
                if let Some(Entry::Waits { abort, .. }) = waits {
                    abort.abort();
                    self.waits -= 1;
                }
                let outcome = ReleaseOutcome::Lost.into();
                return self.tell(id, answer::Kind::Release(ReleaseNotice { outcome }));
            }
        };
        self.releasing += 1;
        self.work.push(work::release(
            self.shared.clone(),
            id,
            self.caller.clone(),
            lease,
        ));
    }

    fn downgrade(&mut self, id: u64, ask: &DowngradeAsk) -> Result<(), Error> {
        let Some(Entry::Held(lease)) = self.entries.get(&ask.ask_id) else {
            let limit = "the id of an ask that holds a lock";
            return Err(Error::invalid("asks.downgrade.ask_id", ask.ask_id, limit));
        };
        let (shared, lease) = (self.shared.clone(), lease.reference());
        self.downgrading += 1;
        self.work
            .push(work::downgrade(shared, id, self.caller.clone(), lease));
        Ok(())
    }

    fn ping(&mut self, id: u64) {
        self.pings.push(id);
        if self.pings.len() == 1 {
            self.renew();
        }
    }

    /// Renews all locks, for the pings that wait. It looks at all of them, so it does that not much more often than pings are
    /// needed.
    pub(super) fn renew(&mut self) {
        let locks = self.entries.values().filter_map(|entry| match entry {
            Entry::Held(lease) => Some(lease.clone()),
            Entry::Waits { .. } | Entry::Resumes { .. } => None,
        });
        let ttl = self.terms().ttl;
        let within = Duration::from_secs(1).min(ttl / 6);
        let renewals = work::renew(locks.collect(), self.renews_at, within);
        self.renews_at = self.renews_at.max(Instant::now()) + RENEWS_EVERY.min(ttl / 12);
        self.work.push(renewals);
    }
}
