//! Money for several accounts, all or nothing: each destination promises to receive its leg, then the source decides, then
//! the legs are paid. That is two-phase commit (Gray, "Notes on Data Base Operating Systems", 1978), with the decision in
//! the source's segment. Any process can continue after any step.

use futures_util::future::join_all;

use super::{Changed, Counter, CounterError, Ended, Found, reserve::ended};
use crate::{
    Change, Leg, Legs, Manifest, Referenced, RequestId,
    segment::{Capture, Committed, CreditId, Outcome, Refusal, Reply, Request, State},
};

/// The id by which the destinations know their legs, and those.
struct Offer<'a> {
    id: CreditId,
    /// Each with its destination.
    legs: Vec<(&'a Leg, Counter)>,
}

impl Counter {
    /// Moves money to several accounts of the same storage and unit, all or nothing, once. Returns the source's balance
    /// after it.
    ///
    /// # Errors
    ///
    /// As for [`transfer`](Self::transfer), and [`LegsError`](crate::LegsError). [`CounterError::TransferRefused`] names an
    /// account that refused, and nothing has moved. Only if an account lost its last changes after it had promised to
    /// receive its leg, that may come back, and the others arrive: the [history](Self::history) has each leg.
    pub async fn transfer_legs(
        &self,
        request: impl Into<Referenced<'_>>,
        legs: &Legs,
    ) -> Result<Changed, CounterError> {
        let request = request.into();
        let id = request.id;
        let offer = self.offer(id, None, legs)?;
        if let Err(error) = self.promised_by_all(&offer).await {
            match self.find(id).await? {
                // A recorded request needs no promise, and has an answer.
                Found::Decided(_) => {}
                Found::NeverSeen => return Err(self.give_up(&offer, error).await),
                Found::Forgotten { mark_ms } => return Err(Refusal::TooOld { mark_ms }.into()),
            }
        }
        let change = Change::TransferLegs { legs: legs.clone() };
        let changed = self.change(request, &change).await?;
        match &changed.outcome {
            State::Committed(_) => self.pay_offer(id, &offer, None).await,
            State::Delivered => {
                self.unpin_all(&offer).await;
                Ok(changed.with(()))
            }
            State::Returned => Err(self.refused_by(&offer.legs[0].1)),
            State::Insufficient => Err(self.give_up(&offer, CounterError::Insufficient).await),
            State::Cancelled => Err(self.give_up(&offer, CounterError::Cancelled).await),
            _ => Err(Refusal::Conflict.into()),
        }
    }

    /// Pays accounts of the same storage and unit from the money reserved under `id`, all or nothing, once; the rest comes
    /// back. Returns how the reservation ended.
    ///
    /// The accounts know their legs by the id `capture`. If one of them refuses, the reservation is still held: another
    /// capture has another id.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm) and [`transfer_legs`](Self::transfer_legs).
    pub async fn capture(
        &self,
        id: &RequestId,
        capture: &RequestId,
        legs: &Legs,
    ) -> Result<Changed<Ended>, CounterError> {
        let offer = self.offer(capture, Some(id), legs)?;
        if let Err(error) = self.promised_by_all(&offer).await {
            match self.find(id).await? {
                Found::Decided(State::Held { .. }) => {
                    return Err(self.give_up(&offer, error).await);
                }
                Found::Decided(_) => {}
                Found::NeverSeen => return Err(CounterError::UnknownReservation),
                Found::Forgotten { mark_ms } => return Err(Refusal::TooOld { mark_ms }.into()),
            }
        }
        let caller = self.storage.caller();
        let request = |manifest: &Manifest| {
            Request::from(Capture {
                id: id.clone(),
                capture: capture.clone(),
                legs: legs.clone(),
                generation: manifest.generation(),
                caller,
            })
        };
        match self.ask_home(id, request).await {
            Ok(Reply::Recorded(State::Committed(committed), _)) => {
                let paid = match committed.capture.as_ref() == Some(capture) {
                    true => self.pay_offer(id, &offer, None).await?,
                    false => {
                        self.unpin_all(&offer).await;
                        self.pay(id, &committed, None).await?
                    }
                };
                Ok(paid.with(Ended::Confirmed))
            }
            Ok(Reply::Recorded(state, money)) => {
                self.unpin_all(&offer).await;
                Ok(self.changed(ended(state)?, money))
            }
            Ok(Reply::Unknown) => Err(CounterError::UnknownReservation),
            Ok(reply) => Err(CounterError::unexpected("capture", &reply)),
            Err(error @ CounterError::Refused(Refusal::AboveReserved { .. })) => {
                Err(self.give_up(&offer, error).await)
            }
            Err(error) => Err(error),
        }
    }

