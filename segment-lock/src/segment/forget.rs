//! Lets a credit be forgotten in time, after the transfer is finished at its source.

use super::{Answer, CreditState, Final, Forget, Reply, Segment};

impl Segment {
    /// Unpins a credit. Only for a source that is finished.
    pub fn forget(&mut self, forget: &Forget) -> Answer {
        self.certain()?;
        self.known(forget.generation, &forget.id.id)?;
        if self.pinned.remove(&forget.id)
            && let Some(credit) = self.credits.get_mut(&forget.id)
        {
            credit.state = CreditState::Forgettable;
            self.order.push_back(Final::Credit(forget.id.clone()));
        }
        Ok(Reply::Done)
    }
}
