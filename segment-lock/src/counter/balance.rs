//! How much there is.

use std::sync::Arc;

use super::{
    Counter, CounterError, balance_reads::BalanceReads, freeze::Freezes, patience::Patience,
};
use crate::Manifest;

/// How often an exact balance reads a frozen account: a freeze does not keep reservations from being confirmed.
const FROZEN_READS_MAX: usize = 8;

/// How much an account has. Sums of up to 1024 segments do not always fit an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What can be spent, in flight included.
    pub available: i128,
    /// How much of it was on its way between segments.
    pub in_flight: i128,
    /// The money held beside it: by reservations, and by transfers that are sent.
    pub held: i128,
    /// How often some of it may have been lost with a shard's last changes, and the account went on.
    pub losses: u64,
    /// How many segments are lost. What was in them does not count; [`Counter::inspect`] says which they are. Always 0
    /// where the account asked for durability: then there is no balance until the loss is accepted.
    pub lost: usize,
    /// Whether some money moved in between two reads so that it certainly counts twice. Never so in
    /// an exact balance.
    pub counts_twice: bool,
}

impl Balance {
    fn of(views: &BalanceReads) -> Self {
        Self {
            available: views.available(),
            in_flight: views.in_flight(),
            held: views.held(),
            losses: views.losses(),
            lost: views.lost.len(),
            counts_twice: views.counts_twice(),
        }
    }
}

impl Counter {
    /// The balance by one read of each segment, which is fast, and not exact: changes between the
    /// first read and the last may count or not, and money that moved meanwhile twice, or not at
    /// all. Nothing is waited for.
    pub async fn balance(&self) -> Result<Balance, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let manifest = self.manifest().await?;
            match self.read_segments(0..manifest.segments(), &manifest).await {
                Ok(views) => return Ok(Balance::of(&views)),
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    /// The balance as it was at one instant of this call, held money included: two reads of every segment, between which
    /// nothing changed. An account in heavy use is asked to wait for a moment; reservations are confirmed meanwhile.
    pub async fn exact_balance(&self) -> Result<Balance, CounterError> {
        let mut freezes = Freezes::of(self, self.storage.caller());
        let mut patience = Patience::default();
        loop {
            let round = patience.round()?;
            let manifest = self.manifest().await?;
            let views = match round {
                0 => self.steady_reads(&manifest, 2).await,
                _ => self.frozen_reads(&mut freezes, &manifest).await,
            };
            freezes.end().await;
            match views {
                Ok(Some(views)) => return Ok(Balance::of(&views)),
                Ok(None) => {}
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    async fn frozen_reads(
        &self,
        freezes: &mut Freezes<'_>,
        manifest: &Arc<Manifest>,
    ) -> Result<Option<BalanceReads>, CounterError> {
        freezes.freeze_all(manifest).await?;
        self.steady_reads(manifest, FROZEN_READS_MAX).await
    }
}
