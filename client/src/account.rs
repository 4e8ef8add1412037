//! One account.

use std::{collections::BTreeMap, time::Duration};

use ringfence_segment_lock::{
    self as segments, Account, AccountHistory, Amount, Balance, Changed, CounterError, Ended,
    Found, HistoryCursor, Inspection, Legs, Referenced, RequestId, Reserved, Swept,
};

/// One account, at the shards or at coordinators. Made by [`Counters`](crate::Counters).
///
/// # Errors
///
/// [`CounterError::effect`] has for each error whether the request may have been applied all the same.
///
/// # Cancel safety
///
/// A call whose future is dropped may have taken effect, or be half done. Nothing is lost: repeat it under the same id
/// to finish it.
#[derive(Debug)]
pub struct Counter(pub(crate) At);

/// Where it is.
#[derive(Debug)]
pub(crate) enum At {
    Shards(segments::Counter),
    #[cfg(feature = "service")]
    Service(crate::service::RemoteCounter),
}

/// Calls the method wherever the account is.
macro_rules! call {
    ($counter:expr, $method:ident $(, $argument:expr)*) => {
        match &$counter.0 {
            At::Shards(counter) => counter.$method($($argument),*),
            #[cfg(feature = "service")]
            At::Service(counter) => counter.$method($($argument),*),
        }
    };
    (await $counter:expr, $method:ident $(, $argument:expr)*) => {
        match &$counter.0 {
            At::Shards(counter) => counter.$method($($argument),*).await,
            #[cfg(feature = "service")]
            At::Service(counter) => counter.$method($($argument),*).await,
        }
    };
}

impl Counter {
    /// Its name.
    pub fn account(&self) -> &Account {
        call!(self, account)
    }

    /// The account at the shards: its manifest, for example. None, if coordinators have it.
    pub fn at_shards(&self) -> Option<&segments::Counter> {
        match &self.0 {
            At::Shards(counter) => Some(counter),
            #[cfg(feature = "service")]
            At::Service(_) => None,
        }
    }

    /// Adds `amount`, once. Returns the balance after it.
    ///
    /// # Errors
    ///
    /// No account, or no answer; a segment refused the id or the amount.
    pub async fn deposit(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        call!(await self, deposit, request, amount)
    }

    /// Takes `amount` once, from any segments of the account. Returns the balance after it.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] if, at some instant of the request, the whole account had less.
    pub async fn deduct(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
    ) -> Result<Changed, CounterError> {
        call!(await self, deduct, request, amount)
    }

    /// Sets `amount` aside, once, until it is confirmed or cancelled. At `deadline_ms` (since 1970, by the segment's
    /// clock) it comes back by itself. A repeat must have the same deadline.
    ///
    /// # Errors
    ///
    /// As for [`deduct`](Self::deduct); and if the deadline is more than `idempotency_for` after the time of the id.
    pub async fn reserve(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        deadline_ms: u64,
    ) -> Result<Changed<Reserved>, CounterError> {
        call!(await self, reserve, request, amount, deadline_ms)
    }

    /// Spends the money reserved under `id`. Returns how the reservation ended.
    ///
    /// # Errors
    ///
    /// [`CounterError::UnknownReservation`] if there is none; [`CounterError::Insufficient`] if the account had too
    /// little for it.
    pub async fn confirm(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        call!(await self, confirm, id)
    }

    /// Spends `amount` of the money reserved under `id`; the rest comes back. Returns how the reservation ended: a repeat
    /// returns its first end, whatever the amount.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm); and if less is reserved.
    pub async fn confirm_part(
        &self,
        id: &RequestId,
        amount: Amount,
    ) -> Result<Changed<Ended>, CounterError> {
        call!(await self, confirm_part, id, amount)
    }

