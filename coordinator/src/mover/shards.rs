//! One connection per shard, kept as long as it works; the requests to the shard, and the meaning of their failures.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use hashbrown::HashMap;
use parking_lot::Mutex;
use ringfence_ring::ShardId;
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    time::{self, timeout},
};

use super::{Context, WaitingFor, pauses::Pauses};
use crate::{
    arming::{ArmError, Arming, Known},
    backoff::Backoff,
    clock::Instant,
    ids::Life,
    shard::{ConnectionId, ControlLink, ControlRequest, ForceOpen, Shard, ShardError},
    topology::{Topology, TopologyError},
};

/// First and longest pause before a shard that failed is asked again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The mover does not wait longer for an answer: other moves have other shards.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason why a shard did not do what was requested. The mover asks again in each case.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The shard is away, or in grace: [`Shards::waiting_for`] has the reason.
    Away,
    /// The record is not in force any more, or the shard is ahead of it.
    Outdated,
    /// The record could not be read or changed.
    Store(TopologyError),
}

/// By id and address: another address means another server.
type Members = HashMap<(ShardId, String), Arc<AsyncMutex<Member>>>;

/// Every shard that this mover has asked.
#[derive(Debug)]
pub(super) struct Shards {
    around: Context,
    members: Mutex<Members>,
    /// Shards that are not asked now, the reasons, and whether those are that they do not answer.
    waiting: Mutex<BTreeMap<ShardId, (String, bool)>>,
    pauses: Pauses,
}

/// One shard.
#[derive(Debug)]
struct Member {
    shard: Arc<dyn Shard>,
    /// A connection to a life that is armed with `known.used`.
    link: Option<Box<dyn ControlLink>>,
    known: Known,
    /// The last connection, which the next one ends.
    former: Option<(Life, ConnectionId)>,
    /// Not asked before this time.
    again: Instant,
    /// In grace until this time, at least.
    grace_until: Instant,
    backoff: Backoff,
}

impl Member {
    fn grace_left(&self, now: Instant) -> Duration {
        self.grace_until.since(now)
    }
}

/// A shard's connection in use. If it is dropped with a request under way, it is not used again.
pub(super) struct Borrowed {
    id: ShardId,
    member: OwnedMutexGuard<Member>,
    link: Box<dyn ControlLink>,
}

impl Deref for Borrowed {
    type Target = dyn ControlLink;

    fn deref(&self) -> &Self::Target {
        &*self.link
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.link
    }
}

