//! Finds the record if its home has no usable one, and puts it back in force if no member has it.
//!
//! ```text
//! ask every member ─► in force somewhere? go by that one
//!        └─ all answer ─► choose a home, then n ─► fence(n): home first, then all, with their answers
//!                         ─► newest of those and the own view ─► restore at the home
//! ```
//!
//! The home can die like any shard, so this is ordinary. A failed attempt needs no undo: its fences
//! do not stop a later incarnation.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use hashbrown::HashMap;
use tokio::time::{Duration, sleep};

use super::{
    ServerTopology, Step,
    answers::{Fence, Fenced},
    survey::{Seen, Survey},
};
use crate::{
    backoff::Backoff,
    ids::{Epoch, Incarnation},
    topology::{Home, Status, Topology, TopologyError, recovered::Answer},
};

/// Pauses before attempts: other processes may be recovering too.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long to keep trying while others are faster.
const WITHIN: Duration = Duration::from_secs(5);

impl ServerTopology {
    /// The record in force; if there is none, puts the remaining one back in force.
    ///
    /// Every member must answer, except those in `attested`: a shard's id, or the address of a home
    /// that is not a shard. The caller attests that no client can reach them, and that they will be
    /// restarted or flushed before one can.
    ///
    /// # Errors
    ///
    /// [`TopologyError::RecoverNeeded`], [`TopologyError::Unreachable`]: a member does not answer,
    /// and nothing has begun. The message names it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it undone: the next call, of any process, does it.
    pub async fn recover(&self, attested: &[String]) -> Result<Arc<Topology>, TopologyError> {
        let looked = self.look().await;
        self.put_in_force(looked, attested).await
    }

