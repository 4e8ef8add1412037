//! One server, from the topology's view: the rules about what it keeps of the topology.

use std::sync::Arc;

use ringfence_ring::Slot;
use tokio::sync::Mutex;

use super::{
    answers::{Claim, Copied, Fence, Fenced, Found, Join, Leave, Retired, Site, Swapped, Trace},
    stored::{Header, Pointer, header, read_record, write_record},
};
use crate::{
    ids::{Incarnation, Life},
    random::Random,
    shard::{
        ConnectionId, ServerOptions, Shard, ShardError,
        member::{Announcements, MemberLink, MemberShard},
        whole::{ChangeWhole as _, Needs, Whole},
    },
    topology::{Topology, TopologyError, Version},
};

/// A server, reached over a separate connection.
///
/// Every operation may be repeated. An operation without an answer may have taken effect, or may
/// yet, until the next one begins: the next one first ends the former connection.
#[derive(Debug)]
pub(super) struct Member {
    shard: MemberShard,
    options: ServerOptions,
    wire: Mutex<Wire>,
}

#[derive(Debug, Default)]
struct Wire {
    /// None while a request is under way: a request that was dropped takes its connection along.
    connection: Option<MemberLink>,
    former: Option<(Life, ConnectionId)>,
}

/// The result of a request in one life.
enum InLife<T> {
    Done(T),
    OtherLife,
}

impl Member {
    /// The server that `options` name.
    pub(super) fn new(options: ServerOptions, random: &Arc<Random>) -> Self {
        Self {
            shard: options.member(random),
            options,
            wire: Mutex::default(),
        }
    }

    /// Its address, without credentials.
    pub(super) fn address(&self) -> &str {
        self.options.address()
    }

    /// The way to reach it.
    pub(super) fn options(&self) -> ServerOptions {
        self.options.clone()
    }

    /// The shard on that server.
    pub(super) fn shard(&self, random: &Arc<Random>) -> Arc<dyn Shard> {
        let same = self.shard.shard();
        same.unwrap_or_else(|| self.options.shard(random))
    }

    /// Does `operation`, and repeats it once if the connection was dead: a server that restarted
    /// leaves such a connection. Only for operations that may be repeated without notice; a swap is
    /// not one.
    pub(super) async fn repeated<T, F>(&self, operation: impl Fn() -> F) -> Result<T, TopologyError>
    where
        F: Future<Output = Result<T, TopologyError>>,
    {
        let connected = self.wire.lock().await.connection.is_some();
        match operation().await {
            Err(TopologyError::Unreachable { .. }) if connected => operation().await,
            answer => answer,
        }
    }

    /// Applies `rule` in one step, in the server's present life.
    async fn change<T: Send>(
        &self,
        rule: impl Fn(&mut Whole) -> T + Send + Sync,
    ) -> Result<(Site, T), TopologyError> {
        let mut wire = self.wire.lock().await;
        let mut connection = self.open(&mut wire).await?;
        let changed = connection.change(Needs::Topology(&[]), |whole, _| Ok(rule(whole)));
        let changed = changed
            .await
            .map_err(|error| failed(self.address(), error))?;
        let site = self.site(&connection);
        wire.connection = Some(connection);
        Ok((site, changed))
    }

    /// Applies `rule` in one step, if the server is in `life`. It may look at the states of `slots`.
    async fn change_in<T: Send>(
        &self,
        life: &Life,
        slots: &[Slot],
        rule: impl Fn(&mut Whole) -> T + Send + Sync,
    ) -> Result<InLife<T>, TopologyError> {
        let mut wire = self.wire.lock().await;
        // The connection may have died with its life.
        wire.connection.take_if(|present| present.life() != life);
        let mut connection = self.open(&mut wire).await?;
        if connection.life() != life {
            return Ok(InLife::OtherLife);
        }
        let changed = connection.change(Needs::Topology(slots), |whole, _| Ok(rule(whole)));
        let changed = match changed.await {
            Err(ShardError::Unarmed) => return Ok(InLife::OtherLife),
            changed => changed.map_err(|error| failed(self.address(), error))?,
        };
        wire.connection = Some(connection);
        Ok(InLife::Done(changed))
    }

