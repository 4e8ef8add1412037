//! Injects faults into a shard, repeatably.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use super::{losses::Loss, shared::Shared};
use crate::shard::{Lane, rules::millis};

/// Injects faults into a [`MemoryShard`](super::MemoryShard). Cheap to clone.
///
/// The calls made here, the shard's clock and its seeded random numbers determine every fault: a run that is repeated
/// fails in the same way.
#[derive(Clone)]
pub struct Faults(pub(super) Arc<Shared>);

impl Faults {
    /// Loses the reply to the `nth` exchange from now on `lane` (1: the next): it is applied, the
    /// caller gets [`NoReply`](crate::shard::ShardError::NoReply), and its link is dead.
    pub fn lose_reply(&self, lane: Lane, nth: u64) {
        self.0.state().losses.plan(lane, nth, Loss::Reply);
    }

    /// Loses the `nth` exchange from now on `lane` before it is applied; else as
    /// [`lose_reply`](Self::lose_reply).
    pub fn lose_request(&self, lane: Lane, nth: u64) {
        self.0.state().losses.plan(lane, nth, Loss::Request);
    }

    /// Lets every exchange and every attempt to connect wait until [`resume`](Self::resume).
    ///
    /// A request with a sender that stopped waiting is applied after it all the same, unless its connection is ended
    /// first.
    pub fn stall(&self) {
        self.0.stalled.send_replace(true);
        self.0.tell_slow();
    }

    /// Ends a [`stall`](Self::stall).
    pub fn resume(&self) {
        self.0.stalled.send_replace(false);
        self.0.tell_slow();
    }

    /// Delays every request, and every reply, by a random time in `range`. Empty: no delay.
    pub fn latency(&self, range: Range<Duration>) {
        self.0.state().latency = range;
        self.0.tell_slow();
    }

    /// Forgets everything, as a server that was flushed does. The life goes on, without state.
    pub fn forget(&self) {
        self.0.state().memory.forget();
    }

    /// Begins another life, without state. `keep_records` keeps the records, queues and counters, as a server that
    /// saves them does. Links of the former life are answered
    /// [`Unarmed`](crate::shard::ShardError::Unarmed); connections on which clients listen end.
    pub fn restart(&self, keep_records: bool) {
        let (life, now_ms) = (self.0.new_life(), self.0.now_ms());
        let mut state = self.0.state();
        state.memory.restart(life, keep_records, now_ms);
        state.listeners.hang_up();
    }

    /// Whether attempts to connect fail from now on. Open connections stay.
    pub fn unreachable(&self, unreachable: bool) {
        self.0.state().unreachable = unreachable;
    }

    /// Whether messages to clients that listen are dropped from now on.
    pub fn lose_notifications(&self, lose: bool) {
        self.0.state().listeners.lossy = lose;
    }

    /// Ends every connection.
    pub fn hang_up(&self) {
        self.0.state().hang_up();
    }

    /// Whether the shard has no memory for new locks from now on. Held locks stay.
    pub fn out_of_memory(&self, full: bool) {
        self.0.state().memory.full = full;
    }

    /// Sets the counter of the last token made, if the shard is armed.
    pub fn set_counter(&self, counter: u64) {
        if let Ok(armed) = self.0.state().memory.whole.head.armed_mut() {
            armed.tokens.counter = counter;
        }
    }

    /// Sets the shard's clock back by `length`.
    pub fn set_clock_back(&self, length: Duration) {
        self.0.set_back_ms.fetch_add(millis(length), Relaxed);
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Faults")
    }
}
