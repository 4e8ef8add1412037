//! Finishes the transfers that other callers left unfinished.

use super::{Counter, CounterError, Found, Swept};
use crate::{
    Account, Amount, Manifest, RequestId,
    limits::PAGE_LEN_MAX,
    segment::{CreditId, Pinned, Reply, Request, Sent, State},
};

impl Counter {
    /// Finishes the sent transfers of segment `index`.
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
            for (id, amount, to) in &page {
                self.recover(index, id, *amount, to, swept).await;
            }
            match page.last() {
                Some((last, ..)) if page.len() == PAGE_LEN_MAX => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    async fn recover(
        &self,
        index: u32,
        id: &RequestId,
        amount: Amount,
        to: &Account,
        swept: &mut Swept,
    ) {
        let to = Self::open(self.storage.clone(), to.clone());
        match self.deliver(id, amount, &to, Some(index)).await {
            Ok(_) => swept.delivered += 1,
            Err(CounterError::TransferRefused { .. }) => swept.returned += 1,
            Err(error) => swept.errors.push(error),
        }
    }

    /// Unpins the credits of finished transfers in segment `index`, and finishes the others.
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
                Some(last) if page.len() == PAGE_LEN_MAX => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    async fn recover_credit(
        &self,
        credit: &CreditId,
        swept: &mut Swept,
    ) -> Result<(), CounterError> {
        let source = Self::open(self.storage.clone(), credit.from.clone());
        let found = match source.find(&credit.id).await {
            // All its transfers were finished, and none can be repeated.
            Err(CounterError::NoAccount { .. })
                if source.was_deleted(credit.id.time_ms()).await? =>
            {
                Found::Decided(State::Delivered)
            }
            found => found?,
        };
        match found {
            Found::Decided(State::Sent { amount, .. }) => {
                source.deliver(&credit.id, amount, self, None).await?;
                swept.delivered += 1;
            }
            // A sent transfer is forgotten only after it was finished.
            Found::Decided(State::Delivered) | Found::Forgotten { .. } => {
                source.unpin(&credit.id, self).await;
                swept.unpinned += 1;
            }
            // The source lost its last changes, and with them the transfer. A repeat of the transfer needs the credit
            // until its id is too old at the source.
            Found::NeverSeen => {}
            Found::Decided(state) => return Err(CounterError::unexpected("find", &state)),
        }
        Ok(())
    }
}
