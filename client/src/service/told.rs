//! The messages of a session as values.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{self, HeldBy, ReleaseOutcome, SessionResponse, WaitReason, answer::Kind, ask},
};
use ringfence_coordinator::{
    engine::{AcquireError, Ask, CoordinatorError, ReleaseAnswer, Told},
    ids::Token,
    name::Label,
    shard::{Effect, LockMode},
};

/// The message for `ask`.
pub(super) fn ask(ask: &Ask) -> v1::Ask {
    let (id, kind) = match ask {
        Ask::Acquire {
            id,
            nonce,
            key,
            mode,
            tokens,
            preferred,
            hold_for,
            queues,
        } => {
            let (mode, permits, capacity) = match *mode {
                LockMode::Exclusive => (v1::LockMode::Exclusive, 0, 0),
                LockMode::Read => (v1::LockMode::Read, 0, 0),
                LockMode::Write => (v1::LockMode::Write, 0, 0),
                LockMode::Permits { count, capacity } => (v1::LockMode::Permits, count, capacity),
            };
            let acquire = v1::AcquireAsk {
                namespace: key.namespace().to_owned(),
                key: key.key().to_vec(),
                hold_for: hold_for.and_then(|length| length.try_into().ok()),
                wait: (!queues).then(prost_types::Duration::default),
                mode: mode.into(),
                permits,
                capacity,
                preferred: *preferred,
                tokens: *tokens,
                nonce: nonce.to_string().into(),
            };
            (id, ask::Kind::Acquire(acquire))
        }
        Ask::Resume { id, handle } => {
            let handle = handle.clone();
            (id, ask::Kind::Resume(v1::ResumeAsk { handle }))
        }
        Ask::Release { id, lock } => (id, ask::Kind::Release(v1::ReleaseAsk { ask_id: *lock })),
        Ask::Downgrade { id, lock } => {
            (id, ask::Kind::Downgrade(v1::DowngradeAsk { ask_id: *lock }))
        }
        Ask::Ping { id } => (id, ask::Kind::Ping(v1::PingAsk {})),
    };
    v1::Ask {
        id: *id,
        kind: Some(kind),
    }
}

/// What `message` tells. What a later release may add is left out.
pub(super) fn told(message: SessionResponse) -> Vec<Told> {
    let answers = message.answers.into_iter();
    answers
        .filter_map(|answer| one(answer.ask_id, answer.kind?))
        .collect()
}

fn one(id: u64, kind: Kind) -> Option<Told> {
    Some(match kind {
        Kind::Grant(grant) => Told::Granted {
            id,
            handle: grant.handle,
            token: Token::from_number(grant.token),
            tokens: grant.tokens,
            valid_for: length(grant.valid_for),
            counted_from: grant.counted_from,
        },
        Kind::Wait(notice) => Told::Waits {
            id,
            because: because(&notice),
        },
        Kind::Contended(_) => Told::Contended { id },
        Kind::Loss(_) => Told::Lost { id },
        Kind::Release(notice) => Told::Released {
            id,
            answer: match notice.outcome() {
                ReleaseOutcome::Held => ReleaseAnswer::Held,
                ReleaseOutcome::Lost => ReleaseAnswer::Lost,
                ReleaseOutcome::Unknown | ReleaseOutcome::Unspecified => ReleaseAnswer::Unknown,
            },
        },
        Kind::Pong(pong) => {
            let behind = pong.behind.into_iter();
            Told::Pong {
                id,
                valid_for: pong.valid_for.map(|left| length(Some(left))),
                behind: behind
                    .map(|behind| (behind.ask_id, length(behind.valid_for)))
                    .collect(),
            }
        }
        Kind::Refusal(refusal) => {
            let detail = refusal.error.unwrap_or_default();
            match Error::from_detail(detail, refusal.message) {
                lost if lost.reason == Reason::LockLost => Told::Lost { id },
                refused => Told::Refused {
                    id,
                    error: error(&refused),
                },
            }
        }
        Kind::Drain(_) => Told::Drains,
        Kind::Downgrade(notice) => Told::Downgraded {
            id,
            handle: notice.handle,
        },
        Kind::Opened(_) => return None,
    })
}

/// Why a lock is not granted yet.
fn because(notice: &v1::WaitNotice) -> AcquireError {
    match (notice.reason(), &notice.held_by) {
        (WaitReason::Held, Some(held_by)) => held(held_by),
        (reason, _) => CoordinatorError {
            message: notice.message.clone(),
            is_retryable: true,
            effect: Effect::None,
            retry_after: None,
            is_answer: reason == WaitReason::Recovering,
            passes: true,
        }
        .into(),
    }
}

/// The error of a request for a lock.
pub(super) fn error(error: &Error) -> AcquireError {
    match (error.reason, &error.held_by) {
        (Reason::Held | Reason::TimedOut, Some(held_by)) => held(held_by),
        _ => refusal(error).into(),
    }
}

pub(super) fn refusal(error: &Error) -> CoordinatorError {
    CoordinatorError {
        message: error.message.clone(),
        is_retryable: error.is_retryable,
        effect: match error.effect {
            ringfence_api::Effect::None => Effect::None,
            _ => Effect::Unknown,
        },
        retry_after: error.retry_after,
        is_answer: matches!(
            error.reason,
            Reason::Recovering
                | Reason::Moving
                | Reason::OtherKind
                | Reason::TooManyWaiters
                | Reason::TooLate
                | Reason::Held
                | Reason::TimedOut
        ),
        passes: error.is_retryable
            && !matches!(error.reason, Reason::TooManyWaiters | Reason::TooManyHeld),
    }
}

fn held(by: &HeldBy) -> AcquireError {
    AcquireError::Held {
        holder: Label::new(&by.label),
        remaining: length(by.remaining),
        ahead: by.ahead,
    }
}

/// A length of time. One that is missing or negative is 0.
pub(super) fn length(length: Option<prost_types::Duration>) -> Duration {
    length.and_then(ringfence_api::length).unwrap_or_default()
}
