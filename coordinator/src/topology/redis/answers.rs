//! What a server answers, in the words of the protocol.

use std::sync::Arc;

use super::stored::Pointer;
use crate::{
    ids::{Epoch, Incarnation, Life},
    shard::redis::Server,
    topology::Topology,
};

/// Everything a server knows of a topology.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) server: Server,
    pub(super) pointer: Option<Pointer>,
    pub(super) record: Option<Topology>,
    pub(super) fence: Option<Incarnation>,
    pub(super) copy: Option<Topology>,
    pub(super) armed: bool,
    /// The greatest that this life was given.
    pub(super) epoch: Epoch,
}

/// What came of [`Member::claim`](super::member::Member::claim).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Claimed,
    /// A pointer or a record is there, or a fence above the one claimed with.
    Taken,
}

/// What came of [`Member::join`](super::member::Member::join).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Join {
    Joined,
    /// It belongs to another topology.
    Theirs,
    /// It is in another life.
    OtherLife,
}

/// What came of [`Member::leave`](super::member::Member::leave).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Left,
    NotThere,
    /// The topology was in use here.
    InUse,
}

/// What came of [`Member::retire`](super::member::Member::retire).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retired {
    Done,
    NotThere,
    /// The record is there, or a slot that is not shut.
    InUse,
    /// Its fence is above the record.
    Stale(String),
    /// It is in another life.
    OtherLife,
}

/// What came of [`Member::swap`](super::member::Member::swap).
#[derive(Debug)]
pub(super) enum Swapped {
    Done,
    Newer(Arc<Topology>),
    Unusable(String),
}

/// What came of [`Member::copy`](super::member::Member::copy).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Kept,
    /// The member's fence is above the record.
    Stale(String),
    /// It has no pointer to this topology.
    NotMember,
}

/// What came of [`Member::fence`](super::member::Member::fence).
#[derive(Debug)]
pub(super) enum Fenced {
    /// Nothing of an earlier incarnation takes effect there any more.
    Raised(Box<Fence>),
    /// It is in another life, or its fence is not below.
    Outrun,
    /// It is a member of that topology.
    Theirs(String),
}

/// What a member knew in the step that raised its fence.
#[derive(Debug)]
pub(super) struct Fence {
    pub(super) life: Life,
    pub(super) record: Option<Topology>,
    pub(super) copy: Option<Topology>,
    /// What it is armed with.
    pub(super) armed: Option<Epoch>,
    /// The greatest that this life was given.
    pub(super) epoch: Epoch,
}

impl Fence {
    pub(super) fn records(&self) -> impl Iterator<Item = &Topology> {
        self.record.iter().chain(&self.copy)
    }
}

/// What came of [`Member::read`](super::member::Member::read).
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// The record known already, or another.
    Record {
        fence: Option<Incarnation>,
        record: Option<Arc<Topology>>,
    },
}
