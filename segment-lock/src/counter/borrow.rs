//! Borrows money from other segments if the home has too little and the whole account has enough.

use std::cmp::Reverse;

use super::{
    Counter, CounterError,
    balance_reads::BalanceReads,
    change::{Attempt, Round},
};
use crate::{
    Amount,
    limits::AMOUNT_MAX,
    segment::{Land, Lend, Loan, Refusal, Reply, Request},
};

/// The next step for a home that has too little.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Borrow {
    /// These loans have arrived. They are enough, or no more is available for now.
    Bring(Vec<Loan>),
    /// These loans have arrived. Ask these segments too: the number of the last loan that landed from each, and the
    /// amount.
    Lend(Vec<Loan>, Vec<(u32, u64, Amount)>),
    /// All the money is in flight to other segments: land it there first.
    LandElsewhere(Vec<(u32, Loan)>),
    /// The home has no room for it, beside the money that it holds.
    NoRoom(Refusal),
}

impl Borrow {
    /// How `home` can get `amount`, according to `views`.
    pub(super) fn of(views: &BalanceReads, home: u32, amount: i64) -> Self {
        let bring = views.loans_to(home);
        let arrived: i128 = bring.iter().map(|loan| i128::from(loan.amount.get())).sum();
        let view = views.at.get(&home);
        let [there, held] = view.map_or([0, 0], |view| [view.value, view.held]);
        let (owned, there) = (there + held, i128::from(there));
        let missing = i128::from(amount) - there - arrived;
        if missing <= 0 {
            return Self::Bring(bring);
        }
        let room = i128::from(AMOUNT_MAX) - i128::from(owned) - arrived;
        if room < missing {
            let amount = arrived + missing;
            let max = AMOUNT_MAX;
            return Self::NoRoom(Refusal::Full { owned, amount, max });
        }
        let lends = lends(views, home, missing, room);
        if !lends.is_empty() {
            return Self::Lend(bring, lends);
        }
        let elsewhere = views.at.keys().filter(|&&to| to != home);
        let elsewhere =
            elsewhere.flat_map(|&to| views.loans_to(to).into_iter().map(move |l| (to, l)));
        let elsewhere: Vec<_> = elsewhere.collect();
        match bring.is_empty() && !elsewhere.is_empty() {
            true => Self::LandElsewhere(elsewhere),
            false => Self::Bring(bring),
        }
    }
}

/// The lenders and their amounts: the richest first, and from each at least half of its money, so that the same home
/// does not need another loan soon; at most what the home has room for. A segment whose last loan has not landed does not
/// lend: the next loan would overwrite it.
fn lends(
    views: &BalanceReads,
    home: u32,
    mut missing: i128,
    mut room: i128,
) -> Vec<(u32, u64, Amount)> {
    let inn = views.at.get(&home).map(|view| &view.inn);
    let landed = |from: u32| {
        inn.and_then(|inn| inn.get(&from))
            .copied()
            .unwrap_or_default()
    };
    let others = views.at.iter().filter(|&(&from, _)| from != home);
    let mut lenders: Vec<_> = others
        .filter(|&(&from, view)| {
            let last = view.out.get(&home).map_or(0, |last| last.seq);
            view.value > 0 && last <= landed(from)
        })
        .collect();
    lenders.sort_by_key(|(_, view)| Reverse(view.value));
    let mut lends = Vec::new();
    for (&from, view) in lenders {
        if missing <= 0 {
            break;
        }
        let want = missing.min(view.value.into()).max((view.value / 2).into());
        let want = want.min(room);
        missing -= want;
        room -= want;
        let want = Amount::new(want).expect("some of a positive value, and at most all");
        lends.push((from, landed(from), want));
    }
    lends
}

impl Counter {
    /// Has loans made to the home. The next round lands them there, together with the change.
    pub(super) async fn borrow(
        &self,
        attempt: &Attempt<'_>,
        views: &BalanceReads,
    ) -> Result<Round, CounterError> {
        let amount = attempt.change.amount().get();
        match Borrow::of(views, attempt.home, amount) {
            Borrow::Bring(loans) => Ok(Round::Again(loans)),
            Borrow::Lend(loans, lends) => self.lend(attempt, loans, lends).await,
            Borrow::NoRoom(full) => Err(full.into()),
            Borrow::LandElsewhere(loans) => {
                let caller = attempt.caller;
                let land = |(to, loan)| (to, Request::Land(Land { loan, caller }));
                let lands = loans.into_iter().map(land);
                self.ask_all(&attempt.manifest, lands)
                    .await
                    .map_err(CounterError::aside)?;
                Ok(Round::Again(Vec::new()))
            }
        }
    }

    async fn lend(
        &self,
        attempt: &Attempt<'_>,
        mut loans: Vec<Loan>,
        lends: Vec<(u32, u64, Amount)>,
    ) -> Result<Round, CounterError> {
        let lend = |&(from, landed, want): &(u32, u64, Amount)| {
            let lend = Lend {
                to: attempt.home,
                landed,
                want,
                caller: attempt.caller,
            };
            (self.at(&attempt.manifest, from), Request::Lend(lend))
        };
        let requests = lends.iter().map(lend).collect();
        let answers = self.storage.segments.call_all(requests).await;
        for (&(from, ..), answer) in lends.iter().zip(answers) {
            match answer
                .map_err(CounterError::from)
                .map_err(CounterError::aside)?
            {
                Ok(Reply::Lent(lent)) => {
                    let amount = Amount::new(lent.amount);
                    let seq = lent.seq;
                    loans.extend(amount.map(|amount| Loan { from, seq, amount }));
                }
                // Another caller was faster, or this segment is frozen or lost: the next round sees the rest.
                Ok(Reply::Nothing) | Err(Refusal::Busy { .. } | Refusal::Missing) => {}
                Ok(reply) => return Err(CounterError::unexpected("lend", &reply)),
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(Round::Again(loans))
    }
}
