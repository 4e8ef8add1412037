//! Holders and waiters: for people, and for releases by force.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, join_all},
    stream::BoxStream,
};
use hashbrown::{HashMap, HashSet};
use ringfence_ring::{Replicas, ShardId};
use tokio::time::sleep;

use super::{AcquireError, Engine, Inner, ring::renewer::LeaseRenewer};
use crate::{
    backoff::Backoff,
    ids::{ClientId, Life, Nonce},
    name::{LockKey, Namespace},
    shard::{
        ControlLink, Cursor, HeldLock, Holder, Inspection, List, LockPage, Op, QueuedWaiter, Reply,
        Shard, ShardError,
    },
};

/// How long replicas are asked to release by force, if some of them fail.
const FORCE_PATIENCE: Duration = Duration::from_secs(5);

/// First and longest pause before they are asked again.
const FORCE_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

impl Engine {
    /// The holder of `key` and its waiters, as its shard knows them. Of a lock with replicas: the process that a majority of
    /// them has as the holder.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`]. [`AcquireError::NoMajority`]: too few replicas answered to tell
    /// whether the lock is held.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub fn inspect<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a [u8],
    ) -> BoxFuture<'a, Result<Inspection, AcquireError>> {
        Box::pin(async move {
            let key = self.key(namespace, key)?;
            self.0.has_runtime()?;
            if let Some(coordinators) = &self.0.coordinators {
                return coordinators.inspect(&key).await;
            }
            let declaration = self.0.routing.declaration(&key);
            let mut replicas = self.0.inspect_replicas(&key).await;
            match replicas.len() {
                1 => Ok(replicas.remove(0).found?),
                _ => of_a_majority(declaration.replicas, replicas),
            }
        })
    }

    /// Each replica of the lock of `key`, in the order of their ranks, as its shard knows it.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub fn inspect_replicas<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<ReplicaInspection>, AcquireError>> {
        Box::pin(async move {
            let key = self.key(namespace, key)?;
            Ok(self.0.inspect_replicas(&key).await)
        })
    }

    /// Takes the key `name` from all of its holders, and returns them by their tokens: none if the key was free. A lock with replicas
    /// has one holder: the process that a majority of them has as the holder. The next grant's token is greater, as
    /// always. The former holder learns of it with its next renewal, and a resource that checks
    /// tokens refuses it before. In grace a holder may put its record back.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`]. [`AcquireError::NoMajority`]: too few replicas answered to tell who the holder is; nothing was
    /// released. [`AcquireError::Shard`]: some holders may have lost the lock all the same; the log names them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock released or not.
    pub fn force_release<'a>(
        &'a self,
        namespace: &'a Namespace,
        name: &'a [u8],
        reason: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Holder>, AcquireError>> {
        Box::pin(async move {
            let key = self.key(namespace, name)?;
            self.0.has_runtime()?;
            if let Some(coordinators) = &self.0.coordinators {
                return coordinators.force_release(&key, reason).await;
            }
            let ranks = self.0.routing.ranks_of(&key);
            if ranks.len() == 1 {
                let (taken, end) = self.0.take(&key, None).await;
                self.0.taken(&key, &taken, reason);
                return end.map(|()| taken).map_err(Into::into);
            }
            // Its records alone: attempts of others count on what they were granted. And not while a record of a majority may
            // be out of reach: its holder would write the others again.
            let Some(holder) = self.inspect(namespace, name).await?.holder else {
                return Ok(Vec::new());
            };
            let client = Some(holder.nonce.client);
            let until = self.0.now() + FORCE_PATIENCE;
            let mut pauses = Backoff::new(FORCE_AGAIN.0, FORCE_AGAIN.1);
            let (mut left, mut released) = (ranks.clone(), 0);
            loop {
                // At once: the holder writes no record again in between.
                let takes = join_all(left.iter().map(|rank| self.0.take(rank, client))).await;
                let (mut failed, mut unanswered) = (None, Vec::new());
                for (rank, (taken, end)) in left.into_iter().zip(takes) {
                    self.0.taken(&key, &taken, reason);
                    released += usize::from(!taken.is_empty());
                    if let Err(error) = end {
                        failed = Some(error);
                        unanswered.push(rank);
                    }
                }
                match failed {
                    _ if 2 * released > ranks.len() => return Ok(vec![holder]),
                    // It gave the lock back meanwhile.
                    None => return Ok(Vec::new()),
                    // What is released by half is held by two, until the holder's next renewal.
                    Some(error) if !error.is_retryable() || self.0.now() >= until => {
                        return Err(error.into());
                    }
                    Some(_) => left = unanswered,
                }
                sleep(pauses.next(&self.0.around.random)).await;
            }
        })
    }

    /// The held locks, of `namespace` or of all, page by page. A lock with replicas is listed for each of them. Sends no request yet.
    pub fn locks(&self, namespace: Option<Namespace>) -> Locks {
        if let Some(coordinators) = &self.0.coordinators {
            return coordinators.locks(namespace);
        }
        let walk = |renewer: &Arc<LeaseRenewer>| Walk {
            id: renewer.driver.id().clone(),
            shard: renewer.driver.shard().clone(),
            link: None,
            after: None,
        };
        Locks {
            namespace,
            walks: self.0.routing.view().renewers.iter().map(walk).collect(),
            pages: None,
        }
    }
}

