//! The shard as a member of a topology: the rules are the topology's.

use std::collections::BTreeSet;

use ringfence_ring::Slot;

use super::{
    DocsShard,
    attempt::Desk,
    store::{Inbox, Name, WATCHERS},
    view::Affiliation,
};
use crate::{
    ids::Life,
    shard::{
        ConnectionId, Mode, ShardError,
        rules::{Head, codec::states_of},
    },
};

/// A connection for requests about the topology.
#[derive(Debug)]
pub(crate) struct DocsMember(Desk);

/// What a shard knows of its topology.
#[derive(Debug)]
pub(crate) struct MemberView<'a> {
    /// Fence, copy, and arming, of this life.
    pub(crate) head: &'a mut Head,
    /// Pointer and record, of every life.
    pub(crate) affiliation: &'a mut Affiliation,
    /// Whether all slots asked for are shut; so they are in a life that is not armed.
    pub(crate) is_shut: bool,
}

impl DocsShard {
    /// A connection for requests about the topology. Ends `former`, if that is one of the same life.
    pub(crate) async fn connect_member(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<DocsMember, ShardError> {
        Ok(DocsMember(self.desk(former).await?))
    }

    /// The connection on which new topology records are announced: `n version`.
    pub(crate) async fn announcements(&self) -> Result<Box<dyn Inbox>, ShardError> {
        self.listen_for(WATCHERS).await
    }

    /// Makes the shard a member of the topology `id`, whose record `home` keeps, unless it belongs to another one: only
    /// the topology that it belongs to may arm it. For programs with a topology store of their own.
    ///
    /// # Errors
    ///
    /// [`ShardError::Refused`]: it belongs to another topology.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it joined or not.
    pub async fn join(&self, id: &str, home: &str) -> Result<(), ShardError> {
        let mut member = self.connect_member(None).await?;
        let there = member.change(&[], |member| {
            let pointer = &mut member.affiliation.pointer;
            pointer.get_or_insert_with(|| format!("{id} {home}"));
            member.affiliation.id().map(str::to_owned)
        });
        match there.await? {
            Some(there) if there == id => Ok(()),
            there => Err(ShardError::Refused {
                what: "a new member",
                reason: format!("it belongs to topology {}", there.unwrap_or_default()),
            }),
        }
    }
}

impl DocsMember {
    /// The life of the server.
    pub(crate) fn life(&self) -> &Life {
        self.0.session.life()
    }

    /// The id by which a later connection ends this one.
    pub(crate) fn id(&self) -> ConnectionId {
        self.0.session.id()
    }

    /// Whether a crash of the server loses nothing that was answered.
    pub(crate) fn is_durable(&self) -> bool {
        self.0.session.is_durable()
    }

    /// Applies a rule in one step. It is told whether all of `slots` are shut.
    pub(crate) async fn change<T>(
        &mut self,
        slots: &[Slot],
        rule: impl Fn(&mut MemberView<'_>) -> T,
    ) -> Result<T, ShardError> {
        let states: BTreeSet<Name> = slots
            .iter()
            .map(|slot| Name::Slots(states_of(*slot)))
            .chain([Name::Topology])
            .collect();
        let changed = self.0.change_view(
            |_| states.clone(),
            |view, _| {
                let is_shut = |slot: &Slot| view.slots.get(*slot).mode == Mode::Shut;
                let is_shut = slots.iter().all(is_shut);
                Ok(rule(&mut MemberView {
                    is_shut: is_shut || view.head.armed.is_none(),
                    head: &mut view.head,
                    affiliation: &mut view.affiliation,
                }))
            },
        );
        changed.await
    }
}
