//! Messages of counters, as values of the library.

use std::time::{Duration, UNIX_EPOCH};

use ringfence_api::{
    Error, Reason,
    v1::{
        self, AccountFailure, AccountSegment, AccountSegments, CreateAccountRequest, Decision,
        Durability, FindResponse, GetBalanceResponse, LastSeenSegment, LostAccountSegment,
        RequestId, ReservationState, SweepAccountResponse,
    },
};
use ringfence_client::counter::{
    self, Account, Amount, Balance, BalanceAfter, Ended, Found, Inspection, Leg, Legs, LostSegment,
    Reference, Seen, Swept, Terms, Unit,
    limits::{AMOUNT_MAX, REFERENCE_LEN, REPLICAS_MAX, UNIT_LEN_MAX},
    segment::{SegmentView, State},
};

use crate::{errors, fields};

/// Failures in the answer to a sweep, at most.
const FAILURES_MAX: usize = 16;

pub(crate) fn id(id: Option<RequestId>) -> Result<counter::RequestId, Error> {
    id_in("id", id)
}

/// The id in a field of that name.
pub(super) fn id_in(field: &str, id: Option<RequestId>) -> Result<counter::RequestId, Error> {
    let RequestId { created_at, name } = id.unwrap_or_default();
    let time_ms = fields::time_ms(&format!("{field}.created_at"), created_at)?;
    counter::RequestId::new(time_ms, &name).map_err(|error| errors::counter_name(&error))
}

pub(super) fn legs(legs: &[v1::Leg]) -> Result<Legs, Error> {
    let leg = |leg: &v1::Leg| {
        let to = Account::new(&leg.to).map_err(|error| errors::counter_name(&error))?;
        let amount = Amount::new(leg.amount)
            .map_err(|_| Error::invalid("legs.amount", leg.amount, format!("1 to {AMOUNT_MAX}")))?;
        Ok(Leg { to, amount })
    };
    let legs = legs.iter().map(leg).collect::<Result<_, Error>>()?;
    Legs::new(legs).map_err(|error| errors::legs(&error))
}

pub(super) fn amount(value: i64) -> Result<Amount, Error> {
    Amount::new(value).map_err(|_| errors::amount(value))
}

/// The terms of a new account.
pub(super) fn terms(ask: &CreateAccountRequest) -> Result<Terms, Error> {
    let defaults = Terms::new(durability(ask.durability, ask.replicas)?);
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
        effects_max: ask
            .effects_max
            .map_or(defaults.effects_max, |most| most as usize),
        effects_for_ms: millis("effects_for", ask.effects_for)?.unwrap_or(defaults.effects_for_ms),
        floor: ask.floor,
        ceiling: ask.ceiling,
        unit: unit(&ask.unit)?,
        ..defaults
    })
}

fn unit(code: &str) -> Result<Unit, Error> {
    code.parse().map_err(|_| {
        let limit = format!("at most {UNIT_LEN_MAX} of A-Z, a-z, 0-9, '-', '_' and '.'");
        Error::invalid("unit", format!("{code:?}"), limit)
    })
}

/// The caller's reference. Empty: none.
pub(super) fn reference(bytes: &[u8]) -> Result<Option<Reference>, Error> {
    match bytes.len() {
        0 => Ok(None),
        len => match bytes.try_into() {
            Ok(bytes) => Ok(Some(Reference(bytes))),
            Err(_) => {
                let value = format!("{len} bytes long");
                let limit = format!("{REFERENCE_LEN} bytes long, or empty");
                Err(Error::invalid("reference", value, limit))
            }
        },
    }
}

/// A durability, and its number of replicas.
pub(crate) fn durability(durability: i32, replicas: u32) -> Result<counter::Durability, Error> {
    match Durability::try_from(durability) {
        Ok(Durability::Unspecified) => {
            let limit = "a choice: memory, disk or replicas";
            Err(Error::invalid("durability", "not set", limit))
        }
        Ok(Durability::Memory) => Ok(counter::Durability::Memory),
        Ok(Durability::Disk) => Ok(counter::Durability::Disk),
        Ok(Durability::Replicas) => {
            let count = u8::try_from(replicas).ok();
            let count = count.filter(|count| (1..=REPLICAS_MAX).contains(count));
            let refused = || Error::invalid("replicas", replicas, format!("1 to {REPLICAS_MAX}"));
            Ok(counter::Durability::Replicas(count.ok_or_else(refused)?))
        }
        Err(_) => {
            let limit = "a value of Durability";
            Err(Error::invalid("durability", durability, limit))
        }
    }
}

