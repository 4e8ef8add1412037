//! What a life of a shard is armed with, and what is changed of it later.

use std::time::Duration;

use ringfence_ring::Slot;

use crate::{
    ids::{Epoch, Incarnation, MapVersion},
    shard::SlotStates,
};

/// How long a newly armed life makes no new grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The whole length: a lease of an earlier life may still run.
    Full(Duration),
    /// The length, less the time the shard has been up; the whole of it if the shard was emptied
    /// or followed another meanwhile. For servers that never saw this topology.
    LessUptime(Duration),
    /// None: the server was declared new.
    None,
}

/// The counters that were ever made in the slots of a shard that is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// None: the slots are new, or the shard has none yet.
    Never,
    /// Those that it kept, as far as its life has them.
    Kept,
    /// Also others: a dead shard had some of the slots.
    Lost,
}

/// Content of a life, from a topology read at or after the change that allotted its epoch.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The topology's id: a shard that others can reach has a pointer, and it must name this.
    pub topology: String,
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// The arming's own epoch, never used for another.
    pub epoch: Epoch,
    /// Epoch of the tokens to come.
    pub token_epoch: Epoch,
    /// When a namespace was last declared, as in a [`Request`](super::Request).
    pub declared: MapVersion,
    /// Every slot's state.
    pub slots: SlotStates,
    /// How long to grant nothing.
    pub grace: Grace,
    /// What the slots have had.
    pub counters: Counters,
    /// The record's version, and the record itself: the shard keeps the newest it has seen.
    pub copy: (u64, String),
}

/// What an arming found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmAnswer {
    /// Whether this call armed it. If not, it is armed with this epoch or a later one, or has seen a later record
    /// and stays as it is.
    pub armed_now: bool,
    /// How long the shard goes on granting nothing.
    pub grace_left: Duration,
}

/// Asks for the state that a life has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskArmed;

/// The state that a life has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The epoch that it was armed with last.
    pub epoch: Epoch,
    /// How long the shard goes on granting nothing.
    pub grace_left: Duration,
}

/// Tokens of a later epoch are to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raise {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// The epoch.
    pub epoch: Epoch,
}

/// A namespace is being declared: acquires by an older view are refused from now on.
#[derive(Clone, Debug)]
pub struct Declare {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// As in [`Arm`].
    pub copy: (u64, String),
    /// The version of the record.
    pub declared: MapVersion,
}

/// A map version, and its slots of the shard, without the migrating ones.
#[derive(Clone, Debug)]
pub struct MarkQuiet {
    /// The record's incarnation. Below the shard's fence: [`Stale`](super::ShardError::Stale).
    pub incarnation: Incarnation,
    /// As in [`Arm`].
    pub copy: (u64, String),
    /// The version.
    pub map: MapVersion,
    /// The slots.
    pub slots: Vec<Slot>,
}
