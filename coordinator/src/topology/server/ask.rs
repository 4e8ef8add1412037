//! A process that finds a pointer asks its home, and finishes a founding that began there or takes
//! it back.

use std::sync::Arc;

use super::{
    ServerTopology, Step,
    answers::{Claim, Join, Leave},
    first_use::FirstUse,
    member::Member,
    stored::Pointer,
    survey::{Seen, Survey},
};
use crate::topology::{
    Blueprint, Founder, Home, Status, Swap, Topology, TopologyError, found::shard_id,
};

/// The reason why nothing is done while a server is silent.
const MUST_ALL_ANSWER: &str = "; a topology is founded, or given up, only if every address answers";

impl FirstUse {
    /// The topology that `pointer` names, if it is in use. `None`: it is not, or not any more, or
    /// came into use just now; look again.
    pub(super) async fn ask(
        &self,
        pointer: &Pointer,
        survey: &Survey,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        let newest = survey.newest(&pointer.id);
        let home = match survey.home_of(&pointer.id) {
            Some((home, _)) => home,
            None => {
                let home = newest.map_or(&pointer.home, |newest| &newest.home.address);
                self.caller.members.at(home)?
            }
        };
        // The store determines the record in force: the home may have lost it, or another server
        // may be the home by now.
        if let Some(newest) = newest {
            return Ok(Some(self.store(newest, home)));
        }
        let trace = home.trace().await?;
        let Some(record) = trace.record.filter(|record| record.id == pointer.id) else {
            return self.forget(&pointer.id, &home, survey).await;
        };
        match record.status {
            Status::Active => Ok(Some(self.store(&record, home))),
            Status::Creating if record.home.life == trace.server.life => {
                self.finish(&record, home).await
            }
            Status::Creating => self.give_up_old(&record, home).await,
        }
    }

    /// Founds a topology: every server answers, and none carries a trace of one.
    pub(super) async fn found(
        &mut self,
        survey: &Survey,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        if !self.founding.allowed {
            let so = match survey.seen.is_empty() {
                true => "",
                false => "; no other server has a topology",
            };
            survey.check_complete(so)?;
            return Err(TopologyError::Absent);
        }
        survey.check_complete(MUST_ALL_ANSWER)?;
        let home = self.home_to_be(survey);
        let mut creating = Topology::found(self.blueprint(home, survey))?;
        creating.status = Status::Creating;
        self.observe(Step::Claiming {
            home: home.member.address().to_owned(),
        });
        match home.member.claim(&creating).await? {
            Claim::Claimed => {}
            Claim::Taken => return Ok(None),
        }
        self.claimed.insert(creating.id.clone());
        self.observe(Step::Claimed {
            id: creating.id.clone(),
        });
        self.finish(&creating, home.member.clone()).await
    }

