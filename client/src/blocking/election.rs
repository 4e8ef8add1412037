//! Elections of callers without tokio.

use std::{ops::Deref, sync::Arc, time::Duration};

use ringfence_coordinator::engine::{AcquireError, ReleaseAnswer};

use super::{Guard, reactor::Reactor};
use crate::Leader;

/// An election, and the terms of a candidate: [`Election`](crate::Election). Made by
/// [`Client::election`](super::Client::election).
#[derive(Clone, Debug)]
#[must_use = "nobody stands until it campaigns"]
pub struct Election {
    // Dropped first: it may be the last handle of its client.
    election: crate::Election,
    reactor: Arc<Reactor>,
}

/// A leadership: [`Leadership`](crate::Leadership), with the methods of a [`Guard`]. Dropping it resigns in the background.
#[derive(Debug)]
#[must_use = "dropping it resigns"]
pub struct Leadership(Guard);

/// Reports each new leader: [`Observer`](crate::Observer). Made by [`Election::observe`].
#[derive(Debug)]
pub struct Observer {
    // Dropped first: it may be the last handle of its client.
    observer: crate::Observer,
    reactor: Arc<Reactor>,
}

impl Election {
    pub(super) fn new(election: crate::Election, reactor: &Arc<Reactor>) -> Self {
        let reactor = reactor.clone();
        Self { election, reactor }
    }

    /// Sets the lease: after a crash of the leader, the next one is elected when it ends.
    pub fn lease(mut self, length: Duration) -> Self {
        self.election = self.election.lease(length);
        self
    }

    /// Limits a campaign to `length`; default: until it is won.
    pub fn wait(mut self, length: Duration) -> Self {
        self.election = self.election.wait(length);
        self
    }

    /// Sets the candidate's name, which observers see.
    pub fn label(mut self, label: &str) -> Self {
        self.election = self.election.label(label);
        self
    }

    /// Blocks this thread until this candidate leads.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::acquire`](super::Lock::acquire).
    pub fn campaign(&self) -> Result<Leadership, AcquireError> {
        let won = self.reactor.wait(self.election.campaign())?;
        Ok(Leadership(Guard::new(won.into_guard(), &self.reactor)))
    }

    /// Leads if there is no leader now.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::try_acquire`](super::Lock::try_acquire).
    pub fn try_campaign(&self) -> Result<Leadership, AcquireError> {
        let won = self.reactor.wait(self.election.try_campaign())?;
        Ok(Leadership(Guard::new(won.into_guard(), &self.reactor)))
    }

    /// The present leader, as the shard knows it.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    pub fn leader(&self) -> Result<Option<Leader>, AcquireError> {
        self.reactor.wait(self.election.leader())
    }

    /// Observes who leads.
    pub fn observe(&self) -> Observer {
        Observer {
            observer: self.election.observe(),
            reactor: self.reactor.clone(),
        }
    }
}

impl Leadership {
    /// Lets the next candidate lead. Returns whether this one led until now.
    pub fn resign(self) -> ReleaseAnswer {
        self.0.release()
    }
}

impl Deref for Leadership {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}

impl Observer {
    /// Blocks this thread until the leader changes, and returns the present one; the first call returns at once.
    ///
    /// # Errors
    ///
    /// Those of [`Election::leader`]. The next call asks again, a second later.
    pub fn changed(&mut self) -> Result<Option<Leader>, AcquireError> {
        self.reactor.wait(self.observer.changed())
    }
}
