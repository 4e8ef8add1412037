//! Leader election: at most one leader at a time, which learns of the end before it comes.

use std::{ops::Deref, time::Duration};

use ringfence_coordinator::{
    engine::{AcquireError, Guard, ReleaseAnswer},
    ids::Token,
    name::Label,
};
use tokio::time::{Instant, sleep_until};

use crate::{Client, Key, Lock};

/// The namespace of the locks that elections use.
const NAMESPACE: &str = "election";

/// How often an observer asks who leads.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);

/// An election, and the terms of a candidate. Made by [`Client::election`].
#[derive(Clone, Debug)]
#[must_use = "nobody stands until it campaigns"]
pub struct Election(Lock);

impl Client {
    /// The election called `name`: the lock of that name in the namespace `election`. Its holder is
    /// the leader.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence_client::Client;
    ///
    /// let client = Client::builder().embedded(3).build().await?;
    /// let election = client.election("scheduler").label("node-1");
    /// let leadership = election.campaign().await?;
    /// leadership.run_while_held(async { println!("leads, with token {}", leadership.token()) }).await?;
    ///
    /// let leader = election.leader().await?.expect("there is one");
    /// assert_eq!(leader.label.as_str(), "node-1");
    /// leadership.resign().await;
    /// # client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, name: impl Into<Key>) -> Election {
        Election(self.lock(name).namespace(NAMESPACE))
    }
}

impl Election {
    /// Sets the lease: after a crash of the leader, the next one is elected when it ends. Default:
    /// the topology's longest.
    pub fn lease(self, length: Duration) -> Self {
        Self(self.0.lease(length))
    }

    /// Limits a campaign to `length`; default: until it is won.
    pub fn wait(self, length: Duration) -> Self {
        Self(self.0.wait(length))
    }

    /// Sets the candidate's name, which observers see, instead of the client's label.
    pub fn label(self, label: &str) -> Self {
        Self(self.0.label(label))
    }

    /// Waits until this candidate leads. Candidates are elected in the order in which they came.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::acquire`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the campaign; a leadership that it may have won is resigned in the
    /// background.
    pub async fn campaign(&self) -> Result<Leadership, AcquireError> {
        self.0.acquire().await.map(Leadership)
    }

    /// Leads if there is no leader now.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::try_acquire`]; [`AcquireError::Held`] if there is a leader.
    ///
    /// # Cancel safety
    ///
    /// As for [`campaign`](Self::campaign).
    pub async fn try_campaign(&self) -> Result<Leadership, AcquireError> {
        self.0.try_acquire().await.map(Leadership)
    }

    /// The present leader, as the shard knows it.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn leader(&self) -> Result<Option<Leader>, AcquireError> {
        let holder = self.0.inspect().await?.holder;
        Ok(holder.map(|holder| Leader {
            label: holder.label,
            token: holder.token,
        }))
    }

    /// Observes who leads.
    pub fn observe(&self) -> Observer {
        Observer {
            election: self.clone(),
            known: None,
            next_look: Instant::now(),
        }
    }
}

/// The leader of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The label of the candidate.
    pub label: Label,
    /// The fencing token of the leadership. Candidates of one process with the same label can lead
    /// one after the other unseen by the shard: then this is the token of the first of them.
    pub token: Token,
}

/// Reports each new leader. Made by [`Election::observe`].
#[derive(Debug)]
pub struct Observer {
    election: Election,
    /// The last report, if there was any.
    known: Option<Option<Leader>>,
    next_look: Instant,
}

impl Observer {
    /// Waits for a change, and returns the present leader; the first call returns at once. A leader
    /// is reported within about one second: it asks the shard once per second, and can miss a leader
    /// that led for less.
    ///
    /// # Errors
    ///
    /// Those of [`Election::leader`]. The next call asks again, a second later.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future misses no change.
    pub async fn changed(&mut self) -> Result<Option<Leader>, AcquireError> {
        loop {
            sleep_until(self.next_look).await;
            self.next_look = Instant::now() + OBSERVE_EVERY;
            let leader = self.election.leader().await?;
            if self.known.as_ref() != Some(&leader) {
                self.known = Some(leader.clone());
                return Ok(leader);
            }
        }
    }
}

/// A leadership: a [`Guard`] of the election's lock. [`Guard::danger`] tells of its end before it
/// comes, [`Guard::lost`] when it has come. Dropping it resigns in the background.
#[derive(Debug)]
#[must_use = "dropping it resigns"]
pub struct Leadership(Guard);

impl Leadership {
    /// Lets the next candidate lead. Returns whether this one led until now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future resigns in the background.
    pub async fn resign(self) -> ReleaseAnswer {
        self.0.release().await
    }

    pub(crate) fn into_guard(self) -> Guard {
        self.0
    }
}

impl Deref for Leadership {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}
