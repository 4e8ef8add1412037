//! Holders and waiters: for people, and for releases by force.

use std::{collections::VecDeque, fmt, sync::Arc};

use futures_util::{StreamExt, future::join_all, stream::BoxStream};
use hashbrown::{HashMap, HashSet};
use ringfence_ring::ShardId;

use super::{AcquireError, Engine, Inner, ring::renewer::LeaseRenewer};
use crate::{
    ids::{Life, Nonce},
    name::{LockKey, Namespace},
    shard::{
        ControlLink, Cursor, HeldLock, Holder, Inspection, List, LockPage, Op, Reply, Shard,
        ShardError,
    },
};

impl Engine {
    /// The holder of `key` and its waiters, as its shard knows them. If the lock has replicas: as the first of them
    /// knows that has a holder.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn inspect(
        &self,
        namespace: &Namespace,
        key: &[u8],
    ) -> Result<Inspection, AcquireError> {
        let key = self.key(namespace, key)?;
        if let Some(coordinators) = &self.0.coordinators {
            return coordinators.inspect(&key).await;
        }
        let mut answer = None;
        for rank in self.0.routing.ranks_of(&key) {
            let found = self.0.inspect(&rank).await;
            let has_holder = |found: &Inspection| found.holder.is_some();
            let tells_more = match &answer {
                None => true,
                Some(Err(_)) => found.is_ok(),
                Some(Ok(_)) => found.as_ref().is_ok_and(has_holder),
            };
            if tells_more {
                answer = Some(found);
            }
            if matches!(&answer, Some(Ok(found)) if has_holder(found)) {
                break;
            }
        }
        Ok(answer.expect("a lock has one replica at least")?)
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
    pub async fn inspect_replicas(
        &self,
        namespace: &Namespace,
        key: &[u8],
    ) -> Result<Vec<ReplicaInspection>, AcquireError> {
        let ranks = self.0.routing.ranks_of(&self.key(namespace, key)?);
        let replica = async |rank: LockKey| ReplicaInspection {
            shard: self.0.routing.route(&rank).renewer.driver.id().clone(),
            found: self.0.inspect(&rank).await,
        };
        Ok(join_all(ranks.into_iter().map(replica)).await)
    }

    /// Takes `key` from all of its holders, and returns them by their tokens: none if the key was free. A lock with replicas
    /// has one holder, which is returned if a majority of the replicas had it. The next grant's token is greater, as
    /// always. The former holder learns of it with its next renewal, and a resource that checks
    /// tokens refuses it before. In grace a holder may put its record back.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`]: some holders may have lost the lock all the same; the log names them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock released or not.
    pub async fn force_release(
        &self,
        namespace: &Namespace,
        key: &[u8],
        reason: &str,
    ) -> Result<Vec<Holder>, AcquireError> {
        let key = self.key(namespace, key)?;
        if let Some(coordinators) = &self.0.coordinators {
            return coordinators.force_release(&key, reason).await;
        }
        let ranks = self.0.routing.ranks_of(&key);
        let majority = ranks.len() / 2 + 1;
        let (mut taken, mut answered, mut held, mut failed) = (Vec::new(), 0, 0, None);
        for rank in ranks {
            let before = taken.len();
            match self.0.take(&rank, &mut taken).await {
                Ok(()) => {
                    answered += 1;
                    held += usize::from(taken.len() > before);
                }
                Err(error) => failed = Some(error),
            }
        }
        let released = held >= majority;
        for holder in &taken {
            self.0.queues.taken(&key, holder.nonce);
            tracing::warn!(%key, holder = %holder.label, token = %holder.token, released, reason, "lock released by force");
        }
        if let Some(error) = failed.filter(|_| answered < majority) {
            return Err(error.into());
        }
        if majority > 1 {
            taken.truncate(usize::from(released));
        }
        Ok(taken)
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
            None => self.shard.connect_control().await?,
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
    /// The holder and the waiters of a key with one replica, or of one rank of a key.
    async fn inspect(&self, key: &LockKey) -> Result<Inspection, ShardError> {
        let (mut found, mut holders) = (Inspection::default(), HashMap::new());
        for renewer in self.routing.route(key).renewers() {
            let shard = renewer.driver.shard();
            let mut link = shard.connect_control().await?;
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

    /// Takes a key with one replica, or one rank of a key, from its holders; adds those that were still there to `taken`.
    async fn take(&self, key: &LockKey, taken: &mut Vec<Holder>) -> Result<(), ShardError> {
        let Inspection { holder, others, .. } = self.inspect(key).await?;
        for holder in holder.into_iter().chain(others) {
            if self.force_release(key, holder.nonce).await? {
                taken.push(holder);
            }
        }
        Ok(())
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
