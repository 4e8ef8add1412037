//! How much there is.

use std::sync::Arc;

use super::{Counter, CounterError, freeze::Freezes, looks::Looks, patience::Patience};
use crate::Head;

/// How often an exact balance looks at a frozen account: a freeze does not keep reservations from being confirmed.
const FROZEN_LOOKS_MAX: usize = 8;

/// How much an account has. Sums of up to 1024 segments do not always fit an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What can be spent, in flight included.
    pub available: i128,
    /// How much of it was on its way between segments.
    pub in_flight: i128,
    /// What is set aside beside it: reservations that are held, transfers that are sent.
    pub held: i128,
    /// How often some of it may have been lost with a shard's last changes, and the account went on.
    pub losses: u64,
    /// How many segments are lost. What was in them does not count; [`Counter::inspect`] says which they are. Always 0
    /// where the account asked for durability: then there is no balance until the loss is accepted.
    pub lost: usize,
    /// Whether some money moved in between two looks so that it certainly counts twice. Never so in
    /// an exact balance.
    pub counts_twice: bool,
}

impl Balance {
    fn of(looks: &Looks) -> Self {
        Self {
            available: looks.available(),
            in_flight: looks.in_flight(),
            held: looks.held(),
            losses: looks.losses(),
            lost: looks.lost.len(),
            counts_twice: looks.counts_twice(),
        }
    }
}

impl Counter {
    /// The balance by one look at each segment, which is fast, and not exact: changes between the
    /// first look and the last may count or not, and money that moved meanwhile twice, or not at
    /// all. Nothing is waited for.
    pub async fn balance(&self) -> Result<Balance, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let head = self.head().await?;
            match self.look_at(0..head.segments(), &head).await {
                Ok(looks) => return Ok(Balance::of(&looks)),
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    /// The balance as it was at one instant of this call, held money included: two looks at every segment, between which
    /// nothing changed. An account in heavy use is asked to wait for a moment; reservations are confirmed meanwhile.
    pub async fn exact_balance(&self) -> Result<Balance, CounterError> {
        let mut freezes = Freezes::of(self, self.storage.caller());
        let mut patience = Patience::default();
        loop {
            let round = patience.round()?;
            let head = self.head().await?;
            let looks = match round {
                0 => self.steady_looks(&head, 2).await,
                _ => self.frozen_looks(&mut freezes, &head).await,
            };
            freezes.end().await;
            match looks {
                Ok(Some(looks)) => return Ok(Balance::of(&looks)),
                Ok(None) => {}
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    async fn frozen_looks(
        &self,
        freezes: &mut Freezes<'_>,
        head: &Arc<Head>,
    ) -> Result<Option<Looks>, CounterError> {
        freezes.freeze_all(head).await?;
        self.steady_looks(head, FROZEN_LOOKS_MAX).await
    }
}
