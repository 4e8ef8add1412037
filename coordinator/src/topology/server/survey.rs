//! One look at every server of a list.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;

use super::{answers::Trace, member::Member, stored::Pointer};
use crate::{
    clock::Instant,
    ids::{Epoch, Incarnation},
    topology::{Copies, Status, Topology, TopologyError},
};

/// A server that answered.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) member: Arc<Member>,
    pub(super) trace: Trace,
    /// Its place in the list; none for a separate home.
    pub(super) place: Option<usize>,
}

/// The traces on the servers of a list.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) seen: Vec<Seen>,
    /// Servers without an answer, and the reasons.
    pub(super) silent: Vec<(Arc<Member>, TopologyError)>,
}

impl Trace {
    /// The topology that this server belongs to. A server that lost only its pointer still belongs
    /// to it.
    pub(super) fn belongs_to(&self) -> Option<Pointer> {
        let record = self.record.as_ref().or(self.copy.as_ref());
        self.pointer.clone().or(record.map(Pointer::to))
    }

    fn records(&self) -> impl Iterator<Item = &Topology> {
        self.record.iter().chain(&self.copy)
    }

    /// This server has seen no epoch and no incarnation above this.
    fn greatest(&self) -> Epoch {
        let fence = self.fence.map_or(0, |fence| fence.number);
        let records = self.records().map(Topology::greatest);
        records.fold(self.epoch.max(Epoch(fence)), Epoch::max)
    }

    /// Whether topology `id` was in use at this server, in its present life.
    pub(super) fn used(&self, id: &str) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.id == id)
            || (self.armed && self.belongs_to().is_some_and(|pointer| pointer.id == id))
    }
}

impl Survey {
    /// Looks at `servers`, each with its place in the list.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Seeds`]: two of them are one server. [`TopologyError::Malformed`].
    pub(super) async fn take(
        servers: &[(Option<usize>, Arc<Member>)],
    ) -> Result<Self, TopologyError> {
        let look = async |(place, member): &(Option<usize>, Arc<Member>)| {
            let trace = member.repeated(|| member.trace()).await;
            (*place, member.clone(), trace)
        };
        let (mut seen, mut silent) = (Vec::new(), Vec::new());
        for (place, member, trace) in join_all(servers.iter().map(look)).await {
            match trace {
                Ok(trace) => seen.push(Seen {
                    member,
                    trace,
                    place,
                }),
                Err(error @ TopologyError::Malformed(_)) => return Err(error),
                Err(error) => silent.push((member, error)),
            }
        }
        let survey = Self { seen, silent };
        survey.check_distinct()?;
        Ok(survey)
    }

    fn check_distinct(&self) -> Result<(), TopologyError> {
        for (index, one) in self.seen.iter().enumerate() {
            let run_id = one.trace.server.life.run_id();
            let same = |other: &&Seen| other.trace.server.life.run_id() == run_id;
            if let Some(other) = self.seen[..index].iter().find(same) {
                return Err(TopologyError::Seeds(format!(
                    "{} and {} are one server (run_id {run_id}): give each server once",
                    other.member.address(),
                    one.member.address()
                )));
            }
        }
        Ok(())
    }

    /// The topologies with traces, by id: a pointer to each, and the servers that have it.
    pub(super) fn topologies(&self) -> BTreeMap<String, (Pointer, Vec<String>)> {
        let mut topologies = BTreeMap::new();
        for Seen { member, trace, .. } in &self.seen {
            if let Some(pointer) = trace.belongs_to() {
                let id = pointer.id.clone();
                let (_, there) = topologies
                    .entry(id)
                    .or_insert_with(|| (pointer, Vec::new()));
                there.push(member.address().to_owned());
            }
        }
        topologies
    }

    /// # Errors
    ///
    /// The error of the first server that did not answer, followed by `so`.
    pub(super) fn check_complete(&self, so: &str) -> Result<(), TopologyError> {
        match self.silent.first() {
            None => Ok(()),
            Some((_, TopologyError::Unreachable { address, reason })) => {
                let (address, reason) = (address.clone(), format!("{reason}{so}"));
                Err(TopologyError::Unreachable { address, reason })
            }
            Some((_, error)) => Err(error.clone()),
        }
    }

    /// The newest record of `id` that is written in its server's present life, and that server: the
    /// home, under any address that others know.
    pub(super) fn home_of(&self, id: &str) -> Option<(Arc<Member>, &Topology)> {
        let homes = self.seen.iter().filter_map(|Seen { member, trace, .. }| {
            let record = trace.record.as_ref().filter(|record| record.id == id)?;
            let current = record.home.life == trace.server.life;
            current.then(|| (member.clone(), record))
        });
        homes.max_by_key(|(_, record)| record.version())
    }

    /// The newest existing record or copy of `id`, once it was in use.
    pub(super) fn newest(&self, id: &str) -> Option<&Topology> {
        let records = self
            .seen
            .iter()
            .flat_map(|Seen { trace, .. }| trace.records());
        records
            .filter(|record| record.id == id && record.status == Status::Active)
            .max_by_key(|record| record.version())
    }

    /// What the members have of `id`, as found by this survey of all but the `home`, which began at `asked`.
    pub(super) fn copies(&self, id: &str, home: &str, asked: Instant) -> Copies {
        let newest = self.newest(id);
        let is_home = newest.is_none_or(|newest| newest.home.address == home);
        let is_of_all = self.silent.is_empty() && is_home;
        Copies {
            newest: newest.cloned().map(Arc::new),
            of_all_at: is_of_all.then_some(asked),
        }
    }

    /// The server at `address`, as records spell it.
    pub(super) fn at(&self, address: &str) -> Option<&Seen> {
        self.seen
            .iter()
            .find(|seen| seen.member.address() == address)
    }

    /// The reason why the server at `address` gave no answer, if it was asked.
    pub(super) fn silence_of(&self, address: &str) -> Option<&TopologyError> {
        let mut silent = self.silent.iter();
        silent
            .find(|(member, _)| member.address() == address)
            .map(|(_, error)| error)
    }

    /// A server at which topology `id` was in use.
    pub(super) fn user_of(&self, id: &str) -> Option<&str> {
        self.seen
            .iter()
            .find(|seen| seen.trace.used(id))
            .map(|seen| seen.member.address())
    }

    /// No server has seen an epoch or an incarnation above this.
    pub(super) fn greatest(&self) -> Epoch {
        let seen = self.seen.iter().map(|seen| seen.trace.greatest());
        seen.max().unwrap_or_default()
    }

    /// The greatest incarnation that a server has seen.
    pub(super) fn fence(&self) -> Option<Incarnation> {
        self.seen.iter().filter_map(|seen| seen.trace.fence).max()
    }
}
