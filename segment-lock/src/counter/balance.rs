//! The balance of an account.

use std::sync::Arc;

use super::{
    Counter, CounterError, balance_reads::BalanceReads, freeze::Freezes, patience::Patience,
};
use crate::{Manifest, Terms, segment::Money};

/// Most reads of a frozen account for one exact balance. Reservations can be confirmed in spite of a freeze, which
/// makes another read necessary.
const FROZEN_READS_MAX: usize = 8;

/// The balance of an account. Sums of up to 1024 segments do not always fit an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What the account has: `available + held`, without its credit line. Below 0 if it uses that.
    pub ledger: i128,
    /// The money that can be spent, including money in flight and the credit line.
    pub available: i128,
    /// The part of it that was in flight between segments.
    pub in_flight: i128,
    /// Further money, held by reservations and by transfers that are sent.
    pub held: i128,
    /// How often the account continued although a shard may have lost its last changes.
    pub losses: u64,
    /// The number of lost segments. Their money does not count; [`Counter::inspect`] names them. Always 0 if the
    /// account has a durability other than `memory`: such an account has no balance until the loss is accepted.
    pub lost: usize,
    /// Whether some money certainly counts twice, because it moved between two reads. Always `false` in an exact
    /// balance.
    pub counts_twice: bool,
}

/// The balance of an account just after a change, or at the repeat of a request that was decided before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceAfter {
    /// What the account has: `available + held`, without its credit line.
    pub ledger: i64,
    /// The money that can be spent, with the credit line.
    pub available: i64,
    /// Further money, held by reservations and by transfers that are sent.
    pub held: i64,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed<T = ()> {
    /// The result.
    pub outcome: T,
    /// The balance. `None`: the account has several segments, and no single one knows it.
    pub balance: Option<BalanceAfter>,
}

impl<T> Changed<T> {
    /// The same balance, with another result.
    pub(super) fn with<O>(self, outcome: O) -> Changed<O> {
        Changed {
            outcome,
            balance: self.balance,
        }
    }
}

impl BalanceAfter {
    /// Of the money in the home of a request.
    pub(super) fn of(money: Money, manifest: &Manifest) -> Option<Self> {
        (manifest.segments() == 1).then(|| Self {
            ledger: money.value - manifest.terms().credit() + money.held,
            available: money.value,
            held: money.held,
        })
    }
}

impl Balance {
    fn of(views: &BalanceReads, terms: &Terms) -> Self {
        let (available, held) = (views.available(), views.held());
        Self {
            ledger: available + held - i128::from(terms.credit()),
            available,
            in_flight: views.in_flight(),
            held,
            losses: views.losses(),
            lost: views.lost.len(),
            counts_twice: views.counts_twice(),
        }
    }
}

impl Counter {
    /// The answer with the money that the home of a request has after it.
    pub(super) fn changed<T>(&self, outcome: T, money: Money) -> Changed<T> {
        let known = self.manifest.lock().clone();
        Changed {
            balance: known.and_then(|manifest| BalanceAfter::of(money, &manifest)),
            outcome,
        }
    }

    /// The balance by one read of each segment: fast, and not exact. Changes between the first read and the last may
    /// count or not. Money that moves meanwhile may count twice, or not at all. This call waits for nothing.
    pub async fn balance(&self) -> Result<Balance, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let manifest = self.manifest().await?;
            match self.read_segments(0..manifest.segments(), &manifest).await {
                Ok(views) => return Ok(Balance::of(&views, &manifest.terms())),
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    /// The balance at one instant of this call, including held money: two reads of every segment, between which nothing
    /// changed. Callers of a busy account wait for a moment; reservations can be confirmed meanwhile.
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
                Ok(Some(views)) => return Ok(Balance::of(&views, &manifest.terms())),
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