impl Shards {
    pub(super) fn new(around: Context) -> Self {
        Self {
            pauses: Pauses::new(around.pause),
            around,
            members: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// A shard for which moves of `record` wait.
    pub(super) fn waiting_for(&self, record: &Topology) -> Option<WaitingFor> {
        let waiting = self.waiting.lock();
        let concerned = |id: &ShardId| {
            let (mut migrations, mut openings) = (record.migrations.iter(), record.openings.iter());
            migrations.any(|migration| migration.from.0 == *id || migration.to.0 == *id)
                || openings.any(|opening| opening.to.0 == *id)
        };
        let mut waiting = waiting.iter().filter(|(id, _)| concerned(id));
        waiting
            .next()
            .map(|(id, (reason, is_silent))| WaitingFor::Shard {
                id: id.clone(),
                reason: reason.clone(),
                is_silent: *is_silent,
            })
    }

    /// Whether the shard is armed and past its grace.
    pub(super) async fn ready(&self, record: &Topology, id: &ShardId) -> Result<(), Trouble> {
        let link = self.link(record, id).await?;
        let left = link.member.grace_left(self.around.clock.now());
        self.back(link, Ok(()))?;
        match left.is_zero() {
            true => Ok(()),
            false => Err(Trouble::Away),
        }
    }

    /// Pauses between two requests, so that shards serve others.
    pub(super) async fn pause(&self) {
        self.pauses.take(1).await;
    }

    /// An eighth of such a pause, while counters are out of reach.
    pub(super) async fn pause_briefly(&self) {
        self.pauses.take(8).await;
    }

    /// Makes a request to a shard.
    pub(super) async fn ask<R: ControlRequest>(
        &self,
        record: &Topology,
        id: &ShardId,
        request: R,
    ) -> Result<R::Reply, Trouble> {
        let mut link = self.link(record, id).await?;
        let begin = time::Instant::now();
        let answer = within(link.ask(request)).await;
        self.pauses.note(begin.elapsed());
        self.back(link, answer)
    }

    /// Marks the shard quiet, if it is at rest. If it is not, the next mover or monitor that finds it at rest does so.
    pub(super) async fn mark_quiet(&self, record: &Topology, id: &ShardId) {
        // An error concerns the connection only.
        if let Err(error) = self.ask(record, id, record.mark_quiet(id)).await {
            tracing::debug!(shard = %id, ?error, "not marked quiet");
        }
    }

    /// Opens slots by force. That begins a grace.
    pub(super) async fn force_open(
        &self,
        record: &Topology,
        id: &ShardId,
        force: ForceOpen,
    ) -> Result<(), Trouble> {
        let mut link = self.link(record, id).await?;
        let answer = within(link.ask(force)).await;
        if let Ok(forced) = &answer {
            link.member.grace_until = self.around.clock.now() + forced.grace_left;
        }
        self.back(link, answer)?;
        Ok(())
    }

    /// A connection to the life that `record` names, armed, in grace or not.
    pub(super) async fn link(&self, record: &Topology, id: &ShardId) -> Result<Borrowed, Trouble> {
        let entry = record.shard(id).ok_or(Trouble::Outdated)?;
        let member = self.member(record, id)?;
        let mut member = member.lock_owned().await;
        if self.around.clock.now() < member.again {
            return Err(Trouble::Away);
        }
        let (kept, armed) = (member.link.take(), member.known.used);
        let kept = kept.filter(|link| *link.life() == entry.life && armed >= entry.epoch);
        let link = match kept {
            Some(link) => link,
            None => self.connect(record, id, &mut member).await?,
        };
        Ok(Borrowed {
            id: id.clone(),
            member,
            link,
        })
    }

    fn member(&self, record: &Topology, id: &ShardId) -> Result<Arc<AsyncMutex<Member>>, Trouble> {
        let entry = record.shard(id).ok_or(Trouble::Outdated)?;
        let mut members = self.members.lock();
        let place = (id.clone(), entry.address.clone());
        if let Some(member) = members.get(&place) {
            return Ok(member.clone());
        }
        let shard = self.around.dial.dial(id, entry);
        let shard = shard.map_err(|error| self.wait(id, error.to_string()))?;
        let member = Arc::new(AsyncMutex::new(Member {
            shard,
            link: None,
            known: Known::default(),
            former: None,
            again: Instant::default(),
            grace_until: Instant::default(),
            backoff: Backoff::new(AGAIN.0, AGAIN.1),
        }));
        members.insert(place, member.clone());
        Ok(member)
    }

    /// Connects, and has the life there armed. `record` must name it.
    fn connect<'a>(
        &'a self,
        record: &'a Topology,
        id: &'a ShardId,
        member: &'a mut Member,
    ) -> BoxFuture<'a, Result<Box<dyn ControlLink>, Trouble>> {
        Box::pin(async move {
            let shard = member.shard.clone();
            let connected = within(shard.connect_control(member.former.clone())).await;
            let mut link = connected.map_err(|error| self.failed(id, member, &error))?;
            member.former = Some((link.life().clone(), link.connection()));
            let arming = Arming {
                shard: id,
                store: &*self.around.store,
                clock: &*self.around.clock,
                random: &self.around.random,
                servers_are_new: self.around.servers_are_new,
            };
            let named = Arc::new(record.clone());
            let brought_up = arming.bring_up(&mut *link, named, &mut member.known);
            let (topology, armed) = match within(brought_up).await {
                Ok(Some(brought_up)) => brought_up,
                Ok(None) => return Err(Trouble::Outdated),
                Err(ArmError::Topology(error)) => return Err(Trouble::Store(error)),
                Err(ArmError::Shard(error)) => return Err(self.failed(id, member, &error)),
            };
            member.grace_until = self.around.clock.now() + armed.grace_left;
            if topology.version() > record.version() {
                member.link = Some(link);
                return Err(Trouble::Outdated);
            }
            Ok(link)
        })
    }

    /// Keeps the connection, unless `answer` ended it. Moves that wait for a shard in grace go on waiting.
    pub(super) fn back<T>(
        &self,
        Borrowed {
            id,
            mut member,
            link,
        }: Borrowed,
        answer: Result<T, ShardError>,
    ) -> Result<T, Trouble> {
        match answer {
            Ok(answer) => {
                member.link = Some(link);
                member.backoff.reset();
                let left = member.grace_left(self.around.clock.now());
                match left.is_zero() {
                    true => drop(self.waiting.lock().remove(&id)),
                    false => drop(self.wait(&id, format!("in grace for {left:.1?} more"))),
                }
                Ok(answer)
            }
            Err(error) => {
                if !error.ends_link() {
                    member.link = Some(link);
                }
                Err(self.failed(&id, &mut member, &error))
            }
        }
    }

    fn failed(&self, id: &ShardId, member: &mut Member, error: &ShardError) -> Trouble {
        tracing::debug!(shard = %id, %error, "will ask again");
        if let ShardError::Stale { fence } = error {
            if let Ok(fence) = fence.parse() {
                self.around.store.outrun(fence);
            }
            return Trouble::Outdated;
        }
        let pause = member.backoff.next(&self.around.random);
        member.again = self.around.clock.now() + pause;
        let is_silent = matches!(
            error,
            ShardError::Unreachable { .. } | ShardError::NoReply { .. }
        );
        let waits = (error.to_string(), is_silent);
        self.waiting.lock().insert(id.clone(), waits);
        Trouble::Away
    }

    /// Notes that moves wait for the shard, which answers.
    pub(super) fn wait(&self, id: &ShardId, reason: String) -> Trouble {
        self.waiting.lock().insert(id.clone(), (reason, false));
        Trouble::Away
    }
}

/// The answer, unless it takes too long.
async fn within<T, E: From<ShardError>>(asked: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
        let reason = format!("none within {PATIENCE:?}");
        Err(ShardError::NoReply { reason }.into())
    })
}
