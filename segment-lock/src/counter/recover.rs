//! Finishes the transfers that other callers left unfinished.

use super::{Counter, CounterError, Found, Swept};
use crate::{
    Manifest, RequestId,
    limits::{CLOCKS_APART_MS_MAX, PAGE_LEN_MAX},
    segment::{Committed, CreditId, Pinned, PinnedCredit, Refusal, Reply, Request, Sent, State},
};

impl Counter {
    /// Finishes the transfers and captures of segment `index`.
    pub(super) async fn recover_sent(
        &self,
        manifest: &Manifest,
        index: u32,
        swept: &mut Swept,
    ) -> Result<(), CounterError> {
        let mut after = None;
        loop {
            let page = match self
                .ask(manifest, index, Request::Sent(Sent { after }))
                .await?
            {
                Reply::Sent(page) => page,
                reply => return Err(CounterError::unexpected("sent", &reply)),
            };
            for (id, state) in &page {
                self.recover(index, id, state, swept).await;
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE_LEN_MAX => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    async fn recover(&self, index: u32, id: &RequestId, state: &State, swept: &mut Swept) {
        let recovered = match state {
            State::Sent { amount, to } => {
                let to = Self::open(self.storage.clone(), to.clone());
                self.deliver(id, *amount, &to, Some(index)).await
            }
            State::Committed(committed) => self.pay(id, committed, Some(index)).await,
            state => Err(CounterError::unexpected("sent", state)),
        };
        match recovered {
            Ok(_) => swept.delivered += 1,
            Err(CounterError::TransferRefused { .. }) => swept.returned += 1,
            Err(error) => swept.errors.push(error),
        }
    }

    /// Unpins the credits of finished transfers in segment `index`, takes promises back on which nobody decided, and finishes
    /// the others.
    pub(super) async fn recover_pinned(
        &self,
        manifest: &Manifest,
        index: u32,
        swept: &mut Swept,
    ) -> Result<(), CounterError> {
        let mut after = None;
        loop {
            let page = match self
                .ask(manifest, index, Request::Pinned(Pinned { after }))
                .await?
            {
                Reply::Pinned(page) => page,
                reply => return Err(CounterError::unexpected("pinned", &reply)),
            };
            for credit in &page {
                if let Err(error) = self.recover_credit(credit, swept).await {
                    swept.errors.push(error);
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE_LEN_MAX => after = Some(last.id.clone()),
                _ => return Ok(()),
            }
        }
    }

    async fn recover_credit(
        &self,
        pinned: &PinnedCredit,
        swept: &mut Swept,
    ) -> Result<(), CounterError> {
        let credit = &pinned.id;
        let source = Self::open(self.storage.clone(), credit.from.clone());
        let id = credit.at_source();
        let found = match source.find(id).await {
            // All its transfers were finished, and none can be repeated.
            Err(CounterError::NoAccount { .. }) if source.was_deleted(id.time_ms()).await? => {
                Found::Decided(State::Delivered)
            }
            found => found?,
        };
        match found {
            Found::Decided(State::Sent { amount, to })
                if to == self.account && credit.reservation.is_none() =>
            {
                source.deliver(id, amount, self, None).await?;
                swept.delivered += 1;
                return Ok(());
            }
            Found::Decided(State::Committed(committed)) if self.has_leg(&committed, credit) => {
                source.pay(id, &committed, None).await?;
                swept.delivered += 1;
                return Ok(());
            }
            // The source may still decide to pay this leg.
            Found::Decided(State::Held { .. }) => return Ok(()),
            Found::NeverSeen => {
                if !(self.is_left(pinned) && source.gives_up(id).await?) {
                    // The source may have lost its last changes, and with them the transfer. A repeat of the transfer needs
                    // the credit until its id is too old at the source.
                    return Ok(());
                }
            }
            // A transfer is forgotten only after it was finished. Or the id is that of another request.
            Found::Decided(_) | Found::Forgotten { .. } => {}
        }
        source.unpin(credit, self).await;
        swept.unpinned += 1;
        Ok(())
    }

    fn has_leg(&self, committed: &Committed, credit: &CreditId) -> bool {
        let capture = credit.reservation.as_ref().map(|_| &credit.id);
        let mut legs = committed.legs.iter();
        committed.capture.as_ref() == capture && legs.any(|leg| leg.to == self.account)
    }

    /// Whether it is a promise, so old that nobody is about to decide on it.
    fn is_left(&self, credit: &PinnedCredit) -> bool {
        credit.promised_ms.is_some_and(|at_ms| {
            self.storage.segments.now_ms() > at_ms.saturating_add(CLOCKS_APART_MS_MAX)
        })
    }

    /// Has this account, the source, refuse a request that it has not seen.
    async fn gives_up(&self, id: &RequestId) -> Result<bool, CounterError> {
        match self.cancel(id).await {
            Ok(_) => Ok(true),
            // No new request can have such an old id.
            Err(CounterError::Refused(Refusal::TooOld { .. })) => Ok(true),
            // It arrived meanwhile.
            Err(CounterError::Refused(Refusal::Conflict)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