fn millis(field: &str, length: Option<prost_types::Duration>) -> Result<Option<u64>, Error> {
    let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    Ok(fields::length(field, length)?.map(millis))
}

pub(super) fn balance(balance: Balance) -> Result<GetBalanceResponse, Error> {
    Ok(GetBalanceResponse {
        ledger: sum("ledger", balance.ledger)?,
        available: sum("available", balance.available)?,
        in_flight: sum("in_flight", balance.in_flight)?,
        held: sum("held", balance.held)?,
        losses: balance.losses,
        lost_segments: u32::try_from(balance.lost).unwrap_or(u32::MAX),
        counts_twice: balance.counts_twice,
    })
}

pub(super) fn balance_after(balance: BalanceAfter) -> v1::BalanceAfter {
    let BalanceAfter {
        ledger,
        available,
        held,
    } = balance;
    v1::BalanceAfter {
        ledger,
        available,
        held,
    }
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

pub(super) fn decision(found: Found) -> FindResponse {
    let mut answer = FindResponse::default();
    let decision = match found {
        Found::NeverSeen => Decision::NeverSeen,
        Found::Forgotten { mark_ms } => {
            answer.forgotten_until = Some(at(mark_ms));
            Decision::Forgotten
        }
        Found::Decided(state) => match state {
            State::Done => Decision::Done,
            State::Insufficient => Decision::Insufficient,
            State::Held {
                amount,
                deadline_ms,
            } => {
                answer.amount = amount.get();
                answer.deadline = Some(at(deadline_ms));
                Decision::Held
            }
            State::Confirmed => Decision::Confirmed,
            State::Cancelled => Decision::Cancelled,
            State::Expired => Decision::Expired,
            State::Sent { amount, to } => {
                answer.amount = amount.get();
                answer.to = to.as_str().to_owned();
                Decision::Sent
            }
            State::Committed(committed) => {
                let leg = |leg: &Leg| v1::Leg {
                    to: leg.to.as_str().to_owned(),
                    amount: leg.amount.get(),
                };
                answer.legs = committed.legs.iter().map(leg).collect();
                answer.capture_id = committed.capture.as_ref().map(|id| RequestId {
                    created_at: Some(at(id.time_ms())),
                    name: id.name().to_owned(),
                });
                Decision::Committed
            }
            State::Delivered => Decision::Delivered,
            State::Returned => Decision::Returned,
        },
    };
    answer.set_decision(decision);
    answer
}

pub(super) fn at(time_ms: u64) -> prost_types::Timestamp {
    (UNIX_EPOCH + Duration::from_millis(time_ms)).into()
}

/// A failure of a change, or of a part of a sweep.
pub(super) fn failure(error: Error) -> AccountFailure {
    AccountFailure {
        error: Some((&error).into()),
        message: error.message,
    }
}

pub(super) fn segments(found: &Inspection) -> AccountSegments {
    let Inspection {
        views,
        lost,
        details,
        changes_per_s,
    } = found;
    let present = |(&index, view): (&u32, &SegmentView)| AccountSegment {
        index,
        available: view.value,
        held: view.held,
        in_doubt: view.doubtful,
        losses: view.losses,
        unfinished: view.unfinished as u64,
        forgotten_until: (view.mark_ms > 0).then(|| at(view.mark_ms)),
        changes_per_second: changes_per_s.get(&index).copied(),
    };
    let seen = |seen: Seen| LastSeenSegment {
        amount: seen.owned,
        at: Some(at(seen.at_ms)),
        losses: seen.losses,
    };
    let lost_one = |lost: &LostSegment| LostAccountSegment {
        index: lost.index,
        last_seen: lost.last_seen.map(seen),
    };
    AccountSegments {
        present: views.iter().map(present).collect(),
        lost: lost.0.iter().map(lost_one).collect(),
        unit: details.unit.to_string(),
        floor: details.floor,
        ceiling: details.ceiling,
        labels: details.labels.clone().into_iter().collect(),
    }
}

pub(super) fn swept(swept: &Swept) -> SweepAccountResponse {
    let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
    SweepAccountResponse {
        expired: count(swept.expired),
        delivered: count(swept.delivered),
        returned: count(swept.returned),
        unpinned: count(swept.unpinned),
        purged: count(swept.purged),
        failures: swept
            .errors
            .iter()
            .take(FAILURES_MAX)
            .map(|error| failure(errors::counter(error)))
            .collect(),
    }
}
