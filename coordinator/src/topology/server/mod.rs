//! The topology on servers, of Redis or of documents: the record at one server, its home; a pointer
//! to it and a copy of it at the others.
//!
//! ```text
//! connect ─► Survey: every seed's Trace ─► Asking: each topology's home ─► ServerTopology
//!                └─ none anywhere ─► claim at the home ─► join the others ─► active
//! ```
//!
//! The record is *usable* while its home lives the life in which it was written, and has not seen a
//! later incarnation. Otherwise it is [recovered](ServerTopology::recover) from the members' data.
//! Before a record is handed out, another member has a copy.

mod answers;
mod ask;
mod caller;
mod dial;
mod first_use;
mod founding;
mod home;
mod member;
mod members;
mod news;
mod publish;
mod readdress;
mod recover;
mod release;
mod stored;
mod survey;
mod take_in;
#[cfg(all(test, feature = "spawn"))]
mod tests;
mod warnings;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use first_use::{Joined, connect};
pub use founding::{Founding, Observer, Step};

use self::{answers::Swapped, caller::Caller, member::Member, news::News, publish::Published};
use super::{Copies, Swap, Topology, TopologyError, TopologyStore, Version, store::check_next};
use crate::{
    ids::Incarnation,
    shard::{ServerAddressError, ServerOptions},
};

/// The topology record at its home, a server. [`connect`] makes one.
#[derive(Debug)]
pub struct ServerTopology {
    id: String,
    caller: Arc<Caller>,
    known: Mutex<Known>,
    published: watch::Sender<Published>,
    news: News,
    /// Held while the record is put in force again.
    recovering: tokio::sync::Mutex<()>,
    /// Tells members in the background.
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_if_dropped: DropGuard,
}

/// The knowledge about the record.
#[derive(Debug)]
struct Known {
    /// The newest record seen; it may not have been usable.
    view: Arc<Topology>,
    /// The server that the view names as its home, under any address known here.
    home: Arc<Member>,
    /// The greatest incarnation that a shard is known to have seen.
    fence: Option<Incarnation>,
}

impl ServerTopology {
    fn new(view: Topology, home: Arc<Member>, caller: Arc<Caller>) -> Self {
        let id = view.id.clone();
        let known = Known {
            view: Arc::new(view),
            home,
            fence: None,
        };
        let stop = CancellationToken::new();
        Self {
            id,
            caller,
            known: Mutex::new(known),
            published: watch::Sender::default(),
            news: News::default(),
            recovering: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            _stop_if_dropped: stop.clone().drop_guard(),
            stop,
        }
    }

    /// The home's address, without credentials, as the record spells it.
    pub fn home(&self) -> String {
        self.known.lock().view.home.address.clone()
    }

    /// The newest record seen, whether in force or not.
    pub fn view(&self) -> Arc<Topology> {
        self.known.lock().view.clone()
    }

    /// The options to reach the shard at `address`, as the record spells it: those of the seed that
    /// named it, or else those of the first seed of its kind.
    ///
    /// # Errors
    ///
    /// [`ServerAddressError`]: it is not the address of a server that this build knows.
    pub fn options(&self, address: &str) -> Result<ServerOptions, ServerAddressError> {
        self.caller.members.options(address)
    }

    fn fence(&self) -> Option<Incarnation> {
        self.known.lock().fence
    }

    fn home_member(&self) -> Arc<Member> {
        self.known.lock().home.clone()
    }

    /// From now on `home` has the record, which is `record`.
    fn look_at(&self, home: Arc<Member>, record: Arc<Topology>) {
        let mut known = self.known.lock();
        if record.version() >= known.view.version() {
            (known.home, known.view) = (home, record);
        }
    }

    /// The record at the home, if it is usable. Nothing may be done in its name yet.
    async fn look(&self) -> Result<Arc<Topology>, TopologyError> {
        let (home, view) = (self.home_member(), self.view());
        let (server, found) = home.repeated(|| home.read(Some(&view))).await?;
        let record = self.usable(&server.life, found, view)?;
        self.look_at(home, record.clone());
        Ok(record)
    }

    /// Only compares and swaps: the copies are still to be made.
    async fn compare_and_swap(
        &self,
        expected: Version,
        next: &Topology,
    ) -> Result<Swap, TopologyError> {
        check_next(expected, next)?;
        let (home, view) = (self.home_member(), self.view());
        if next.id != self.id {
            let reason = format!("topology {} is another one", next.id);
            return Err(TopologyError::Malformed(reason));
        }
        if next.home.address != view.home.address && view.version() > expected {
            return Ok(Swap::Newer(view));
        }
        match home.swap(expected, next).await? {
            Swapped::Done => {
                self.look_at(home, Arc::new(next.clone()));
                Ok(Swap::Done)
            }
            Swapped::Newer(record) => {
                self.look_at(home, record.clone());
                Ok(Swap::Newer(record))
            }
            Swapped::Unusable(reason) => Err(self.recover_needed(&reason)),
        }
    }
}

#[async_trait]
impl TopologyStore for ServerTopology {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        self.recover(&[]).await
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        let swap = self.compare_and_swap(expected, next).await?;
        match &swap {
            Swap::Done => self.publish(next).await?,
            Swap::Newer(newer) => self.publish(newer).await?,
        }
        Ok(swap)
    }

    async fn watch(&self, known: Version) -> Result<Arc<Topology>, TopologyError> {
        loop {
            let reasons = self.news.reasons();
            let looked = self.look().await;
            let unchanged = matches!(&looked, Ok(seen) if seen.version() <= known);
            if !unchanged {
                let topology = self.put_in_force(looked, &[]).await?;
                if topology.version() > known {
                    return Ok(topology);
                }
            }
            let poll = self.caller.random.jitter(self.caller.watch_every);
            let home = self.home_member();
            let _unheard = timeout(poll, self.news.since(reasons, &home)).await;
        }
    }

    async fn copies(&self) -> Copies {
        let (asked, home) = (self.caller.clock.now(), self.home());
        let survey = self.survey_members(Some(&home)).await;
        let copies = survey.map(|survey| survey.copies(&self.id, &home, asked));
        copies.unwrap_or_default()
    }

    fn outrun(&self, incarnation: Incarnation) {
        let mut known = self.known.lock();
        known.fence = known.fence.max(Some(incarnation));
    }
}