    /// Takes the connection out, or opens a new one.
    async fn open(&self, wire: &mut Wire) -> Result<MemberLink, TopologyError> {
        if let Some(connection) = wire.connection.take() {
            return Ok(connection);
        }
        let opened = self.shard.connect(wire.former.clone()).await;
        let opened = opened.map_err(|error| failed(self.address(), error))?;
        wire.former = Some((opened.life().clone(), opened.id()));
        Ok(opened)
    }

    fn site(&self, connection: &MemberLink) -> Site {
        Site {
            life: connection.life().clone(),
            forgets: connection.forgets(self.address()),
        }
    }

    fn malformed(&self, reason: String) -> TopologyError {
        TopologyError::Malformed(format!("{}: {reason}", self.address()))
    }

    fn record(&self, text: Option<&str>) -> Result<Option<Topology>, TopologyError> {
        let record = text.map(read_record).transpose();
        record.map_err(|reason| self.malformed(reason))
    }

    fn copied(&self, text: Option<&str>) -> Result<Option<Topology>, TopologyError> {
        let copy = text.map(Topology::decode).transpose();
        copy.map_err(|reason| self.malformed(reason))
    }

    /// The server, as the present connection's handshake found it.
    pub(super) async fn server(&self) -> Result<Site, TopologyError> {
        let mut wire = self.wire.lock().await;
        let connection = self.open(&mut wire).await?;
        let site = self.site(&connection);
        wire.connection = Some(connection);
        Ok(site)
    }

    /// Everything that it knows of a topology, at one moment.
    pub(super) async fn trace(&self) -> Result<Trace, TopologyError> {
        let (server, (affiliation, head)) = self
            .change(|whole| (whole.affiliation.clone(), whole.head.clone()))
            .await?;
        let pointer = affiliation.pointer.as_deref().map(Pointer::parse);
        Ok(Trace {
            server,
            pointer: pointer
                .transpose()
                .map_err(|reason| self.malformed(reason))?,
            record: self.record(affiliation.record.as_deref())?,
            fence: head.fence,
            copy: self.copied(head.copy.as_ref().map(|(_, _, text)| &**text))?,
            armed: head.armed.is_some(),
            epoch: head.epoch_seen,
        })
    }

    /// Begins to found `creating`, if its home is in the life that it names.
    pub(super) async fn claim(&self, creating: &Topology) -> Result<Claim, TopologyError> {
        let (pointer, record) = (Pointer::to(creating).to_string(), write_record(creating));
        let claimed = self.change_in(&creating.home.life, &[], |whole| {
            let is_taken = whole.head.fence > Some(creating.incarnation)
                || whole.affiliation.pointer.is_some()
                || whole.affiliation.record.is_some();
            if !is_taken {
                whole.needs_memory = true;
                whole.affiliation.pointer = Some(pointer.clone());
                whole.affiliation.record = Some(record.clone());
            }
            !is_taken
        });
        Ok(match claimed.await? {
            InLife::Done(true) => Claim::Claimed,
            InLife::Done(false) | InLife::OtherLife => Claim::Taken,
        })
    }

    /// Makes the server, if it is in `life`, a member of the topology that `pointer` names.
    pub(super) async fn join(&self, pointer: &Pointer, life: &Life) -> Result<Join, TopologyError> {
        let joined = self.change_in(life, &[], |whole| {
            let there = &mut whole.affiliation.pointer;
            there.get_or_insert_with(|| pointer.to_string());
            whole.affiliation.id() == Some(&*pointer.id)
        });
        Ok(match joined.await? {
            InLife::Done(true) => Join::Joined,
            InLife::Done(false) => Join::Theirs,
            InLife::OtherLife => Join::OtherLife,
        })
    }

    /// Removes the pointer to topology `id`, if the topology was never in use here.
    pub(super) async fn leave(&self, id: &str) -> Result<Leave, TopologyError> {
        let left = self.change(|whole| {
            if whole.affiliation.id() != Some(id) {
                return Leave::NotThere;
            }
            if whole.head.copy.is_some() || whole.head.armed.is_some() {
                return Leave::InUse;
            }
            whole.affiliation.pointer = None;
            Leave::Left
        });
        Ok(left.await?.1)
    }

