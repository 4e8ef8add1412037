//! The rules of a shard, over plain data.
//!
//! ```text
//! head   fence, copy of the topology, arming: tokens, grace  ┐
//! slots  state of each slot; imports of arriving slots       ├─ rule(&mut documents, request, now_ms)
//! lock   record and queue of one key                         ┘    └─▶ answer, changed documents, notifications to send
//! ```
//!
//! A rule does no I/O. It has no mutex, no clock and no map of locks. A backend finds the documents, calls the rule, keeps
//! the changed documents, and sends the notifications. The memory shard has the documents in a map behind one mutex. A
//! store of documents loads them, and commits the difference on condition that the stored ones are still the same. So does
//! Redis for all but locks, whose rules it has in Lua.
//!
//! | rule | request | documents |
//! |---|---|---|
//! | [`Batch::apply`] | operations on locks | head; states and imports of the slots; locks |
//! | [`arm`], [`mark_quiet`], [`declare`], [`raise`], [`step`], [`force_open`] | a change of the shard, or of slots | head, slots |
//! | [`take_list`], [`admit`] | what a former shard holds; that all counters have arrived | head, slots |
//! | [`scan`], [`still_held`] | which keys are held in slots that leave | head, slots, locks |
//! | [`LockState::inspect`], [`LockState::listed`] | holders and waiters | head, lock |

mod arm;
pub(super) mod codec;
mod decommission;
mod end;
mod head;
mod import;
mod inspect;
mod lock;
mod lock_state;
mod migration;
mod queue;
mod shares;
mod sightings;
mod slots;
mod tokens;

use std::time::Duration;

pub(crate) use self::{
    arm::{arm, declare, mark_quiet, raise},
    decommission::force_open,
    end::End,
    head::{Armed, Head},
    import::Import,
    lock::{Batch, Locks},
    lock_state::LockState,
    migration::{admit, scan, step, still_held, take_list},
    queue::{Stays, ToRead},
    sightings::Sightings,
    slots::Slots,
    tokens::Tokens,
};

/// Whole milliseconds of `length`, as a server counts them.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
