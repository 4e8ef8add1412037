//! Lets a credit be forgotten in time, after the transfer is finished at its source; or takes a promise back.

use super::{Answer, CreditState, Final, Forget, Reply, Segment};

impl Segment {
    /// Unpins a credit, or refuses the money of a promise from now on. Only once the source is finished, or will never
    /// decide to pay.
    pub fn forget(&mut self, forget: &Forget) -> Answer {
        self.certain()?;
        self.known(forget.generation, &forget.id.id)?;
        if self.pinned.remove(&forget.id)
            && let Some(credit) = self.credits.get_mut(&forget.id)
        {
            credit.state = match credit.state {
                CreditState::Promised { amount, .. } => {
                    self.promised -= amount.get();
                    CreditState::Refused
                }
                _ => CreditState::Forgettable,
            };
            self.order.push_back(Final::Credit(forget.id.clone()));
        }
        Ok(Reply::Done)
    }
}
