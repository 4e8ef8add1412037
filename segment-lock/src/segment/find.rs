//! What became of a request.

use super::{Answer, Find, Reply, Segment};

impl Segment {
    /// What was decided, and what became of it; [`Reply::Unknown`] if nothing was decided yet.
    pub fn find(&self, find: &Find) -> Answer {
        if let Some(entry) = self.recorded(&find.id)? {
            return Ok(Reply::Recorded(entry.state.clone()));
        }
        self.certain()?;
        self.known(find.generation, &find.id)?;
        self.remembered(&find.id)?;
        Ok(Reply::Unknown)
    }
}