    /// Removes the server's data of `topology`, which does not name it any more, if the server is
    /// in `life`.
    pub(super) async fn retire(
        &self,
        topology: &Topology,
        life: &Life,
    ) -> Result<Retired, TopologyError> {
        let slots: Vec<Slot> = topology.table.all_slots().collect();
        let retired = self.change_in(life, &slots, |whole| {
            if whole.affiliation.id() != Some(&*topology.id) {
                return Retired::NotThere;
            }
            let record = header_of(whole).filter(|record| record.id == topology.id);
            let is_home = record
                .as_ref()
                .is_some_and(|record| record.version.0 >= topology.incarnation);
            if is_home || !whole.are_shut(&slots) {
                return Retired::InUse;
            }
            let was_home = record.is_some();
            if let Err(fence) = raise_fence(whole, topology.incarnation) {
                return Retired::Stale(fence);
            }
            // The fence stays: it says that this life has a past.
            whole.affiliation.pointer = None;
            (whole.head.copy, whole.head.armed) = (None, None);
            if was_home {
                whole.affiliation.record = None;
            }
            Retired::Done
        });
        Ok(match retired.await? {
            InLife::Done(retired) => retired,
            InLife::OtherLife => Retired::OtherLife,
        })
    }

    /// Replaces the record at `expected` by `next`, in the life that `next` names.
    pub(super) async fn swap(
        &self,
        expected: Version,
        next: &Topology,
    ) -> Result<Swapped, TopologyError> {
        let (life, text) = (&next.home.life, write_record(next));
        let swapped = self.change_in(life, &[], |whole| {
            let Some(record) = header_of(whole) else {
                return Err(Swapped::Unusable("there is none".into()));
            };
            if record.id != next.id || record.life != life.as_str() {
                return Err(Swapped::Unusable(format!("found {:?}", record.line)));
            }
            let fence = whole.head.fence;
            if let Some(fence) = fence.filter(|fence| *fence > record.version.0) {
                return Err(Swapped::Unusable(format!("its fence is {fence}")));
            }
            if record.version != expected {
                return Ok(whole.affiliation.record.clone());
            }
            raise_fence(whole, next.incarnation)
                .map_err(|fence| Swapped::Unusable(format!("its fence is {fence}")))?;
            whole.affiliation.record = Some(text.clone());
            Ok(None)
        });
        Ok(match swapped.await? {
            InLife::Done(Ok(None)) => Swapped::Done,
            InLife::Done(Ok(Some(there))) => {
                let newer = read_record(&there).map_err(|reason| self.malformed(reason))?;
                Swapped::Newer(Arc::new(newer))
            }
            InLife::Done(Err(unusable)) => unusable,
            InLife::OtherLife => {
                Swapped::Unusable(format!("the server is in another life than {life}"))
            }
        })
    }

    /// Removes the record of `id`, if it is still in creation. Returns whether it was there.
    pub(super) async fn void(&self, id: &str) -> Result<bool, TopologyError> {
        let voided = self.change(|whole| {
            let is_created =
                header_of(whole).is_some_and(|record| record.id == id && record.is_creating());
            if is_created {
                whole.affiliation.record = None;
                if whole.affiliation.id() == Some(id) {
                    whole.affiliation.pointer = None;
                }
            }
            is_created
        });
        Ok(voided.await?.1)
    }

    /// Gives the server a copy of `topology`.
    pub(super) async fn copy(&self, topology: &Topology) -> Result<Copied, TopologyError> {
        let (pointer, copy) = (
            Pointer::to(topology).to_string(),
            (topology.version, topology.encode()),
        );
        let copied = self.change(|whole| {
            if whole.affiliation.id() != Some(&*topology.id) {
                return Copied::NotMember;
            }
            match whole.head.see_record(topology.incarnation, &copy) {
                Ok(()) => {
                    whole.affiliation.pointer = Some(pointer.clone());
                    Copied::Kept
                }
                Err(_) => Copied::Stale(fence_of(whole)),
            }
        });
        Ok(copied.await?.1)
    }

