//! Transfers from one account to another: held at the source, credited at the destination, finished at the source,
//! unpinned at the destination. Any process can continue after any step.

use super::{Changed, Counter, CounterError, patience::Patience};
use crate::{
    Account, Amount, Change, Leg, Manifest, Referenced, RequestId,
    segment::{
        CreditId, Find, FinishTransfer, Forget, GiveCredit, Outcome, Refusal, Reply, Request, State,
    },
};

impl Counter {
    /// Moves `amount` to another account of the same storage and unit, once. Returns the source's balance after it.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] as for [`deduct`](Self::deduct); [`CounterError::TransferRefused`] if the money
    /// is back; [`CounterError::TransferUnfinished`] if the transfer has begun and is not finished: repeat it, or
    /// [`sweep`](Self::sweep), to finish it; [`CounterError::NoDestination`] if the account `to` does not exist, and
    /// [`CounterError::OtherUnit`] if it has another unit: nothing is taken.
    pub async fn transfer(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        to: &Counter,
    ) -> Result<Changed, CounterError> {
        let request = request.into();
        let id = request.id;
        let change = Change::Transfer {
            amount,
            to: to.account.clone(),
        };
        match self.may_send_to(to).await {
            Ok(()) => {}
            // A recorded request takes nothing more, and has an answer.
            Err(CounterError::NoDestination { .. } | CounterError::OtherUnit { .. })
                if self.is_recorded(id).await? => {}
            Err(error) => return Err(error.aside()),
        }
        let changed = self.change(request, &change).await?;
        match changed.outcome {
            State::Sent { .. } => self.deliver(id, amount, to, None).await,
            State::Delivered => {
                self.unpin(&self.credit_id(id), to).await;
                Ok(changed.with(()))
            }
            State::Returned => Err(self.refused_by(to)),
            State::Insufficient => Err(CounterError::Insufficient),
            State::Cancelled => Err(CounterError::Cancelled),
            _ => Err(Refusal::Conflict.into()),
        }
    }

    pub(super) async fn may_send_to(&self, to: &Counter) -> Result<(), CounterError> {
        let destination = match to.manifest().await {
            Err(CounterError::NoAccount { account }) => {
                return Err(CounterError::NoDestination { to: account });
            }
            found => found?,
        };
        let (ours, theirs) = (
            self.manifest().await?.terms().unit,
            destination.terms().unit,
        );
        match ours == theirs {
            true => Ok(()),
            false => Err(CounterError::OtherUnit {
                to: to.account.clone(),
                units: Box::new((ours, theirs)),
            }),
        }
    }

    async fn is_recorded(&self, id: &RequestId) -> Result<bool, CounterError> {
        let find = |manifest: &Manifest| {
            Request::Find(Find {
                id: id.clone(),
                generation: manifest.generation(),
            })
        };
        match self.ask_home(id, find).await? {
            Reply::Recorded(..) => Ok(true),
            Reply::Unknown => Ok(false),
            reply => Err(CounterError::unexpected("find", &reply)),
        }
    }

    /// Finishes a transfer that is sent: from the home of its id, or from another segment that has it. A segment that
    /// lost its last changes, including a layout, may have taken an id whose home is elsewhere.
    pub(super) async fn deliver(
        &self,
        id: &RequestId,
        amount: Amount,
        to: &Counter,
        from: Option<u32>,
    ) -> Result<Changed, CounterError> {
        let unfinished = |because| CounterError::TransferUnfinished {
            because: Box::new(because),
        };
        let (credit, leg) = (
            self.credit_id(id),
            Leg {
                to: to.account.clone(),
                amount,
            },
        );
        let outcome = self.credit(&credit, &leg, to, false).await;
        let refused = match outcome.map_err(unfinished)? {
            Outcome::Credited => Vec::new(),
            Outcome::Refused => vec![leg.to],
        };
        let finished = self.finish_transfer(id, refused, from).await;
        let finished = finished.map_err(unfinished)?;
        match finished.outcome {
            State::Returned => Err(self.refused_by(to)),
            _ => {
                self.unpin(&credit, to).await;
                Ok(finished.with(()))
            }
        }
    }

