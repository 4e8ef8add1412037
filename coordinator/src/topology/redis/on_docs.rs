//! A member on a server that stores documents. The rules are those of the scripts in `shard/redis/lua/topology`.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_ring::Slot;
use tokio::sync::Mutex;

use super::{
    answers::{Claim, Copied, Fence, Fenced, Found, Join, Leave, Retired, Site, Swapped, Trace},
    member::{Member, failed},
    news::Announcements,
    stored::{Header, Pointer, header, read_record, write_record},
};
use crate::{
    ids::{Incarnation, Life},
    shard::{
        ConnectionId, ServerOptions, ShardError,
        docs::{DocsMember, DocsShard, MemberView},
    },
    topology::{Topology, TopologyError, Version},
};

/// A server of documents, reached over a separate connection.
#[derive(Debug)]
pub(super) struct OnDocs {
    shard: DocsShard,
    options: ServerOptions,
    wire: Mutex<Wire>,
}

#[derive(Debug, Default)]
struct Wire {
    /// None while a request is under way: a request that was dropped takes its connection along.
    connection: Option<DocsMember>,
    former: Option<(Life, ConnectionId)>,
}

/// The result of a request in one life.
enum InLife<T> {
    Done(T),
    OtherLife,
}

impl OnDocs {
    pub(super) fn new(shard: DocsShard, options: ServerOptions) -> Self {
        Self {
            shard,
            options,
            wire: Mutex::default(),
        }
    }

