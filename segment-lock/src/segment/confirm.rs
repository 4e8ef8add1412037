//! Spends a reservation, or a part of one.

use super::{Answer, Confirm, EffectKind, Final, Refusal, Reply, Segment, State};
use crate::{Amount, Caller, RequestId};

impl Segment {
    /// Spends a reservation that is held, or a part of it, and gives the rest back; otherwise returns its state. For an
    /// unknown one: [`Reply::Unknown`].
    pub fn confirm(&mut self, confirm: &Confirm, now_ms: u64) -> Answer {
        match self.reservation_of_now(&confirm.id, confirm.generation, now_ms)? {
            None => Ok(Reply::Unknown),
            Some(State::Held { amount, .. }) => {
                let spent = confirm.amount.unwrap_or(amount);
                self.give_rest_back(&confirm.id, (spent, amount), confirm.caller, now_ms)?;
                self.held -= spent.get();
                let kind = EffectKind::Confirmed(confirm.id.clone());
                self.log(kind, spent.get(), now_ms);
                Ok(self.end_reservation(&confirm.id, State::Confirmed))
            }
            Some(state) => Ok(self.answer(state)),
        }
    }

    /// The state of a reservation that is to be spent, after its deadline expired; `None` if it is unknown, and may come.
    pub(super) fn reservation_of_now(
        &mut self,
        id: &RequestId,
        generation: u64,
        now_ms: u64,
    ) -> Result<Option<State>, Refusal> {
        if let Some(ended) = self.ended(id)? {
            return Ok(Some(ended));
        }
        self.certain()?;
        self.known(generation, id)?;
        self.expire_if_due(id, now_ms);
        let state = self.reservation(id)?;
        if state.is_none() {
            self.remembered(id)?;
        }
        Ok(state)
    }

    /// The state of a reservation, if it is recorded. An id that was used for a request of another kind is a conflict.
    pub(super) fn reservation(&self, id: &RequestId) -> Result<Option<State>, Refusal> {
        match self.ids.get(id).map(|entry| &entry.state) {
            Some(State::Done | State::Sent { .. } | State::Delivered | State::Returned) => {
                Err(Refusal::Conflict)
            }
            Some(State::Committed(committed)) if committed.capture.is_none() => {
                Err(Refusal::Conflict)
            }
            recorded => Ok(recorded.cloned()),
        }
    }

    /// The end of a reservation, if its end is recorded.
    pub(super) fn ended(&self, id: &RequestId) -> Result<Option<State>, Refusal> {
        Ok(self.reservation(id)?.filter(State::is_final))
    }

    /// Gives back what a reservation has above the amount that is taken of it.
    pub(super) fn give_rest_back(
        &mut self,
        id: &RequestId,
        (taken, reserved): (Amount, Amount),
        caller: Caller,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let (amount, reserved) = (taken.get(), reserved.get());
        if amount > reserved {
            return Err(Refusal::AboveReserved { amount, reserved });
        }
        if amount < reserved {
            self.not_frozen(caller, now_ms)?;
            self.take_back(reserved - amount);
            self.log(EffectKind::Cancelled(id.clone()), reserved - amount, now_ms);
        }
        Ok(())
    }

    /// Moves held money, once.
    pub(super) fn end_reservation(&mut self, id: &RequestId, ended: State) -> Reply {
        if let Some(entry) = self.ids.get_mut(id) {
            if let State::Held { deadline_ms, .. } = entry.state {
                self.due.remove(&(deadline_ms, id.clone()));
            }
            entry.state = ended.clone();
            self.order.push_back(Final::Request(id.clone()));
        }
        self.answer(ended)
    }

    /// Gives a reservation back.
    pub(super) fn return_reservation(
        &mut self,
        id: &RequestId,
        amount: Amount,
        as_: State,
        now_ms: u64,
    ) -> Reply {
        self.take_back(amount.get());
        let kind = match as_ {
            State::Expired => EffectKind::Expired(id.clone()),
            _ => EffectKind::Cancelled(id.clone()),
        };
        self.log(kind, amount.get(), now_ms);
        self.end_reservation(id, as_)
    }
}