/// The lock as a majority of its `replicas` has it. A waiter may have the record of some of them.
fn of_a_majority(
    replicas: Replicas,
    ranks: Vec<ReplicaInspection>,
) -> Result<Inspection, AcquireError> {
    let majority = ranks.len() / 2 + 1;
    let answers = || ranks.iter().filter_map(|rank| rank.found.as_ref().ok());
    let mut holders: Vec<&Holder> = answers()
        .filter_map(|found| found.holder.as_ref())
        .collect();
    holders.sort_unstable_by_key(|holder| holder.token);
    let records_of = |client: ClientId| {
        let its = holders.iter().filter(move |its| its.nonce.client == client);
        its.copied().collect::<Vec<_>>()
    };
    let records = holders.iter().map(|its| records_of(its.nonce.client));
    let most = records.max_by_key(Vec::len).unwrap_or_default();
    // With all records, the token is the one in the middle; lower ones are raised to it.
    let token_of = most.len().checked_sub(majority);
    let holder = token_of.map(|index| most[index].clone());
    let failed = ranks.len() - answers().count();
    if holder.is_none() && most.len() + failed >= majority {
        let failure = |rank: &ReplicaInspection| {
            let error = rank.found.as_ref().err()?.clone();
            Some((rank.shard.clone(), error.into()))
        };
        let shards = ranks.iter().filter_map(failure).collect();
        return Err(AcquireError::NoMajority { replicas, shards });
    }
    let client = holder.as_ref().map(|its| its.nonce.client);
    let waits = |waiter: &&QueuedWaiter| Some(waiter.nonce.client) != client;
    // Processes queue at the first rank whose shard answers.
    let queue = answers().map(|found| &found.waiters);
    let queue = queue.max_by_key(|waiters| waiters.len());
    let waiters = queue.into_iter().flatten().filter(waits).cloned();
    Ok(Inspection {
        holder,
        others: Vec::new(),
        waiters: waiters.collect(),
    })
}

/// One replica of a lock.
#[derive(Clone, Debug)]
pub struct ReplicaInspection {
    /// Its shard.
    pub shard: ShardId,
    /// Its record, and the queue there. Processes queue at one of the replicas.
    pub found: Result<Inspection, ShardError>,
}

/// A walk through the locks of every shard, one shard after the other, one page at a time: shards
/// serve other requests in between, for any number of locks.
///
/// It is not a snapshot. A lock that is held from start to end is listed, perhaps twice. A lock
/// that comes or goes meanwhile may be missing.
#[must_use = "nothing is asked for until the next page is"]
pub struct Locks {
    namespace: Option<Namespace>,
    /// The shards with an unfinished walk.
    walks: VecDeque<Walk>,
    /// Instead of them: the pages that a coordinator sends.
    pages: Option<BoxStream<'static, LocksPage>>,
}

/// Some of a shard's locks.
#[derive(Clone, Debug)]
pub struct LocksPage {
    /// The shard.
    pub shard: ShardId,
    /// Its locks, in arbitrary order, perhaps none. After an error there are no more pages of this
    /// shard; the other shards go on.
    pub locks: Result<Vec<HeldLock>, ShardError>,
}

/// A walk through one shard.
#[derive(Debug)]
struct Walk {
    id: ShardId,
    shard: Arc<dyn Shard>,
    /// None before the first page, during a request, and after the last page.
    link: Option<Box<dyn ControlLink>>,
    /// Valid in one life only.
    after: Option<(Life, Cursor)>,
}

impl fmt::Debug for Locks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Locks")
    }
}

