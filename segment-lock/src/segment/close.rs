//! Closes a segment to new money.

use super::{Answer, Reply, Segment};

impl Segment {
    /// Closes the segment: it refuses deposits and credits from now on. Its money can still be taken out.
    pub fn close(&mut self) -> Answer {
        self.closed = true;
        Ok(Reply::Done)
    }
}
