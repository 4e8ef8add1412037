//! The contract between the engine and the backends that keep locks and counters.
//!
//! A [`Shard`] accepts connections. A [`Link`] is one connection in one life of the shard, and its kind decides on the
//! operations: [`LockLink`], [`CounterLink`], [`ControlLink`].

mod arm;
mod carry;
mod control;
mod counters;
mod decommission;
mod error;
mod inspect;
mod link;
pub(crate) mod member;
mod migration;
mod mode;
mod notification;
mod op;
pub(crate) mod rules;
mod server;
mod slots;
mod tls;
pub(crate) mod whole;

pub mod docs;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod redis;
pub mod stored;

pub use arm::{Arm, ArmAnswer, Armed, AskArmed, Counters, Declare, Grace, MarkQuiet, Raise};
pub use carry::{
    Admit, Arrival, Arrive, AskGroups, Block, CopyIn, CopyOf, CopyOut, DropGroups, Dropped,
    Excerpt, Group, Groups, Piece, PutAside, Row, Stamp, When,
};
pub use control::{Control, ControlReply, ControlRequest};
pub use counters::{CounterAnswers, CounterOp, CounterReply, CounterRequest};
pub use decommission::{ForceOpen, ForcedOpen};
pub use error::ShardError;
pub use inspect::{Cursor, HeldLock, Holder, Inspect, Inspection, List, LockPage, QueuedWaiter};
pub use link::{ConnectionId, ControlLink, CounterLink, Lane, Link, LockLane, LockLink, Shard};
pub use migration::{HeldStill, Listing, Scan, ScanPage, Step, Stepped, StillHeld};
pub use mode::{LockKind, LockMode};
pub use notification::{Notification, QueuedGrant, Subscription};
pub use op::{Answers, Op, Proof, Release, Reply, Request, ShardTime, Ticket};
pub use ringfence_segment_lock::Effect;
pub(crate) use server::keeps_counters;
pub use server::{ServerAddress, ServerAddressError, ServerOptions};
pub use slots::{Mode, SlotState, SlotStates};

use crate::ids::{Epoch, Token};

/// The parts of a record, as written by a grant: `nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms`.
///
/// The caller sends the first four parts, and the lease. The shard puts the rest between them, which is the same for a
/// whole batch. The first token has the epoch `te` and the counter `base + offset`. `flags` is `1` if the grant told its holder that
/// another client waits, else `0`. `since_ms` is when the lock was granted, by the server's clock; 0 until the first renewal
/// of a grant that did not wait: it was granted a whole lease before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) nonce: crate::ids::Nonce,
    pub(crate) label: crate::name::Label,
    pub(crate) token: Token,
    pub(crate) tokens: u32,
    pub(crate) arm: Epoch,
    /// Whether the grant told its holder that another client waits.
    pub(crate) told: bool,
}

impl Record {
    /// Reads a record's text; `None` if it is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let nonce = parts.next()?.parse().ok()?;
        let label = crate::name::Label::new(parts.next()?);
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (offset, tokens) = (number()?, number()?);
        let (te, base, arm) = (number()?, number()?, number()?);
        Some(Self {
            nonce,
            label,
            token: Token::new(Epoch(te), base + offset),
            tokens: tokens as u32,
            arm: Epoch(arm),
            told: number()? == 1,
        })
    }
}
