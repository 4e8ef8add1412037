//! Exchanges that are to be lost.

use crate::shard::Lane;

/// The half of an exchange that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The shard does not apply the request.
    Request,
    /// The shard applies the request; its sender gets no reply.
    Reply,
}

/// Losses to come.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<(Lane, u64, Loss)>);

impl Losses {
    /// Loses a half of the `nth` exchange from now on `lane`.
    pub(super) fn plan(&mut self, lane: Lane, nth: u64, loss: Loss) {
        self.0.push((lane, nth.max(1), loss));
    }

    /// Counts an exchange on `lane`, and tells which half of it is lost.
    pub(super) fn next(&mut self, lane: Lane) -> Option<Loss> {
        let of_lane = self.0.iter_mut().filter(|(its_lane, ..)| *its_lane == lane);
        of_lane.for_each(|(_, left, _)| *left -= 1);
        let due = self.0.iter().position(|(_, left, _)| *left == 0)?;
        let (_, _, loss) = self.0[due];
        self.0.retain(|(_, left, _)| *left > 0);
        Some(loss)
    }
}
