//! Changes of accounts: one per call, or many.

use futures_util::{StreamExt as _, stream};
use ringfence_api::{
    Error,
    v1::{
        self, BatchChangeRequest, ChangeAnswer, ReservationState, TransferRequest,
        change::Request as Change,
    },
};
use ringfence_client::counter::Reserved;
use tokio::time::Instant;
use tonic::Request;

use super::{
    Counters,
    messages::{amount, ended, failure, id},
    named,
};
use crate::{
    access::{Call, admit, admit_within},
    deadline::Deadline,
    errors, fields,
};

/// Changes in one call, at most.
const CHANGES_MAX: usize = 1000;

/// Changes of one call that are made at a time: as many as several calls to a shard have.
const AT_A_TIME: usize = 256;

impl Counters {
    /// Makes the change of a call.
    pub(super) async fn change(&self, request: Request<Change>) -> Result<ReservationState, Error> {
        let _admitted = admit(&request, call_of(request.get_ref()))?;
        let deadline = Deadline::of(&request);
        deadline.run(self.make(request.into_inner())).await?
    }

    /// Makes many changes. Each is let pass, and counts, as a call of its own.
    pub(super) async fn change_all(
        &self,
        request: Request<BatchChangeRequest>,
    ) -> Result<Vec<ChangeAnswer>, Error> {
        let _admitted = admit(&request, Call::Session)?;
        let count = request.get_ref().changes.len();
        if count > CHANGES_MAX {
            let limit = format!("at most {CHANGES_MAX} of them");
            return Err(Error::invalid("changes", count, limit));
        }
        let (deadline, begun) = (Deadline::of(&request), Instant::now());
        let (metadata, extensions, batch) = request.into_parts();
        let call = Request::from_parts(metadata, extensions, ());
        let answers = stream::iter(batch.changes).map(|v1::Change { request: change }| {
            let call = &call;
            async move {
                let missing = || Error::invalid("changes.request", "not set", "a request");
                let change = change.ok_or_else(missing)?;
                admit_within(call, call_of(&change))?;
                // It may have waited for others.
                let deadline = deadline.later(begun.elapsed())?;
                deadline.run(self.make(change)).await?
            }
        });
        let answers = answers.buffered(AT_A_TIME).map(|made| match made {
            Ok(state) => ChangeAnswer {
                failure: None,
                state: state.into(),
            },
            Err(error) => ChangeAnswer {
                failure: Some(failure(error)),
                state: ReservationState::Unspecified.into(),
            },
        });
        Ok(answers.collect().await)
    }

    /// Makes a change. Returns the state of its reservation, if it is about one.
    async fn make(&self, change: Change) -> Result<ReservationState, Error> {
        let failed = |error| errors::counter(&error);
        let none = ReservationState::Unspecified;
        match change {
            Change::Deposit(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let counter = self.accounts.open(ask.account)?;
                counter.deposit(&id, amount).await.map_err(failed)?;
                Ok(none)
            }
            Change::Deduct(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let counter = self.accounts.open(ask.account)?;
                counter.deduct(&id, amount).await.map_err(failed)?;
                Ok(none)
            }
            Change::Reserve(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let until_ms = fields::time_ms("deadline", ask.deadline)?;
                let counter = self.accounts.open(ask.account)?;
                let reserved = counter.reserve(&id, amount, until_ms);
                Ok(match reserved.await.map_err(failed)? {
                    Reserved::Held => ReservationState::Held,
                    Reserved::Ended(how) => ended(how),
                })
            }
            Change::Confirm(ask) => {
                let id = id(ask.id)?;
                let counter = self.accounts.open(ask.account)?;
                Ok(ended(counter.confirm(&id).await.map_err(failed)?))
            }
            Change::Cancel(ask) => {
                let id = id(ask.id)?;
                let counter = self.accounts.open(ask.account)?;
                Ok(ended(counter.cancel(&id).await.map_err(failed)?))
            }
            Change::Transfer(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let from = ask.account.unwrap_or_default();
                let to = v1::Account {
                    namespace: from.namespace.clone(),
                    name: ask.to,
                };
                let from = self.accounts.open(Some(from))?;
                let to = self.accounts.open(Some(to))?;
                from.transfer(&id, amount, &to).await.map_err(failed)?;
                Ok(none)
            }
        }
    }
}

/// The role that a change needs.
fn call_of(change: &Change) -> Call<'_> {
    let account = match change {
        Change::Deposit(ask) => &ask.account,
        Change::Deduct(ask) => &ask.account,
        Change::Reserve(ask) => &ask.account,
        Change::Confirm(ask) => &ask.account,
        Change::Cancel(ask) => &ask.account,
        Change::Transfer(TransferRequest { account, to, .. }) => {
            let (namespace, from) = named(account);
            return Call::Transfer(namespace, [from, to.as_bytes()]);
        }
    };
    let (namespace, name) = named(account);
    Call::Change(namespace, name)
}