    /// Has the destination receive its leg, or promise to.
    pub(super) async fn credit(
        &self,
        id: &CreditId,
        leg: &Leg,
        to: &Counter,
        is_promise: bool,
    ) -> Result<Outcome, CounterError> {
        let content = Change::Transfer {
            amount: leg.amount,
            to: leg.to.clone(),
        };
        let (caller, unit) = (self.storage.caller(), self.manifest().await?.terms().unit);
        let credit = |manifest: &Manifest| {
            Request::from(GiveCredit {
                id: id.clone(),
                content: content.digest(),
                amount: leg.amount,
                unit,
                is_promise,
                generation: manifest.generation(),
                caller,
            })
        };
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            match to.ask_home(&id.id, credit).await {
                Ok(Reply::Credited(outcome)) => return Ok(outcome),
                Ok(Reply::Promised) if is_promise => return Ok(Outcome::Credited),
                Ok(reply) => return Err(CounterError::unexpected("credit", &reply)),
                Err(CounterError::NoAccount { .. }) => {
                    let terms = self.manifest().await?.terms();
                    if to.refuses(id.id.time_ms(), terms).await? {
                        return Ok(Outcome::Refused);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the stored manifest differs from the one used here, or is gone. Then it is read again.
    pub(super) async fn is_another(&self) -> Result<bool, CounterError> {
        let stored = match self.certain_manifest().await.map_err(CounterError::aside) {
            Ok(found) => Some(found.manifest.encode_copy()),
            Err(CounterError::NoAccount { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut known = self.manifest.lock();
        let is_another = known.as_ref().map(|known| known.encode_copy()) != stored;
        if is_another {
            *known = None;
        }
        Ok(is_another)
    }

    /// Tells the source which destinations refused. Returns the end of the transfer, or of the capture.
    pub(super) async fn finish_transfer(
        &self,
        id: &RequestId,
        refused: Vec<Account>,
        from: Option<u32>,
    ) -> Result<Changed<State>, CounterError> {
        let caller = self.storage.caller();
        let finish = |manifest: &Manifest| {
            Request::FinishTransfer(FinishTransfer {
                id: id.clone(),
                refused: refused.clone(),
                generation: manifest.generation(),
                caller,
            })
        };
        let answer = match from {
            Some(index) => {
                let manifest = self.manifest().await?;
                self.ask(&manifest, index, finish(&manifest)).await
            }
            None => self.ask_home(id, finish).await,
        };
        match answer {
            Ok(Reply::Recorded(state, money)) if state.is_final() => Ok(self.changed(state, money)),
            Ok(reply) => Err(CounterError::unexpected("finish_transfer", &reply)),
            // It was finished long ago. A credit that exists was not refused.
            Err(CounterError::Refused(Refusal::TooOld { .. })) if refused.is_empty() => {
                Ok(Changed {
                    outcome: State::Delivered,
                    balance: None,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the destination forget a transfer that is finished here, or take its promise back.
    pub(super) async fn unpin(&self, id: &CreditId, to: &Counter) {
        let forget = |manifest: &Manifest| {
            Request::Forget(Forget {
                id: id.clone(),
                generation: manifest.generation(),
            })
        };
        // If this fails, the credit stays pinned until the destination is swept.
        let _ = to.ask_home(&id.id, forget).await;
    }

    pub(super) fn credit_id(&self, id: &RequestId) -> CreditId {
        CreditId {
            id: id.clone(),
            from: self.account.clone(),
            reservation: None,
        }
    }

    pub(super) fn refused_by(&self, to: &Counter) -> CounterError {
        CounterError::TransferRefused {
            to: to.account.clone(),
        }
    }
}
