//! Looks up a request.

use super::{Answer, Find, Reply, Segment};

impl Segment {
    /// The decision, and its present state; [`Reply::Unknown`] if there is none yet.
    pub fn find(&self, find: &Find) -> Answer {
        if let Some(entry) = self.recorded(&find.id)? {
            return Ok(self.answer(entry.state.clone()));
        }
        self.certain()?;
        self.known(find.generation, &find.id)?;
        self.remembered(&find.id)?;
        Ok(Reply::Unknown)
    }
}
