//! Messages of counters, as values of the library.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{CreateAccountRequest, Durability, GetBalanceResponse, RequestId, ReservationState},
};
use ringfence_client::counter::{self, Amount, Balance, Ended, Terms, limits::REPLICAS_MAX};

use crate::{errors, fields};

pub(super) fn id(id: Option<RequestId>) -> Result<counter::RequestId, Error> {
    let RequestId { created_at, name } = id.unwrap_or_default();
    let time_ms = fields::time_ms("id.created_at", created_at)?;
    counter::RequestId::new(time_ms, &name).map_err(|error| errors::counter_name(&error))
}

pub(super) fn amount(value: i64) -> Result<Amount, Error> {
    Amount::new(value).map_err(|_| errors::amount(value))
}

/// The terms of a new account.
pub(super) fn terms(ask: &CreateAccountRequest) -> Result<Terms, Error> {
    let defaults = Terms::default();
    let durability = match ask.durability() {
        Durability::Unspecified if ask.durability != 0 => {
            let limit = "a value of Durability";
            return Err(Error::invalid("durability", ask.durability, limit));
        }
        Durability::Unspecified | Durability::Memory => counter::Durability::Memory,
        Durability::Disk => counter::Durability::Disk,
        Durability::Replicas => {
            let replicas = u8::try_from(ask.replicas);
            let replicas = replicas
                .ok()
                .filter(|count| (1..=REPLICAS_MAX).contains(count));
            let refused =
                || Error::invalid("replicas", ask.replicas, format!("1 to {REPLICAS_MAX}"));
            counter::Durability::Replicas(replicas.ok_or_else(refused)?)
        }
    };
    let idempotency_for_ms =
        millis("idempotency_for", ask.idempotency_for)?.unwrap_or(defaults.idempotency_for_ms);
    let at_least = defaults.idempotency_at_least_ms.min(idempotency_for_ms);
    Ok(Terms {
        idempotency_for_ms,
        idempotency_at_least_ms: millis("idempotency_at_least", ask.idempotency_at_least)?
            .unwrap_or(at_least),
        skew_ms: millis("skew", ask.skew)?.unwrap_or(defaults.skew_ms),
        ids_max: match ask.ids_max {
            0 => defaults.ids_max,
            ids_max => ids_max as usize,
        },
        durability,
    })
}

fn millis(field: &str, length: Option<prost_types::Duration>) -> Result<Option<u64>, Error> {
    let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    Ok(fields::length(field, length)?.map(millis))
}

pub(super) fn balance(balance: Balance) -> Result<GetBalanceResponse, Error> {
    Ok(GetBalanceResponse {
        available: sum("available", balance.available)?,
        in_flight: sum("in_flight", balance.in_flight)?,
        held: sum("held", balance.held)?,
        losses: balance.losses,
        lost_segments: u32::try_from(balance.lost).unwrap_or(u32::MAX),
        counts_twice: balance.counts_twice,
    })
}

/// The segments of an account may have more together than an answer can say.
fn sum(name: &str, value: i128) -> Result<i64, Error> {
    value.try_into().map_err(|_| {
        let most = i64::MAX;
        let message = format!("{name} is {value}, and an answer can say at most {most}");
        Error::new(Reason::OutOfRange, message)
    })
}

pub(super) fn ended(how: Ended) -> ReservationState {
    match how {
        Ended::Confirmed => ReservationState::Confirmed,
        Ended::Cancelled => ReservationState::Cancelled,
        Ended::Expired => ReservationState::Expired,
    }
}
