//! Deposit and deduct, and the common part of every change: decide it at home; if the home has too little, read the
//! others, then borrow or refuse.

use std::sync::Arc;

use super::{BalanceAfter, Changed, Counter, CounterError, freeze::Freezes, patience::Patience};
use crate::{
    Amount, Caller, Change, Manifest, Referenced,
    segment::{Loan, Money, Op, Refusal, Reply, Request, SegmentView, State},
};

/// A change under way.
pub(super) struct Attempt<'a> {
    pub(super) request: Referenced<'a>,
    pub(super) change: &'a Change,
    pub(super) caller: Caller,
    /// The layout of this round, and the home by that layout.
    pub(super) manifest: Arc<Manifest>,
    pub(super) home: u32,
}

/// The end of a round.
pub(super) enum Round {
    /// The request has its answer, with the home's money.
    Decided(State, Money),
    /// Another round, which lands these loans at home.
    Again(Vec<Loan>),
}

impl Counter {
    /// Adds `amount`, once. Returns the balance after it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Full`] if the account would pass its ceiling. [`CounterError::effect`] has for each error whether the
    /// amount may have been added all the same.
    pub async fn deposit(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        self.done(request.into(), Change::Deposit { amount }).await
    }

    /// Takes `amount` once, from any segments of the account. Returns the balance after it.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] if, at some instant of the request, the whole account had less.
    /// [`CounterError::effect`] has for each error whether the amount may have been taken all the same.
    pub async fn deduct(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        self.done(request.into(), Change::Deduct { amount }).await
    }

    async fn done(&self, request: Referenced<'_>, change: Change) -> Result<Changed, CounterError> {
        let changed = self.change(request, &change).await?;
        match changed.outcome {
            State::Done => Ok(changed.with(())),
            State::Insufficient => Err(CounterError::Insufficient),
            State::Cancelled => Err(CounterError::Cancelled),
            _ => Err(Refusal::Conflict.into()),
        }
    }

    /// Decides `change`.
    pub(super) async fn change(
        &self,
        request: Referenced<'_>,
        change: &Change,
    ) -> Result<Changed<State>, CounterError> {
        let caller = self.storage.caller();
        let mut freezes = Freezes::of(self, caller);
        let decided = self.rounds((request, change), caller, &mut freezes).await;
        freezes.end().await;
        decided
    }

    async fn rounds(
        &self,
        (request, change): (Referenced<'_>, &Change),
        caller: Caller,
        freezes: &mut Freezes<'_>,
    ) -> Result<Changed<State>, CounterError> {
        let mut lands = Vec::new();
        let mut patience = Patience::default();
        loop {
            let round = patience.round()?;
            let manifest = self.manifest().await.map_err(CounterError::aside)?;
            let home = self.home_of(request.id, &manifest)?;
            let attempt = Attempt {
                request,
                change,
                caller,
                manifest,
                home,
            };
            // After a conflict with another caller, the call freezes the segments it reads.
            let freezes = (round > 0).then_some(&mut *freezes);
            match self.round(&attempt, lands, freezes).await {
                Ok(Round::Decided(outcome, money)) => {
                    let balance = BalanceAfter::of(money, &attempt.manifest);
                    return Ok(Changed { outcome, balance });
                }
                Ok(Round::Again(loans)) => lands = loans,
                Err(error) => {
                    lands = Vec::new();
                    self.pass(error, &mut patience).await?;
                }
            }
        }
    }

    async fn round(
        &self,
        attempt: &Attempt<'_>,
        lands: Vec<Loan>,
        freezes: Option<&mut Freezes<'_>>,
    ) -> Result<Round, CounterError> {
        let Attempt { manifest, home, .. } = attempt;
        let op = Request::Op(Op {
            id: attempt.request.id.clone(),
            change: attempt.change.clone(),
            generation: manifest.generation(),
            lands,
            logged: manifest.terms().effects_max > 0,
            reference: attempt.request.reference,
            caller: attempt.caller,
        });
        match self.ask(manifest, *home, op).await? {
            Reply::Recorded(state, money) => Ok(Round::Decided(state, money)),
            // Boxed because it is rare: most calls need no room for it.
            Reply::Short(view) => Box::pin(self.short(attempt, *view, freezes)).await,
            reply => Err(CounterError::unexpected("op", &reply)),
        }
    }

    /// The home has too little: reads the others, then borrows or refuses.
    async fn short(
        &self,
        attempt: &Attempt<'_>,
        short: SegmentView,
        freezes: Option<&mut Freezes<'_>>,
    ) -> Result<Round, CounterError> {
        let Attempt { manifest, home, .. } = attempt;
        let views = match freezes {
            Some(freezes) => freezes.freeze_all(manifest).await?,
            None => {
                let others = (0..manifest.segments()).filter(|index| index != home);
                let mut views = self.read_segments(others, manifest).await?;
                views.at.insert(*home, short);
                views
            }
        };
        match views.available() < i128::from(attempt.change.amount().get()) {
            true => self.refuse(attempt, &views).await,
            false => self.borrow(attempt, &views).await,
        }
    }
}