    /// Like [`recover`](Self::recover); `looked` is the result of a look at the home.
    pub(super) fn put_in_force<'a>(
        &'a self,
        mut looked: Result<Arc<Topology>, TopologyError>,
        attested: &'a [String],
    ) -> BoxFuture<'a, Result<Arc<Topology>, TopologyError>> {
        Box::pin(async move {
            let until = self.caller.clock.now() + WITHIN;
            loop {
                let topology = match looked {
                    Err(obstacle) if obstacle.is_retryable() => {
                        self.find(obstacle, attested).await?
                    }
                    looked => looked?,
                };
                match self.publish(&topology).await {
                    // Another recovery has begun.
                    Err(TopologyError::RecoverNeeded { .. }) if self.caller.clock.now() < until => {
                    }
                    published => return published.map(|()| topology),
                }
                looked = self.look().await;
            }
        })
    }

    /// The record in force, which was not found at its last place because of `obstacle`. Nothing
    /// may be done in its name yet.
    async fn find(
        &self,
        obstacle: TopologyError,
        attested: &[String],
    ) -> Result<Arc<Topology>, TopologyError> {
        // One task per process: recoveries that run side by side outrun each other.
        let _alone = self.recovering.lock().await;
        let until = self.caller.clock.now() + WITHIN;
        let mut backoff = Backoff::new(PAUSE_FIRST, PAUSE_MAX);
        let mut fence_before = None;
        loop {
            let survey = self.survey_members(None).await?;
            if let Some(record) = self.in_force(&survey) {
                return Ok(record);
            }
            if self.view().status == Status::Creating && survey.newest(&self.id).is_none() {
                return Err(obstacle);
            }
            self.check_complete(&survey, attested, &obstacle)?;
            // A fence that rose during the pause shows a recovery of another process: that one goes on.
            let fence = Some(survey.fence());
            if fence_before == fence
                && let Some(record) = self.attempt(&survey).await?
            {
                return Ok(record);
            }
            fence_before = fence;
            if self.caller.clock.now() >= until {
                return Err(self.recover_needed("others keep beginning to recover it"));
            }
            sleep(backoff.next(&self.caller.random)).await;
        }
    }

    /// Asks every member of the newest record there is, at the address that it has there, but not the one at `but`.
    pub(super) async fn survey_members(&self, but: Option<&str>) -> Result<Survey, TopologyError> {
        let view = self.view();
        let mut newest = view.version();
        let mut asked = addresses(&view);
        loop {
            let members = asked.iter().filter(|at| Some(at.as_str()) != but);
            let members = members.map(|at| self.caller.members.at(at));
            let members = members.map(|member| Ok((None, member?)));
            let survey = Survey::take(&members.collect::<Result<Vec<_>, _>>()?).await?;
            let newer = survey.newest(&self.id);
            let Some(newer) = newer.filter(|record| record.version() > newest) else {
                return Ok(survey);
            };
            let members = still_members(&view, newer);
            if members == asked {
                return Ok(survey);
            }
            (asked, newest) = (members, newer.version());
        }
    }

    /// The record that `survey` finds in force. From now on this store looks at its place.
    fn in_force(&self, survey: &Survey) -> Option<Arc<Topology>> {
        let (home, record) = survey.home_of(&self.id)?;
        let fence = survey.fence().max(self.fence());
        let outrun = fence > Some(record.incarnation) || record.version() < self.view().version();
        if outrun || record.status != Status::Active {
            return None;
        }
        let record = Arc::new(record.clone());
        self.look_at(home, record.clone());
        Some(record)
    }

    /// No recovery begins while a member is silent: it may have data that no other member has.
    fn check_complete(
        &self,
        survey: &Survey,
        attested: &[String],
        obstacle: &TopologyError,
    ) -> Result<(), TopologyError> {
        let view = self.view();
        let name = |address: &str| {
            let mut shards = view.shards.iter();
            let shard = shards.find(|(_, entry)| entry.address == address);
            shard.map_or(address.to_owned(), |(name, _)| name.0.to_string())
        };
        let silent = survey
            .silent
            .iter()
            .map(|(member, error)| (name(member.address()), error));
        let Some((name, error)) = silent
            .into_iter()
            .find(|(name, _)| !attested.contains(name))
        else {
            return Ok(());
        };
        let silent = match error {
            TopologyError::Unreachable { address, reason } => format!("{address}: {reason}"),
            other => other.to_string(),
        };
        let hint = format!(
            "{name} does not answer ({silent}); if it is gone for good, and no client can reach \
             it: ringfence ring recover --attest-dead {name}"
        );
        Err(match obstacle {
            TopologyError::RecoverNeeded { address, reason } => TopologyError::RecoverNeeded {
                address: address.clone(),
                reason: format!("{reason}; {hint}"),
            },
            _ => TopologyError::Unreachable {
                address: self.home(),
                reason: hint,
            },
        })
    }

    /// Recovers the record once. `None`: another process did, or is doing so, or a server began
    /// another life.
    async fn attempt(&self, survey: &Survey) -> Result<Option<Arc<Topology>>, TopologyError> {
        let Some(home) = self.home_to_be(survey) else {
            return Ok(None);
        };
        let seen = survey.greatest().max(self.view().greatest());
        let seen = seen.max(Epoch(self.fence().map_or(0, |fence| fence.number)));
        let n = self.caller.next_incarnation(seen)?;
        let Some(fences) = self.fence_all(survey, home, n).await? else {
            return Ok(None);
        };
        let base = self.newest_of(&fences);
        let address = home.member.address();
        if base.home.address != address && survey.at(&base.home.address).is_some() {
            return Ok(None);
        }
        let home_now = Home {
            address: address.to_owned(),
            life: home.trace.server.life.clone(),
        };
        let answers: HashMap<_, _> = fences.iter().map(answer).collect();
        let next = base.recovered(n, home_now, &answers, seen, self.caller.clock.unix())?;
        self.caller.observer.tell(Step::Restoring {
            version: next.version,
        });
        match home.member.restore(&next).await {
            Ok(true) => {}
            // Without an answer it may be in force: the next survey tells.
            Ok(false) | Err(TopologyError::Unreachable { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let (id, version) = (&next.id, next.version);
        tracing::warn!(id, version, home = address, "topology recovered");
        let next = Arc::new(next);
        self.look_at(home.member.clone(), next.clone());
        Ok(Some(next))
    }

    /// The newest existing record, now that none can be added.
    fn newest_of(&self, fences: &[(String, Fence)]) -> Arc<Topology> {
        let left = fences.iter().flat_map(|(_, fence)| fence.records());
        let ours = left.filter(|record| record.id == self.id && record.status == Status::Active);
        let view = self.view();
        match ours.max_by_key(|record| record.version()) {
            Some(newest) if newest.version() > view.version() => Arc::new(newest.clone()),
            _ => view,
        }
    }

    /// The home of the newest existing record, if it answers; else the first member that does.
    fn home_to_be<'a>(&self, survey: &'a Survey) -> Option<&'a Seen> {
        let view = self.view();
        let newest = survey.newest(&self.id).unwrap_or(&view);
        let newest = if newest.version() > view.version() {
            newest
        } else {
            &view
        };
        survey.at(&newest.home.address).or(survey.seen.first())
    }

    /// Raises every fence to `n`, the home's first. `None`: a fence was there already, or a server
    /// began another life, or fell silent.
    async fn fence_all(
        &self,
        survey: &Survey,
        home: &Seen,
        n: Incarnation,
    ) -> Result<Option<Vec<(String, Fence)>>, TopologyError> {
        let Some(first) = self.fence_one(home, n).await? else {
            return Ok(None);
        };
        let others = survey.seen.iter().filter(|seen| !std::ptr::eq(*seen, home));
        let others = join_all(others.map(|seen| self.fence_one(seen, n))).await;
        let mut fences = vec![first];
        for fenced in others {
            let Some(fence) = fenced? else {
                return Ok(None);
            };
            fences.push(fence);
        }
        Ok(Some(fences))
    }

    async fn fence_one(
        &self,
        seen: &Seen,
        n: Incarnation,
    ) -> Result<Option<(String, Fence)>, TopologyError> {
        let Seen { member, trace, .. } = seen;
        match member.fence(&trace.server.life, &self.id, n).await {
            Ok(Fenced::Raised(fence)) => {
                let address = member.address().to_owned();
                self.caller.observer.tell(Step::Fenced {
                    address: address.clone(),
                });
                Ok(Some((address, *fence)))
            }
            Ok(Fenced::Outrun) | Err(TopologyError::Unreachable { .. }) => Ok(None),
            Ok(Fenced::Theirs(id)) => Err(TopologyError::Seeds(format!(
                "{} belongs to topology {id} now, and to {} no more",
                member.address(),
                self.id
            ))),
            Err(error) => Err(error),
        }
    }
}

/// The addresses of the members of `topology`, including its home.
fn addresses(topology: &Topology) -> Vec<String> {
    let shards = topology.shards.values().map(|entry| &entry.address);
    let mut addresses: Vec<_> = shards.chain([&topology.home.address]).cloned().collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// The addresses of `newest`, and of the members of `view` that it does not know.
fn still_members(view: &Topology, newest: &Topology) -> Vec<String> {
    let mut all = addresses(newest);
    let home_is_a_shard = view
        .shards
        .values()
        .any(|entry| entry.address == view.home.address);
    let gone = view
        .shards
        .iter()
        .filter(|(name, _)| !newest.shards.contains_key(*name));
    all.extend(gone.map(|(_, entry)| entry.address.clone()));
    all.extend((!home_is_a_shard).then(|| view.home.address.clone()));
    all.sort();
    all.dedup();
    all
}

fn answer((address, fence): &(String, Fence)) -> (String, Answer) {
    let answer = Answer {
        life: fence.life.clone(),
        armed: fence.armed,
        epoch: fence.epoch,
    };
    (address.clone(), answer)
}
