//! Reservations: money set aside, then spent or given back.

use super::{Changed, Counter, CounterError};
use crate::{
    Amount, Change, Manifest, Referenced, RequestId,
    segment::{Cancel, Confirm, Refusal, Reply, Request, State},
};

/// The end of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was spent.
    Confirmed,
    /// It was given back.
    Cancelled,
    /// It came back at its deadline.
    Expired,
}

/// The state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The money is set aside.
    Held,
    /// The reservation has ended; or it was cancelled before it arrived.
    Ended(Ended),
}

impl Counter {
    /// Sets `amount` aside, once, until it is confirmed or cancelled. At `deadline_ms` (since 1970, by the segment's
    /// clock) it comes back by itself. A repeat must have the same deadline.
    ///
    /// # Errors
    ///
    /// As for [`deduct`](Self::deduct); and [`Refusal::DeadlineTooLate`] if the deadline is more than `idempotency_for`
    /// after the time of the id.
    pub async fn reserve(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        deadline_ms: u64,
    ) -> Result<Changed<Reserved>, CounterError> {
        let change = Change::Reserve {
            amount,
            deadline_ms,
        };
        let request = request.into();
        let changed = self.change(request, &change).await?;
        let outcome = match &changed.outcome {
            State::Held { .. } => Reserved::Held,
            State::Committed(committed) => {
                let paid = self.pay(request.id, committed, None).await?;
                return Ok(paid.with(Reserved::Ended(Ended::Confirmed)));
            }
            state => Reserved::Ended(ended(state.clone())?),
        };
        Ok(changed.with(outcome))
    }

    /// Spends the money reserved under `id`. Returns how the reservation ended.
    ///
    /// # Errors
    ///
    /// [`CounterError::UnknownReservation`] if there is none; [`CounterError::Insufficient`] if the account had too
    /// little for it.
    pub async fn confirm(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        self.spend(id, None).await
    }

    /// Spends `amount` of the money reserved under `id`; the rest comes back. Returns how the reservation ended: a repeat
    /// returns its first end, whatever the amount.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm); [`Refusal::AboveReserved`] if less is reserved.
    pub async fn confirm_part(
        &self,
        id: &RequestId,
        amount: Amount,
    ) -> Result<Changed<Ended>, CounterError> {
        self.spend(id, Some(amount)).await
    }

    async fn spend(
        &self,
        id: &RequestId,
        amount: Option<Amount>,
    ) -> Result<Changed<Ended>, CounterError> {
        let caller = self.storage.caller();
        let confirm = |manifest: &Manifest| {
            Request::Confirm(Confirm {
                id: id.clone(),
                amount,
                generation: manifest.generation(),
                caller,
            })
        };
        self.end(id, confirm).await
    }

    /// Gives back the money reserved under `id`. Returns how the reservation ended. A reservation of that id that
    /// arrives later reserves nothing.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] if the account had too little for it.
    pub async fn cancel(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        let caller = self.storage.caller();
        let cancel = |manifest: &Manifest| {
            Request::Cancel(Cancel {
                id: id.clone(),
                generation: manifest.generation(),
                caller,
            })
        };
        self.end(id, cancel).await
    }

    async fn end(
        &self,
        id: &RequestId,
        request: impl Fn(&Manifest) -> Request,
    ) -> Result<Changed<Ended>, CounterError> {
        match self.ask_home(id, request).await? {
            Reply::Recorded(State::Committed(committed), _) => {
                let paid = self.pay(id, &committed, None).await?;
                Ok(paid.with(Ended::Confirmed))
            }
            Reply::Recorded(state, money) => Ok(self.changed(ended(state)?, money)),
            Reply::Unknown => Err(CounterError::UnknownReservation),
            reply => Err(CounterError::unexpected("confirm or cancel", &reply)),
        }
    }
}

pub(super) fn ended(state: State) -> Result<Ended, CounterError> {
    match state {
        State::Confirmed => Ok(Ended::Confirmed),
        State::Cancelled => Ok(Ended::Cancelled),
        State::Expired => Ok(Ended::Expired),
        State::Insufficient => Err(CounterError::Insufficient),
        _ => Err(Refusal::Conflict.into()),
    }
}
