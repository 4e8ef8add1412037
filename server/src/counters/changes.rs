//! Changes of accounts: one per call, or many.

use std::fmt;

use futures_util::{StreamExt as _, stream};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use ringfence_api::{
    Error,
    v1::{
        self, BalanceAfter, BatchChangeRequest, ChangeAnswer, ConfirmRequest, Leg,
        ReservationState, change::Request as Change,
    },
};
use ringfence_client::counter::{
    Amount, Changed, CounterError, Legs, Referenced, RequestId, Reserved,
};
use tokio::time::Instant;
use tonic::Request;

use super::{
    Counters,
    messages::{amount, balance_after, ended, failure, id, id_in, legs, reference},
    named,
};
use crate::{
    access::{Call, admit, admit_within},
    deadline::Deadline,
    errors, fields,
};

/// The state of a reservation, and the balance of the account.
type Made = (ReservationState, Option<BalanceAfter>);

/// Changes in one call, at most.
const CHANGES_MAX: usize = 1000;

/// Changes of one call that are made at a time: as many as several calls to a shard have.
const AT_A_TIME: usize = 256;

impl Counters {
    /// Makes the change of a call. Returns the state of its reservation, if it is about one, and the balance after it.
    pub(super) async fn change(&self, request: Request<Change>) -> Result<Made, Error> {
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
            Ok((state, balance)) => ChangeAnswer {
                failure: None,
                state: state.into(),
                balance,
            },
            Err(error) => ChangeAnswer {
                failure: Some(failure(error)),
                ..ChangeAnswer::default()
            },
        });
        Ok(answers.collect().await)
    }

    async fn make(&self, change: Change) -> Result<Made, Error> {
        let kind = kind_of(&change);
        let made = self.make_one(change).await;
        self.numbers.count(kind, &made);
        made
    }

    async fn make_one(&self, change: Change) -> Result<Made, Error> {
        let none = |()| ReservationState::Unspecified;
        match change {
            Change::Deposit(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let request = referenced(&id, &ask.reference)?;
                let counter = self.accounts.open(ask.account)?;
                made(counter.deposit(request, amount).await, none)
            }
            Change::Deduct(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let request = referenced(&id, &ask.reference)?;
                let counter = self.accounts.open(ask.account)?;
                made(counter.deduct(request, amount).await, none)
            }
            Change::Reserve(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let request = referenced(&id, &ask.reference)?;
                let until_ms = fields::time_ms("deadline", ask.deadline)?;
                let counter = self.accounts.open(ask.account)?;
                let state = |reserved| match reserved {
                    Reserved::Held => ReservationState::Held,
                    Reserved::Ended(how) => ended(how),
                };
                made(counter.reserve(request, amount, until_ms).await, state)
            }
            Change::Confirm(ask) => {
                let confirmed = confirmed(&ask)?;
                let id = id(ask.id)?;
                let counter = self.accounts.open(ask.account)?;
                let ended_by = match confirmed {
                    Confirmed::All => counter.confirm(&id).await,
                    Confirmed::Part(amount) => counter.confirm_part(&id, amount).await,
                    Confirmed::Legs(capture, legs) => counter.capture(&id, &capture, &legs).await,
                };
                made(ended_by, ended)
            }
            Change::Cancel(ask) => {
                let id = id(ask.id)?;
                let counter = self.accounts.open(ask.account)?;
                made(counter.cancel(&id).await, ended)
            }
            Change::Transfer(ask) if !ask.legs.is_empty() => {
                let id = id(ask.id)?;
                let request = referenced(&id, &ask.reference)?;
                let legs = legs(&ask.legs)?;
                not_with_legs("amount", ask.amount, &0)?;
                not_with_legs("to", ask.to, &String::new())?;
                let from = self.accounts.open(ask.account)?;
                made(from.transfer_legs(request, &legs).await, none)
            }
            Change::Transfer(ask) => {
                let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
                let request = referenced(&id, &ask.reference)?;
                let from = ask.account.unwrap_or_default();
                let to = v1::Account {
                    namespace: from.namespace.clone(),
                    name: ask.to,
                };
                let from = self.accounts.open(Some(from))?;
                let to = self.accounts.open(Some(to))?;
                made(from.transfer(request, amount, &to).await, none)
            }
        }
    }
}