impl Locks {
    /// The locks that `pages` tell.
    pub fn of_pages(pages: BoxStream<'static, LocksPage>) -> Self {
        Self {
            namespace: None,
            walks: VecDeque::new(),
            pages: Some(pages),
        }
    }

    /// The next page; `None` when the walks through all shards are finished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no page: the next call requests the same page again.
    pub async fn next(&mut self) -> Option<LocksPage> {
        if let Some(pages) = &mut self.pages {
            return pages.next().await;
        }
        let walk = self.walks.front_mut()?;
        let locks = walk.page(self.namespace.clone()).await;
        let shard = walk.id.clone();
        if walk.link.is_none() {
            self.walks.pop_front();
        }
        Some(LocksPage { shard, locks })
    }
}

impl Walk {
    /// The next page. Keeps the link iff there are more pages.
    async fn page(&mut self, namespace: Option<Namespace>) -> Result<Vec<HeldLock>, ShardError> {
        // Taken out: a late answer must not be read as the next one.
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.shard.connect_control(None).await?,
        };
        let after = self.after.as_ref();
        let after = after.filter(|(life, _)| life == link.life());
        let after = after.map(|(_, cursor)| cursor.clone());
        let LockPage { locks, next } = link.list(&List { namespace, after }).await?;
        if let Some(next) = next {
            self.after = Some((link.life().clone(), next));
            self.link = Some(link);
        }
        Ok(locks)
    }
}

impl Inner {
    async fn inspect_replicas(&self, key: &LockKey) -> Vec<ReplicaInspection> {
        let replica = async |rank: LockKey| ReplicaInspection {
            shard: self.routing.route(&rank).renewer.driver.id().clone(),
            found: self.inspect(&rank).await,
        };
        join_all(self.routing.ranks_of(key).into_iter().map(replica)).await
    }

    /// The holder and the waiters of a key with one replica, or of one rank of a key.
    async fn inspect(&self, key: &LockKey) -> Result<Inspection, ShardError> {
        let (mut found, mut holders) = (Inspection::default(), HashMap::new());
        for renewer in self.routing.route(key).renewers() {
            let shard = renewer.driver.shard();
            let mut link = shard.connect_control(None).await?;
            let Inspection {
                holder,
                others,
                waiters,
            } = link.inspect(key).await?;
            // A lock that was just moved may still be at the former shard.
            holders.extend(holder.into_iter().chain(others).map(|it| (it.nonce, it)));
            let known: HashSet<Nonce> = found.waiters.iter().map(|waiter| waiter.nonce).collect();
            let new = waiters
                .into_iter()
                .filter(|waiter| !known.contains(&waiter.nonce));
            found.waiters.extend(new);
        }
        found.others = holders.into_values().collect();
        found.others.sort_by_key(|holder: &Holder| holder.token);
        if !found.others.is_empty() {
            found.holder = Some(found.others.remove(0));
        }
        Ok(found)
    }

    /// Takes a key with one replica, or one rank of a key, from its holders, or from the one that `client` is. Returns those
    /// that were still there, until an error.
    async fn take(
        &self,
        key: &LockKey,
        client: Option<ClientId>,
    ) -> (Vec<Holder>, Result<(), ShardError>) {
        let mut taken = Vec::new();
        let found = match self.inspect(key).await {
            Ok(Inspection { holder, others, .. }) => holder.into_iter().chain(others),
            Err(error) => return (taken, Err(error)),
        };
        for holder in found.filter(|its| client.is_none_or(|client| its.nonce.client == client)) {
            match self.force_release(key, holder.nonce).await {
                Ok(true) => taken.push(holder),
                Ok(false) => {}
                Err(error) => return (taken, Err(error)),
            }
        }
        (taken, Ok(()))
    }

    fn taken(&self, key: &LockKey, taken: &[Holder], reason: &str) {
        for holder in taken {
            self.queues.taken(key, holder.nonce);
            tracing::warn!(%key, holder = %holder.label, token = %holder.token, reason, "lock released by force");
        }
    }

    /// Releases an acquisition of any process; returns whether its record was still there.
    async fn force_release(&self, key: &LockKey, nonce: Nonce) -> Result<bool, ShardError> {
        let mut released = false;
        for renewer in self.routing.route(key).renewers() {
            let request = renewer.request(key, Op::Release { nonce });
            released |= match renewer.driver.submit(request).await {
                Ok(Ok(answered)) => answered.reply == Reply::Released { held: true },
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let reason = "the engine was closed".into();
                    return Err(ShardError::NoReply { reason });
                }
            };
        }
        Ok(released)
    }
}
