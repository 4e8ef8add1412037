//! An account that is to have no more money.

use super::{Answer, Reply, Segment};

impl Segment {
    /// Closes the segment to new money: deposits and credits are refused from now on. Its money can
    /// still be taken out.
    pub fn close(&mut self) -> Answer {
        self.closed = true;
        Ok(Reply::Done)
    }
}