    /// Pays accounts of the same namespace and unit from the money reserved under `id`, all or nothing, once; the rest
    /// comes back. Returns how the reservation ended.
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
        call!(await self, capture, id, capture, legs)
    }

    /// Gives back the money reserved under `id`. Returns how the reservation ended. A reservation of that id that
    /// arrives later reserves nothing.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] if the account had too little for it.
    pub async fn cancel(&self, id: &RequestId) -> Result<Changed<Ended>, CounterError> {
        call!(await self, cancel, id)
    }

    /// Moves `amount` to another account of the same namespace and unit, once. Returns the balance of this one after it.
    ///
    /// # Errors
    ///
    /// [`CounterError::Insufficient`] as for [`deduct`](Self::deduct); [`CounterError::TransferRefused`] if the money
    /// is back; [`CounterError::TransferUnfinished`] if the transfer has begun and is not finished: repeat it, or
    /// [`sweep`](Self::sweep), to finish it; [`CounterError::NoDestination`] if the account `to` does not exist, or is
    /// of a client that reaches other accounts, or [`CounterError::OtherUnit`]: nothing is taken.
    pub async fn transfer(
        &self,
        request: impl Into<Referenced<'_>>,
        amount: Amount,
        to: &Self,
    ) -> Result<Changed, CounterError> {
        match (&self.0, &to.0) {
            (At::Shards(from), At::Shards(to)) => from.transfer(request, amount, to).await,
            #[cfg(feature = "service")]
            (At::Service(from), At::Service(to)) => from.transfer(request, amount, to).await,
            #[cfg(feature = "service")]
            (At::Shards(_), At::Service(_)) | (At::Service(_), At::Shards(_)) => {
                let to = to.account().clone();
                Err(CounterError::NoDestination { to })
            }
        }
    }

    /// Moves money to several accounts of the same namespace and unit, all or nothing, once. Returns the balance of this one
    /// after it.
    ///
    /// # Errors
    ///
    /// As for [`transfer`](Self::transfer), and [`CounterError::Legs`]. [`CounterError::TransferRefused`] names an account
    /// that refused, and nothing has moved. Only if an account lost its last changes after it had promised to receive
    /// its leg, that may come back, and the others arrive: the [history](Self::history) has each leg.
    pub async fn transfer_legs(
        &self,
        request: impl Into<Referenced<'_>>,
        legs: &Legs,
    ) -> Result<Changed, CounterError> {
        call!(await self, transfer_legs, request, legs)
    }

    /// Looks up the decision on the request with that id, of whatever kind. Decides nothing.
    ///
    /// # Errors
    ///
    /// No account, or no answer; the segment that knows the request is lost or in doubt.
    pub async fn find(&self, id: &RequestId) -> Result<Found, CounterError> {
        call!(await self, find, id)
    }

    /// Reads the log of the account, oldest effects first: about `limit` of them, behind `from`. Each change of its money
    /// is in it once, written in the same step as the money. At the end of the log, ask again later for new ones.
    ///
    /// # Errors
    ///
    /// No account, no answer, or an account without a log.
    pub async fn history(
        &self,
        from: &HistoryCursor,
        limit: u32,
    ) -> Result<AccountHistory, CounterError> {
        call!(await self, history, from, limit)
    }

    /// The balance by one read of each segment: fast, and not exact. Changes between the first read and the last may
    /// count or not. Money that moves meanwhile may count twice, or not at all.
    ///
    /// # Errors
    ///
    /// No account, or no answer.
    pub async fn balance(&self) -> Result<Balance, CounterError> {
        call!(await self, balance)
    }

    /// The balance at one instant of this call, including held money. Callers of a busy account wait for a moment;
    /// reservations can be confirmed meanwhile.
    ///
    /// # Errors
    ///
    /// No account, or no answer.
    pub async fn exact_balance(&self) -> Result<Balance, CounterError> {
        call!(await self, exact_balance)
    }

    /// The number of segments that take new requests.
    ///
    /// # Errors
    ///
    /// No account, or no answer.
    pub async fn segments(&self) -> Result<u32, CounterError> {
        match &self.0 {
            At::Shards(counter) => {
                let manifest = counter.read_manifest().await?;
                let newest = manifest.layouts().last();
                Ok(newest.map_or(0, |layout| layout.segments))
            }
            #[cfg(feature = "service")]
            At::Service(counter) => counter.segments().await,
        }
    }

    /// The content of every segment, not read at one instant. Coordinators leave its version, its loans and its clock out.
    ///
    /// # Errors
    ///
    /// No account, or no answer.
    pub async fn inspect(&self) -> Result<Inspection, CounterError> {
        call!(await self, inspect)
    }

    /// Changes the number of segments that are homes, during normal use. Former homes remain: they have the answers to
    /// old requests, and lend their money to the others. Takes about 11 s.
    ///
    /// # Errors
    ///
    /// A number out of range; too many changes of this account; or [`CounterError::Lost`] if the account lost segments.
    pub async fn resegment(&self, segments: u32) -> Result<(), CounterError> {
        call!(await self, resegment, segments)
    }

    /// Sets labels, and removes those that are set to `None`. The others stay. A repeat has no second effect.
    ///
    /// # Errors
    ///
    /// A label is too long, or there would be too many; no account, or no answer.
    pub async fn label(
        &self,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CounterError> {
        call!(await self, label, labels)
    }

    /// Closes the account permanently: it refuses deposits and transfers from now on. Its money can still be taken out,
    /// and held money can be spent or given back.
    ///
    /// # Errors
    ///
    /// No answer: some segments may be closed, and others not. Repeat the call.
    pub async fn close(&self) -> Result<(), CounterError> {
        call!(await self, close)
    }

    /// Deletes the account with its log: it must be closed, without money, and all its transfers finished. Its name can be
    /// used again. An account created later under that name refuses the requests that this one has decided.
    ///
    /// # Errors
    ///
    /// The account is open, or not empty, or has a credit line and several segments. One with a credit line can be deleted
    /// a minute after it was created. No answer: repeat the call; that is no error if the account was deleted before.
    pub async fn delete(&self) -> Result<(), CounterError> {
        call!(await self, delete)
    }

    /// Expires reservations, finishes transfers, forgets old answers. Any number of processes may do this at any time.
    ///
    /// # Errors
    ///
    /// The account cannot be read. All other errors are in the result.
    pub async fn sweep(&self) -> Result<Swept, CounterError> {
        call!(await self, sweep)
    }

    /// Accepts segments in doubt as they are, and replaces lost segments without their money. Returns the segments
    /// before that. Takes about 11 s.
    ///
    /// # Errors
    ///
    /// No account, or no answer: repeat the call.
    pub async fn accept(&self) -> Result<Inspection, CounterError> {
        let (before, until_new) = self.accept_now().await?;
        tokio::time::sleep(until_new).await;
        Ok(before)
    }

    /// As [`accept`](Self::accept), without the wait at its end: for many accounts at once. Returns how long it is until
    /// requests that are created then are not too old.
    ///
    /// # Errors
    ///
    /// Those of [`accept`](Self::accept).
    pub async fn accept_now(&self) -> Result<(Inspection, Duration), CounterError> {
        call!(await self, accept_now)
    }
}