    fn offer<'a>(
        &self,
        id: &RequestId,
        reservation: Option<&RequestId>,
        legs: &'a Legs,
    ) -> Result<Offer<'a>, CounterError> {
        legs.paid_by(&self.account)?;
        let legs = legs.iter();
        let legs = legs.map(|leg| (leg, Self::open(self.storage.clone(), leg.to.clone())));
        Ok(Offer {
            id: CreditId {
                reservation: reservation.cloned(),
                ..self.credit_id(id)
            },
            legs: legs.collect(),
        })
    }

    /// Has every destination promise to receive its leg. The refusal of one is final, so nobody can decide to pay then.
    async fn promised_by_all(&self, offer: &Offer<'_>) -> Result<(), CounterError> {
        let destinations = offer.legs.iter().map(|(_, to)| self.may_send_to(to));
        let destinations = join_all(destinations).await.into_iter();
        destinations.collect::<Result<(), _>>()?;
        let promises = offer.legs.iter().map(async |(leg, to)| {
            match self.credit(&offer.id, leg, to, true).await? {
                Outcome::Credited => Ok(()),
                Outcome::Refused => Err(self.refused_by(to)),
            }
        });
        join_all(promises).await.into_iter().collect()
    }

    /// Pays what was decided, by this caller or another one.
    pub(super) async fn pay(
        &self,
        id: &RequestId,
        committed: &Committed,
        from: Option<u32>,
    ) -> Result<Changed, CounterError> {
        let Committed { legs, capture } = committed;
        let offer = match capture {
            Some(capture) => self.offer(capture, Some(id), legs)?,
            None => self.offer(id, None, legs)?,
        };
        self.pay_offer(id, &offer, from).await
    }

    /// Each leg once, and then the source knows which did not arrive, if any.
    async fn pay_offer(
        &self,
        id: &RequestId,
        offer: &Offer<'_>,
        from: Option<u32>,
    ) -> Result<Changed, CounterError> {
        let unfinished = |because| CounterError::TransferUnfinished {
            because: Box::new(because),
        };
        let paid = offer.legs.iter();
        let paid = paid.map(|(leg, to)| self.credit(&offer.id, leg, to, false));
        let mut refused = Vec::new();
        for ((_, to), outcome) in offer.legs.iter().zip(join_all(paid).await) {
            if outcome.map_err(unfinished)? == Outcome::Refused {
                refused.push(to);
            }
        }
        let names = refused.iter().map(|to| to.account.clone()).collect();
        let finished = self.finish_transfer(id, names, from).await;
        let finished = finished.map_err(unfinished)?;
        self.unpin_all(offer).await;
        // As a repeat is answered.
        match refused.len() < offer.legs.len() {
            true => Ok(finished.with(())),
            false => Err(self.refused_by(refused[0])),
        }
    }

    /// Takes the promises back, if by this error nobody can have all of them, or the source will never decide to pay.
    async fn give_up(&self, offer: &Offer<'_>, error: CounterError) -> CounterError {
        let is_final = matches!(
            error,
            CounterError::TransferRefused { .. }
                | CounterError::NoDestination { .. }
                | CounterError::OtherUnit { .. }
                | CounterError::Insufficient
                | CounterError::Cancelled
                | CounterError::Refused(Refusal::AboveReserved { .. })
        );
        if is_final {
            self.unpin_all(offer).await;
        }
        error.aside()
    }

    async fn unpin_all(&self, offer: &Offer<'_>) {
        let unpinned = offer.legs.iter().map(|(_, to)| self.unpin(&offer.id, to));
        join_all(unpinned).await;
    }
}
