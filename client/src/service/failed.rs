//! Errors of the service about accounts, as errors of the library.

use ringfence_api::{self as api, Reason};
use ringfence_coordinator::shard::Effect;
use ringfence_segment_lock::{Account, CounterError, ServiceError, segment::Refusal};

use super::reach::Failed;

/// What a coordinator's error about `account`, or about a transfer to `to`, says.
pub(super) fn counter(failed: Failed, account: &Account, to: &[Account]) -> CounterError {
    let Failed { error, repeats } = &failed;
    if *repeats && !tells_effect(error.reason) {
        return unnamed(failed);
    }
    let account = || account.clone();
    let to = named_in(&error.message, to);
    match (error.reason, to) {
        (Reason::Insufficient, _) => CounterError::Insufficient,
        (Reason::Cancelled, _) => CounterError::Cancelled,
        (Reason::UnknownReservation, _) => CounterError::UnknownReservation,
        (Reason::TransferRefused, Some(to)) => CounterError::TransferRefused { to },
        (Reason::TransferUnfinished, _) => CounterError::TransferUnfinished {
            because: Box::new(unnamed(failed)),
        },
        (Reason::NoAccount, Some(to)) if error.effect == api::Effect::None => {
            CounterError::NoDestination { to }
        }
        (Reason::NoAccount, _) => CounterError::NoAccount { account: account() },
        (Reason::AccountExists, _) => CounterError::AccountExists { account: account() },
        (Reason::IdConflict, _) => Refusal::Conflict.into(),
        (Reason::AccountClosed, _) => Refusal::Closed.into(),
        _ => unnamed(failed),
    }
}

/// The destination that an error is about.
fn named_in(message: &str, to: &[Account]) -> Option<Account> {
    let is_about = |to: &&Account| {
        let to = Account::clone(to);
        let errors = [
            CounterError::TransferRefused { to: to.clone() },
            CounterError::NoDestination { to },
        ];
        errors.iter().any(|error| error.to_string() == message)
    };
    match to {
        [only] => Some(only.clone()),
        several => several.iter().find(is_about).cloned(),
    }
}

/// `error`, of a call that changes nothing.
pub(super) fn of_read(error: CounterError) -> CounterError {
    match error {
        CounterError::Service(error) => CounterError::Service(ServiceError {
            effect_of_call: Effect::None,
            ..error
        }),
        error => error,
    }
}

/// Whether an error for `reason` tells what became of all requests with the same id.
fn tells_effect(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Insufficient
            | Reason::Cancelled
            | Reason::TransferRefused
            | Reason::TransferUnfinished
            | Reason::IdConflict
    )
}

/// An error that is no other variant.
fn unnamed(Failed { error, repeats }: Failed) -> CounterError {
    let effect = match error.effect {
        api::Effect::None if !repeats => Effect::None,
        _ => Effect::Unknown,
    };
    let message = error.message.trim_start_matches("transfer not finished: ");
    ServiceError {
        message: message.to_owned(),
        is_retryable: error.is_retryable,
        effect: match error.reason {
            // Nobody looked for earlier requests with the id.
            Reason::RateLimited
            | Reason::NotAllowed
            | Reason::Unauthenticated
            | Reason::Stopping => Effect::Unknown,
            _ => effect,
        },
        effect_of_call: match error.reason {
            // The segment has decided nothing.
            Reason::SegmentLost if !repeats => Effect::None,
            _ => effect,
        },
        retry_after: error.retry_after,
    }
    .into()
}

/// A coordinator's answer is of no use.
pub(super) fn unknown(message: &str) -> CounterError {
    ServiceError {
        message: message.into(),
        is_retryable: true,
        effect: Effect::Unknown,
        effect_of_call: Effect::Unknown,
        retry_after: None,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use ringfence_api::Error;

    use super::*;

    fn told(reason: Reason, effect: api::Effect, repeats: bool) -> CounterError {
        let error = Error {
            effect,
            ..Error::new(reason, "refused")
        };
        counter(
            Failed { error, repeats },
            &Account::new("coins").unwrap(),
            &[],
        )
    }

    #[test]
    fn a_refusal_of_a_repeat_says_nothing_about_the_attempt_before() {
        let answers = [
            (Reason::NoAccount, api::Effect::Unknown),
            (Reason::SegmentLost, api::Effect::Unknown),
            (Reason::RateLimited, api::Effect::None),
            (Reason::AccountClosed, api::Effect::None),
        ];
        for (reason, effect) in answers {
            let of = |repeats| told(reason, effect, repeats).effect_of_call();
            assert_eq!(
                (of(false), of(true)),
                (Effect::None, Effect::Unknown),
                "{reason:?}"
            );
        }
        // Except for one that the id has got once for all.
        let decided = told(Reason::Insufficient, api::Effect::None, true);
        assert!(matches!(decided, CounterError::Insufficient));
    }

    #[test]
    fn a_call_that_was_refused_before_its_id_was_looked_up_may_have_been_applied_earlier() {
        for reason in [Reason::NotAllowed, Reason::Stopping] {
            let error = told(reason, api::Effect::None, false);
            assert_eq!(error.effect(), Effect::Unknown);
            assert_eq!(error.effect_of_call(), Effect::None);
        }
    }
}