    /// The requested server, or else the first by `run_id`: all processes choose the same one, for
    /// any order of their lists.
    fn home_to_be<'a>(&self, survey: &'a Survey) -> &'a Seen {
        let wanted = self.founding.home.as_ref().map(|address| address.as_str());
        let chosen = survey
            .seen
            .iter()
            .find(|seen| Some(seen.member.address()) == wanted);
        let by_run_id = || {
            survey
                .seen
                .iter()
                .min_by_key(|seen| seen.trace.server.life.run_id())
        };
        chosen
            .or_else(by_run_id)
            .expect("there is a seed, and every one answered")
    }

    fn blueprint(&self, home: &Seen, survey: &Survey) -> Blueprint {
        let founder = |seen: &Seen| {
            let place = seen.place?;
            Some(Founder {
                id: shard_id(place),
                address: seen.member.address().to_owned(),
                life: seen.trace.server.life.clone(),
                weight: self
                    .founding
                    .weights
                    .get(place)
                    .copied()
                    .unwrap_or_default(),
                zone: self.founding.zones.get(place).cloned(),
            })
        };
        Blueprint {
            id: self.caller.random.id(),
            engine: self.caller.engine,
            unix: self.caller.clock.unix(),
            after: survey.greatest().max(self.founding.after),
            constants: self.founding.constants,
            slots: self.founding.slots,
            namespaces: self.founding.namespaces.clone(),
            home: Home {
                address: home.member.address().to_owned(),
                life: home.trace.server.life.clone(),
            },
            founders: survey.seen.iter().filter_map(founder).collect(),
        }
    }

    /// Joins every member of `creating` to it, one after the other, and brings it into use.
    async fn finish(
        &self,
        creating: &Topology,
        home: Arc<Member>,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        if let Some(obstacle) = self.join_all(creating).await {
            home.void(&creating.id).await?;
            self.observe(Step::Voided {
                id: creating.id.clone(),
            });
            return obstacle.map(|()| None);
        }
        let mut active = creating.clone();
        active.status = Status::Active;
        active.version += 1;
        let store = self.store(creating, home);
        match store.compare_and_swap(creating.version(), &active).await {
            Ok(Swap::Done) => {
                self.observe(Step::Activated { id: active.id });
                Ok(Some(store))
            }
            // Another process brought it into use, or removed it: the next look tells.
            Ok(Swap::Newer(_)) | Err(TopologyError::RecoverNeeded { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Joins the members in the order of their `run_id`s, so that one of two foundings meets the
    /// other and yields. Returns the obstacle: another topology, or a server.
    async fn join_all(&self, creating: &Topology) -> Option<Result<(), TopologyError>> {
        let pointer = Pointer::to(creating);
        let mut entries: Vec<_> = creating.shards.values().collect();
        entries.sort_by_key(|entry| entry.life.run_id());
        for entry in entries
            .into_iter()
            .filter(|entry| entry.address != creating.home.address)
        {
            let joined = match self.caller.members.at(&entry.address) {
                Ok(member) => member.join(&pointer, &entry.life).await,
                Err(error) => Err(error),
            };
            match joined {
                Ok(Join::Joined) => self.observe(Step::Joined {
                    address: entry.address.clone(),
                }),
                Ok(Join::Theirs | Join::OtherLife) => return Some(Ok(())),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Takes back a founding that its home remembers from an earlier life: it cannot be finished
    /// any more. Every member must answer: it was never used, unless a member has a copy, and then
    /// the copy is newer.
    async fn give_up_old(
        &self,
        creating: &Topology,
        home: Arc<Member>,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        for entry in creating.shards.values() {
            let trace = self.caller.members.at(&entry.address)?.trace().await?;
            if let Some(copy) = trace.copy.as_ref().filter(|copy| copy.id == creating.id) {
                return Ok(Some(self.store(copy, home)));
            }
            if trace.used(&creating.id) {
                return Err(in_use(&creating.id, &home, &entry.address));
            }
        }
        home.void(&creating.id).await?;
        self.observe(Step::Voided {
            id: creating.id.clone(),
        });
        Ok(None)
    }

    /// Removes the pointers to a topology without a record at its home. It can never come into use;
    /// and it never was in use, unless a member has a copy.
    async fn forget(
        &self,
        id: &str,
        home: &Member,
        survey: &Survey,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        self.check_unused(id, home, survey)?;
        survey.check_complete(MUST_ALL_ANSWER)?;
        for Seen { member, trace, .. } in &survey.seen {
            let pointed = trace
                .pointer
                .as_ref()
                .is_some_and(|pointer| pointer.id == id);
            if pointed && member.leave(id).await? == Leave::InUse {
                return Err(in_use(id, home, member.address()));
            }
        }
        Ok(None)
    }

    fn check_unused(&self, id: &str, home: &Member, survey: &Survey) -> Result<(), TopologyError> {
        survey
            .user_of(id)
            .map_or(Ok(()), |user| Err(in_use(id, home, user)))
    }

    fn store(&self, topology: &Topology, home: Arc<Member>) -> Arc<ServerTopology> {
        Arc::new(ServerTopology::new(
            topology.clone(),
            home,
            self.caller.clone(),
        ))
    }

    fn observe(&self, step: Step) {
        self.caller.observer.tell(step);
    }
}

fn in_use(id: &str, home: &Member, user: &str) -> TopologyError {
    TopologyError::Lost(format!(
        "{user} is armed in the name of topology {id}, {} has no record of it, and nobody has a \
         copy: somebody deleted keys; to found another, flush every server",
        home.address()
    ))
}
