//! An account that is to have no more money.

use super::{Answer, Reply, Segment};

impl Segment {
    /// Lets no new money in: deposits and credits are refused from now on. What is here can still
    /// be taken out.
    pub fn close(&mut self) -> Answer {
        self.closed = true;
        Ok(Reply::Done)
    }
}