/// What of a reservation is spent.
enum Confirmed {
    All,
    Part(Amount),
    Legs(RequestId, Legs),
}

fn confirmed(ask: &ConfirmRequest) -> Result<Confirmed, Error> {
    if ask.legs.is_empty() {
        return match (ask.amount, &ask.capture_id) {
            (_, Some(_)) => Err(Error::invalid("capture_id", "set", "not set without legs")),
            (0, None) => Ok(Confirmed::All),
            (value, None) => amount(value).map(Confirmed::Part),
        };
    }
    not_with_legs("amount", ask.amount, &0)?;
    let capture = id_in("capture_id", ask.capture_id.clone())?;
    Ok(Confirmed::Legs(capture, legs(&ask.legs)?))
}

fn not_with_legs<T: PartialEq + fmt::Debug>(
    field: &'static str,
    value: T,
    unset: &T,
) -> Result<(), Error> {
    match value == *unset {
        true => Ok(()),
        false => Err(Error::invalid(
            field,
            format!("{value:?}"),
            "not set beside legs",
        )),
    }
}

fn made<T>(
    changed: Result<Changed<T>, CounterError>,
    state: impl Fn(T) -> ReservationState,
) -> Result<Made, Error> {
    let Changed { outcome, balance } = changed.map_err(|error| errors::counter(&error))?;
    Ok((state(outcome), balance.map(balance_after)))
}

fn referenced<'a>(id: &'a RequestId, bytes: &[u8]) -> Result<Referenced<'a>, Error> {
    let reference = reference(bytes)?;
    Ok(Referenced { id, reference })
}

fn kind_of(change: &Change) -> &'static str {
    match change {
        Change::Deposit(_) => "deposit",
        Change::Deduct(_) => "deduct",
        Change::Reserve(_) => "reserve",
        Change::Confirm(_) => "confirm",
        Change::Cancel(_) => "cancel",
        Change::Transfer(_) => "transfer",
    }
}

/// Counts the answers to changes, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Family<ChangeLabels, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabels {
    change: &'static str,
    answer: String,
}

impl Changes {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Answers to changes of accounts, by the change and the answer";
        registry.register("changes", help, self.0.clone());
    }

    fn count(&self, change: &'static str, made: &Result<Made, Error>) {
        let answer = match made {
            Ok((ReservationState::Unspecified, _)) => "done".into(),
            Ok((state, _)) => suffix(state.as_str_name(), "RESERVATION_STATE_"),
            Err(error) => suffix(error.reason.as_str_name(), "ERROR_REASON_"),
        };
        self.0.get_or_create(&ChangeLabels { change, answer }).inc();
    }
}

/// The value of an enumeration, without the name of that.
fn suffix(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_ascii_lowercase()
}

/// The role that a change needs.
fn call_of(change: &Change) -> Call<'_> {
    let account = match change {
        Change::Deposit(ask) => &ask.account,
        Change::Deduct(ask) => &ask.account,
        Change::Reserve(ask) => &ask.account,
        Change::Confirm(ConfirmRequest { account, legs, .. }) if !legs.is_empty() => {
            return pays(account, receivers(legs));
        }
        Change::Confirm(ask) => &ask.account,
        Change::Cancel(ask) => &ask.account,
        Change::Transfer(ask) if ask.legs.is_empty() => {
            return pays(&ask.account, vec![ask.to.as_bytes()]);
        }
        Change::Transfer(ask) => return pays(&ask.account, receivers(&ask.legs)),
    };
    let (namespace, name) = named(account);
    Call::Change(namespace, name)
}

fn pays<'a>(account: &'a Option<v1::Account>, to: Vec<&'a [u8]>) -> Call<'a> {
    let (namespace, from) = named(account);
    Call::Transfer(namespace, from, to)
}

fn receivers(legs: &[Leg]) -> Vec<&[u8]> {
    legs.iter().map(|leg| leg.to.as_bytes()).collect()
}