    /// Raises the fence of the server to `n`, if it is in `life`, and is or was a member of `id`.
    pub(super) async fn fence(
        &self,
        life: &Life,
        id: &str,
        n: Incarnation,
    ) -> Result<Fenced, TopologyError> {
        let fenced = self.change_in(life, &[], |whole| {
            let record = header_of(whole).map(|record| record.id.to_owned());
            let its = whole.affiliation.id().map(str::to_owned).or(record);
            if let Some(other) = its.filter(|its| its != id) {
                return Err(Fenced::Theirs(other));
            }
            if whole.head.fence >= Some(n) {
                return Err(Fenced::Outrun);
            }
            whole.head.fence = Some(n);
            Ok((whole.affiliation.record.clone(), whole.head.clone()))
        });
        Ok(match fenced.await? {
            InLife::Done(Ok((record, head))) => Fenced::Raised(Box::new(Fence {
                life: life.clone(),
                record: self.record(record.as_deref())?,
                copy: self.copied(head.copy.as_ref().map(|(_, _, text)| &**text))?,
                armed: head.armed.map(|armed| armed.epoch),
                epoch: head.epoch_seen,
            })),
            InLife::Done(Err(refused)) => refused,
            InLife::OtherLife => Fenced::Outrun,
        })
    }

    /// Puts `next` in force here, in the life that it names, if the fence equals its incarnation.
    /// Returns whether it is in force.
    pub(super) async fn restore(&self, next: &Topology) -> Result<bool, TopologyError> {
        let (pointer, text) = (Pointer::to(next).to_string(), write_record(next));
        let restored = self.change_in(&next.home.life, &[], |whole| {
            let there = header_of(whole).map(|record| record.version.0);
            let is_due = whole.head.fence == Some(next.incarnation)
                && there.is_none_or(|there| there < next.incarnation);
            if is_due {
                whole.affiliation.pointer = Some(pointer.clone());
                whole.affiliation.record = Some(text.clone());
            }
            is_due
        });
        Ok(matches!(restored.await?, InLife::Done(true)))
    }

    /// Reads the record, if it is not `known`, and the state of its server.
    pub(super) async fn read(
        &self,
        known: Option<&Topology>,
    ) -> Result<(Site, Found), TopologyError> {
        let known = known.map(header);
        let (site, (fence, record)) = self
            .change(|whole| (whole.head.fence, whole.affiliation.record.clone()))
            .await?;
        let Some(record) = record else {
            return Ok((site, Found::Nothing));
        };
        let is_known = record.lines().next() == known.as_deref();
        let record = match is_known {
            true => None,
            false => self.record(Some(&record))?.map(Arc::new),
        };
        Ok((site, Found::Record { fence, record }))
    }

    /// One of `slots` that has a counter, or the record of a segmented lock.
    pub(super) async fn slot_with_counters(
        &self,
        slots: &[Slot],
    ) -> Result<Option<Slot>, TopologyError> {
        let mut wire = self.wire.lock().await;
        let mut connection = self.open(&mut wire).await?;
        let found = connection.slot_with_counters(slots).await;
        let found = found.map_err(|error| failed(self.address(), error))?;
        wire.connection = Some(connection);
        Ok(found)
    }

    /// Opens a connection on which the versions of its record are announced.
    pub(super) async fn announcements(&self) -> Result<Announcements, ShardError> {
        self.shard.announcements().await
    }
}

/// The first line of the record, if there is one.
fn header_of<'a>(whole: &'a Whole) -> Option<Header<'a>> {
    Header::parse(whole.affiliation.record.as_deref()?)
}

/// Raises the fence to `n`; returns it as text if it is higher.
fn raise_fence(whole: &mut Whole, n: Incarnation) -> Result<(), String> {
    let raised = whole.head.raise_fence(n);
    raised.map_err(|_| fence_of(whole))
}

fn fence_of(whole: &Whole) -> String {
    whole
        .head
        .fence
        .map_or_else(String::new, |fence| fence.to_string())
}

/// The meaning of `error` for a caller that asked the server at `address` for the topology.
pub(super) fn failed(address: &str, error: ShardError) -> TopologyError {
    let address = address.to_owned();
    match error {
        ShardError::Unusable { reason } => TopologyError::Seeds(reason),
        ShardError::Refused { .. } => TopologyError::Malformed(format!("{address}: {error}")),
        ShardError::Unreachable { reason } | ShardError::NoReply { reason } => {
            let prefix = format!("{address}: ");
            let reason = reason.strip_prefix(&prefix).unwrap_or(&reason).to_owned();
            TopologyError::Unreachable { address, reason }
        }
        ShardError::Overloaded { .. } | ShardError::Unarmed | ShardError::Stale { .. } => {
            TopologyError::Unreachable {
                address,
                reason: error.to_string(),
            }
        }
    }
}