    /// Applies `rule` in one step, in the server's present life.
    async fn change<T>(
        &self,
        rule: impl Fn(&mut MemberView<'_>) -> T,
    ) -> Result<(Site, T), TopologyError> {
        let mut wire = self.wire.lock().await;
        let mut connection = self.open(&mut wire).await?;
        let changed = connection.change(&[], rule).await;
        let changed = changed.map_err(|error| failed(self.address(), error))?;
        let site = self.site(&connection);
        wire.connection = Some(connection);
        Ok((site, changed))
    }

    /// Applies `rule` in one step, if the server is in `life`. See [`DocsMember::change`] for `slots`.
    async fn change_in<T>(
        &self,
        life: &Life,
        slots: &[Slot],
        rule: impl Fn(&mut MemberView<'_>) -> T,
    ) -> Result<InLife<T>, TopologyError> {
        let mut wire = self.wire.lock().await;
        // The connection may have died with its life.
        wire.connection.take_if(|present| present.life() != life);
        let mut connection = self.open(&mut wire).await?;
        if connection.life() != life {
            return Ok(InLife::OtherLife);
        }
        let changed = match connection.change(slots, rule).await {
            Err(ShardError::Unarmed) => return Ok(InLife::OtherLife),
            changed => changed.map_err(|error| failed(self.address(), error))?,
        };
        wire.connection = Some(connection);
        Ok(InLife::Done(changed))
    }

    /// Takes the connection out, or opens a new one.
    async fn open(&self, wire: &mut Wire) -> Result<DocsMember, TopologyError> {
        if let Some(connection) = wire.connection.take() {
            return Ok(connection);
        }
        let opened = self.shard.connect_member(wire.former.clone()).await;
        let opened = opened.map_err(|error| failed(self.address(), error))?;
        wire.former = Some((opened.life().clone(), opened.id()));
        Ok(opened)
    }

    fn site(&self, connection: &DocsMember) -> Site {
        let forgets = || {
            format!(
                "{}, home of the topology, may lose commits in a crash: after one it comes back without the latest \
                 record; use logged tables, and synchronous_commit on",
                self.address()
            )
        };
        Site {
            life: connection.life().clone(),
            forgets: (!connection.is_durable()).then(forgets),
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
}

#[async_trait]
impl Member for OnDocs {
    fn address(&self) -> &str {
        self.options.address()
    }

    fn options(&self) -> ServerOptions {
        self.options.clone()
    }

    async fn is_connected(&self) -> bool {
        self.wire.lock().await.connection.is_some()
    }

    async fn server(&self) -> Result<Site, TopologyError> {
        let mut wire = self.wire.lock().await;
        let connection = self.open(&mut wire).await?;
        let site = self.site(&connection);
        wire.connection = Some(connection);
        Ok(site)
    }

    async fn trace(&self) -> Result<Trace, TopologyError> {
        let (server, (affiliation, head)) = self
            .change(|member| (member.affiliation.clone(), member.head.clone()))
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

    async fn claim(&self, creating: &Topology) -> Result<Claim, TopologyError> {
        let (pointer, record) = (Pointer::to(creating).to_string(), write_record(creating));
        let claimed = self.change_in(&creating.home.life, &[], |member| {
            let is_taken = member.head.fence > Some(creating.incarnation)
                || member.affiliation.pointer.is_some()
                || member.affiliation.record.is_some();
            if !is_taken {
                member.affiliation.pointer = Some(pointer.clone());
                member.affiliation.record = Some(record.clone());
            }
            !is_taken
        });
        Ok(match claimed.await? {
            InLife::Done(true) => Claim::Claimed,
            InLife::Done(false) | InLife::OtherLife => Claim::Taken,
        })
    }

    async fn join(&self, pointer: &Pointer, life: &Life) -> Result<Join, TopologyError> {
        let joined = self.change_in(life, &[], |member| {
            let there = &mut member.affiliation.pointer;
            there.get_or_insert_with(|| pointer.to_string());
            member.affiliation.id() == Some(&*pointer.id)
        });
        Ok(match joined.await? {
            InLife::Done(true) => Join::Joined,
            InLife::Done(false) => Join::Theirs,
            InLife::OtherLife => Join::OtherLife,
        })
    }

    async fn leave(&self, id: &str) -> Result<Leave, TopologyError> {
        let left = self.change(|member| {
            if member.affiliation.id() != Some(id) {
                return Leave::NotThere;
            }
            if member.head.copy.is_some() || member.head.armed.is_some() {
                return Leave::InUse;
            }
            member.affiliation.pointer = None;
            Leave::Left
        });
        Ok(left.await?.1)
    }

    async fn retire(&self, topology: &Topology, life: &Life) -> Result<Retired, TopologyError> {
        let slots: Vec<Slot> = topology.table.all_slots().collect();
        let retired = self.change_in(life, &slots, |member| {
            if member.affiliation.id() != Some(&*topology.id) {
                return Retired::NotThere;
            }
            let record = header_of(member).filter(|record| record.id == topology.id);
            let is_home = record
                .as_ref()
                .is_some_and(|record| record.version.0 >= topology.incarnation);
            if is_home || !member.is_shut {
                return Retired::InUse;
            }
            let was_home = record.is_some();
            if let Err(fence) = raise_fence(member, topology.incarnation) {
                return Retired::Stale(fence);
            }
            // The fence stays: it says that this life has a past.
            member.affiliation.pointer = None;
            (member.head.copy, member.head.armed) = (None, None);
            if was_home {
                member.affiliation.record = None;
            }
            Retired::Done
        });
        Ok(match retired.await? {
            InLife::Done(retired) => retired,
            InLife::OtherLife => Retired::OtherLife,
        })
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swapped, TopologyError> {
        let (life, text) = (&next.home.life, write_record(next));
        let swapped = self.change_in(life, &[], |member| {
            let Some(record) = header_of(member) else {
                return Err(Swapped::Unusable("there is none".into()));
            };
            if record.id != next.id || record.life != life.as_str() {
                return Err(Swapped::Unusable(format!("found {:?}", record.line)));
            }
            let fence = member.head.fence;
            if let Some(fence) = fence.filter(|fence| *fence > record.version.0) {
                return Err(Swapped::Unusable(format!("its fence is {fence}")));
            }
            if record.version != expected {
                return Ok(member.affiliation.record.clone());
            }
            raise_fence(member, next.incarnation)
                .map_err(|fence| Swapped::Unusable(format!("its fence is {fence}")))?;
            member.affiliation.record = Some(text.clone());
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

    async fn void(&self, id: &str) -> Result<bool, TopologyError> {
        let voided = self.change(|member| {
            let is_created =
                header_of(member).is_some_and(|record| record.id == id && record.is_creating());
            if is_created {
                member.affiliation.record = None;
                if member.affiliation.id() == Some(id) {
                    member.affiliation.pointer = None;
                }
            }
            is_created
        });
        Ok(voided.await?.1)
    }

    async fn copy(&self, topology: &Topology) -> Result<Copied, TopologyError> {
        let (pointer, copy) = (
            Pointer::to(topology).to_string(),
            (topology.version, topology.encode()),
        );
        let copied = self.change(|member| {
            if member.affiliation.id() != Some(&*topology.id) {
                return Copied::NotMember;
            }
            match member.head.see_record(topology.incarnation, &copy) {
                Ok(()) => {
                    member.affiliation.pointer = Some(pointer.clone());
                    Copied::Kept
                }
                Err(_) => Copied::Stale(fence_of(member)),
            }
        });
        Ok(copied.await?.1)
    }

    async fn fence(&self, life: &Life, id: &str, n: Incarnation) -> Result<Fenced, TopologyError> {
        let fenced = self.change_in(life, &[], |member| {
            let record = header_of(member).map(|record| record.id.to_owned());
            let its = member.affiliation.id().map(str::to_owned).or(record);
            if let Some(other) = its.filter(|its| its != id) {
                return Err(Fenced::Theirs(other));
            }
            if member.head.fence >= Some(n) {
                return Err(Fenced::Outrun);
            }
            member.head.fence = Some(n);
            Ok((member.affiliation.record.clone(), member.head.clone()))
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

    async fn restore(&self, next: &Topology) -> Result<bool, TopologyError> {
        let (pointer, text) = (Pointer::to(next).to_string(), write_record(next));
        let restored = self.change_in(&next.home.life, &[], |member| {
            let there = header_of(member).map(|record| record.version.0);
            let is_due = member.head.fence == Some(next.incarnation)
                && there.is_none_or(|there| there < next.incarnation);
            if is_due {
                member.affiliation.pointer = Some(pointer.clone());
                member.affiliation.record = Some(text.clone());
            }
            is_due
        });
        Ok(matches!(restored.await?, InLife::Done(true)))
    }

    async fn read(&self, known: Option<&Topology>) -> Result<(Site, Found), TopologyError> {
        let known = known.map(header);
        let (site, (fence, record)) = self
            .change(|member| (member.head.fence, member.affiliation.record.clone()))
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

    /// Such a server keeps none.
    async fn slot_with_counters(&self, _slots: &[Slot]) -> Result<Option<Slot>, TopologyError> {
        Ok(None)
    }

    async fn announcements(&self) -> Result<Announcements, ShardError> {
        Ok(Announcements::Docs(self.shard.announcements().await?))
    }
}

/// The first line of the record, if there is one.
fn header_of<'a>(member: &'a MemberView<'_>) -> Option<Header<'a>> {
    Header::parse(member.affiliation.record.as_deref()?)
}

/// Raises the fence to `n`; returns it as text if it is higher.
fn raise_fence(member: &mut MemberView<'_>, n: Incarnation) -> Result<(), String> {
    let raised = member.head.raise_fence(n);
    raised.map_err(|_| fence_of(member))
}

fn fence_of(member: &MemberView<'_>) -> String {
    member
        .head
        .fence
        .map_or_else(String::new, |fence| fence.to_string())
}
