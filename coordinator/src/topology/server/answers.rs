//! The answers of servers, in the terms of the protocol.

use std::sync::Arc;

use super::stored::Pointer;
use crate::{
    ids::{Epoch, Incarnation, Life},
    topology::Topology,
};

/// A server, as a handshake found it.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) life: Life,
    /// A warning for a home that may come back without the latest record.
    pub(super) forgets: Option<String>,
}

/// Everything that a server knows about a topology.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) server: Site,
    pub(super) pointer: Option<Pointer>,
    pub(super) record: Option<Topology>,
    pub(super) fence: Option<Incarnation>,
    pub(super) copy: Option<Topology>,
    pub(super) armed: bool,
    /// The greatest epoch given to this life.
    pub(super) epoch: Epoch,
}

/// The result of [`Member::claim`](super::member::Member::claim).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Claimed,
    /// A pointer or a record is there, or a fence above that of the claim.
    Taken,
}

/// The result of [`Member::join`](super::member::Member::join).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Join {
    Joined,
    /// It belongs to another topology.
    Theirs,
    /// It is in another life.
    OtherLife,
}

/// The result of [`Member::leave`](super::member::Member::leave).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Left,
    NotThere,
    /// The topology was in use here.
    InUse,
}

/// The result of [`Member::retire`](super::member::Member::retire).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retired {
    Done,
    NotThere,
    /// The record is there, or a slot is not shut.
    InUse,
    /// Its fence is above the record.
    Stale(String),
    /// It is in another life.
    OtherLife,
}

/// The result of [`Member::swap`](super::member::Member::swap).
#[derive(Debug)]
pub(super) enum Swapped {
    Done,
    Newer(Arc<Topology>),
    Unusable(String),
}

/// The result of [`Member::copy`](super::member::Member::copy).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Kept,
    /// The member's fence is above the record.
    Stale(String),
    /// It has no pointer to this topology.
    NotMember,
}

/// The result of [`Member::fence`](super::member::Member::fence).
#[derive(Debug)]
pub(super) enum Fenced {
    /// No request of an earlier incarnation takes effect there any more.
    Raised(Box<Fence>),
    /// It is in another life, or its fence is not below.
    Outrun,
    /// It is a member of that topology.
    Theirs(String),
}

/// A member's knowledge, in the step that raised its fence.
#[derive(Debug)]
pub(super) struct Fence {
    pub(super) life: Life,
    pub(super) record: Option<Topology>,
    pub(super) copy: Option<Topology>,
    /// The epoch with which it is armed.
    pub(super) armed: Option<Epoch>,
    /// The greatest epoch given to this life.
    pub(super) epoch: Epoch,
}

impl Fence {
    pub(super) fn records(&self) -> impl Iterator<Item = &Topology> {
        self.record.iter().chain(&self.copy)
    }
}

/// The result of [`Member::read`](super::member::Member::read).
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// The record known already, or another.
    Record {
        fence: Option<Incarnation>,
        record: Option<Arc<Topology>>,
    },
}
