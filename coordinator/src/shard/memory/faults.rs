//! What makes a shard fail, on purpose and repeatably.

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use super::shared::Shared;
use crate::shard::Lane;

/// Half of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing is applied.
    Request,
    /// It is applied, and nobody is told.
    Reply,
}

/// Losses to come.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<(Lane, u64, Loss)>);

impl Losses {
    fn plan(&mut self, lane: Lane, nth: u64, loss: Loss) {
        self.0.push((lane, nth.max(1), loss));
    }

    /// Counts an exchange on `lane`, and says what of it is lost.
    pub(super) fn next(&mut self, lane: Lane) -> Option<Loss> {
        let of_lane = self.0.iter_mut().filter(|(its_lane, ..)| *its_lane == lane);
        of_lane.for_each(|(_, left, _)| *left -= 1);
        let due = self.0.iter().position(|(_, left, _)| *left == 0)?;
        let (_, _, loss) = self.0[due];
        self.0.retain(|(_, left, _)| *left > 0);
        Some(loss)
    }
}

/// A hand on a [`MemoryShard`](super::MemoryShard)'s faults. Cheap to clone.
///
/// Everything follows from the calls made here, the shard's clock and its seeded random numbers:
/// the same run fails in the same way.
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
    /// A request that its sender stopped waiting for is applied after it all the same, unless its
    /// connection is ended first.
    pub fn stall(&self) {
        self.0.stalled.send_replace(true);
        self.0.tell_slow();
    }

    /// Ends a [`stall`](Self::stall).
    pub fn resume(&self) {
        self.0.stalled.send_replace(false);
        self.0.tell_slow();
    }

    /// Makes each way, there and back, take a random time in `range`. Empty: none.
    pub fn latency(&self, range: Range<Duration>) {
        self.0.state().latency = range;
        self.0.tell_slow();
    }

    /// Forgets everything: as a server that was flushed. The life goes on, without state.
    pub fn forget(&self) {
        self.0.state().memory.forget();
    }

    /// Begins another life, without state; with the records, queues and counters of the former one if
    /// `keep_records`, as a server that saves them. Links of the former life are answered
    /// [`Unarmed`](crate::shard::ShardError::Unarmed); those on which clients listen end.
    pub fn restart(&self, keep_records: bool) {
        let (life, now_ms) = (self.0.new_life(), self.0.now_ms());
        let mut state = self.0.state();
        state.memory.restart(life, keep_records, now_ms);
        state.listeners.hang_up();
    }

    /// Whether attempts to connect fail from now on. Existing connections stay.
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
        if let Some(armed) = self.0.state().memory.armed_mut() {
            armed.counter = counter;
        }
    }

    /// Sets the shard's clock back by `length`, as far as its timers show, if it is armed.
    pub fn set_timers_back(&self, length: Duration) {
        if let Some(armed) = self.0.state().memory.armed_mut() {
            let length_ms = length.as_millis() as u64;
            armed.grace_until_ms += length_ms;
            armed.shut_until_ms += length_ms;
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Faults")
    }
}
