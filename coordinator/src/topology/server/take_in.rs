//! A server joins: it is checked, and gets its pointer, before the record names it.

use std::sync::Arc;

use ringfence_ring::{ShardId, Slot, Weight};

use super::{
    ServerTopology,
    answers::{Copied, Join, Trace},
    member::Member,
    stored::Pointer,
    survey::Survey,
};
use crate::{
    shard::{ServerOptions, keeps_counters},
    topology::{Founder, Topology, TopologyError, TopologyStore as _, found::shard_id},
};

impl ServerTopology {
    /// Prepares the server at `options` to become a shard, called `id` or else by the next free
    /// letter. Returns its entry for the resize that adds it.
    ///
    /// Afterwards the server has a pointer to this topology and a copy of its record, and nothing
    /// else: until the record names the server, nothing is armed there. So the call may be
    /// repeated. If no resize follows, the pointer does no harm: a process with that server as a
    /// seed finds this topology by it, another topology refuses the server, and
    /// [`release`](Self::release) removes the pointer.
    ///
    /// A former shard may return: after it left, or was declared dead, with a new life.
    ///
    /// # Errors
    ///
    /// * [`TopologyError::Seeds`]: it is a shard already, or belongs to another topology, or is
    ///   unusable, or must be restarted first, or keeps no counters and a shard has some; or `id` is
    ///   taken. Names them.
    /// * [`TopologyError::Unreachable`]: it does not answer, or is a replica.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the pointer.
    pub async fn take_in(
        &self,
        options: impl Into<ServerOptions>,
        id: Option<ShardId>,
        weight: Weight,
    ) -> Result<Founder, TopologyError> {
        let topology = self.load().await?;
        let id = free_id(&topology, id)?;
        let member = self.caller.members.with(options.into());
        self.check_counters([member.address()]).await?;
        let survey = self.survey_with(&member, &topology).await?;
        let address = member.address().to_owned();
        let seen = match (survey.at(&address), survey.silence_of(&address)) {
            (Some(seen), _) => seen,
            (None, silence) => return Err(silence.expect("it was asked").clone()),
        };
        check_newcomer(&topology, &address, &seen.trace)?;
        let life = seen.trace.server.life.clone();
        let pointer = Pointer::to(&topology);
        let refused = |reason: &str| TopologyError::Unreachable {
            address: address.clone(),
            reason: reason.to_owned(),
        };
        match member.join(&pointer, &life).await? {
            Join::Joined => {}
            Join::Theirs => return Err(refused("another topology takes it in just now")),
            Join::OtherLife => return Err(refused("it began another life meanwhile")),
        }
        match member.copy(&topology).await? {
            Copied::Kept => Ok(Founder {
                id,
                address,
                life,
                weight,
                zone: None,
            }),
            Copied::Stale(fence) => Err(seen_later(&topology, &address, &fence)),
            Copied::NotMember => Err(refused("its pointer was taken away meanwhile")),
        }
    }

    /// Checks that no shard has counters, if one of the servers at `newcomers` keeps none. Changes nothing.
    ///
    /// # Errors
    ///
    /// * [`TopologyError::Seeds`]: names the server, and the shard.
    /// * [`TopologyError::Unreachable`]: a shard does not answer.
    pub async fn check_counters<'a>(
        &self,
        newcomers: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), TopologyError> {
        let mut newcomers = newcomers.into_iter();
        let Some(newcomer) = newcomers.find(|address| !keeps_counters(address)) else {
            return Ok(());
        };
        let topology = self.load().await?;
        let slots: Vec<Slot> = topology.table.all_slots().collect();
        for (name, entry) in &topology.shards {
            let member = self.caller.members.at(&entry.address)?;
            let found = member
                .repeated(|| member.slot_with_counters(&slots))
                .await?;
            if let Some(slot) = found {
                let (id, address) = (&name.0, &entry.address);
                return Err(TopologyError::Seeds(format!(
                    "{newcomer} keeps locks and no counters, and shard {id}, {address}, has counters, or a segmented \
                     lock, in slot {slot}: only a topology without them gets such a shard"
                )));
            }
        }
        Ok(())
    }

    /// Looks at `newcomer`, and at every member, so that no server is mistaken for another.
    async fn survey_with(
        &self,
        newcomer: &Arc<Member>,
        topology: &Topology,
    ) -> Result<Survey, TopologyError> {
        let address = newcomer.address();
        let mut servers = vec![(None, newcomer.clone())];
        for (name, entry) in &topology.shards {
            if entry.address == address {
                let id = &name.0;
                return Err(TopologyError::Seeds(format!(
                    "{address} is shard {id} already"
                )));
            }
            servers.push((None, self.caller.members.at(&entry.address)?));
        }
        Survey::take(&servers).await
    }
}

/// `wanted`, if no shard has or had it; otherwise the next letter.
fn free_id(topology: &Topology, wanted: Option<ShardId>) -> Result<ShardId, TopologyError> {
    let was = |id: &ShardId| topology.failed.iter().find(|failed| failed.shard.0 == *id);
    let taken = |id: &ShardId| match (topology.shard(id), was(id)) {
        (Some(entry), _) => Some(&entry.address),
        (None, failed) => failed.map(|failed| &failed.address),
    };
    let Some(wanted) = wanted else {
        let mut free = (0..).map(shard_id).filter(|id| taken(id).is_none());
        return Ok(free.next().expect("there are more names than shards"));
    };
    match taken(&wanted) {
        None => Ok(wanted),
        Some(address) => Err(TopologyError::Seeds(format!(
            "shard id {wanted} is taken, by {address}"
        ))),
    }
}

/// Refuses a server that belongs to another topology, or that no longer knows the past of its
/// present life.
fn check_newcomer(topology: &Topology, address: &str, trace: &Trace) -> Result<(), TopologyError> {
    let pointer = trace.belongs_to();
    if let Some(pointer) = &pointer
        && pointer.id != topology.id
    {
        return Err(TopologyError::Seeds(format!(
            "{address} belongs to topology {}, and cannot come to topology {}",
            pointer.id, topology.id
        )));
    }
    if let Some(fence) = trace.fence
        && fence > topology.incarnation
    {
        return Err(seen_later(topology, address, &fence.to_string()));
    }
    let life = &trace.server.life;
    if topology
        .failed
        .iter()
        .any(|failed| failed.lives.contains(life))
    {
        return Err(restart(address, "was declared dead in its present life"));
    }
    // A late arm from that past would find a life without state, and a pointer that allows it.
    if trace.fence.is_some() && pointer.is_none() {
        return Err(restart(address, "left a topology in its present life"));
    }
    Ok(())
}

fn seen_later(topology: &Topology, address: &str, fence: &str) -> TopologyError {
    let why = format!(
        "has seen incarnation {fence}, and topology {} is at {}",
        topology.id, topology.incarnation
    );
    restart(address, &why)
}

fn restart(address: &str, why: &str) -> TopologyError {
    let anew = match keeps_counters(address) {
        true => "restart it",
        false => "begin another life there (delete what its table life has, or its key life)",
    };
    TopologyError::Seeds(format!("{address} {why}: {anew}, and add it then"))
}
