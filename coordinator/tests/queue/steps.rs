//! Random operations on one key.

use std::{ops::Range, time::Duration};

use proptest::{collection::vec, option, prelude::*};
use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, Nonce, Token},
    limits::TICKET_KEEP,
    name::Label,
    shard::{LockMode, Op, Ticket},
};

/// Acquisitions in play,
const NONCES: u64 = 6;
/// of so many clients.
pub(crate) const CLIENTS: u64 = 3;

/// Of leases and claims, in milliseconds.
const LENGTH_MS: Range<u64> = 100..4_000;

/// One thing done.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ask(Op),
    Elapse(Duration),
}

/// Many steps.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keep = TICKET_KEEP.as_millis() as u64;
    let pause = prop_oneof![1..300_u64, 1..keep, keep - 50..keep + 50]
        .prop_map(|ms| Step::Elapse(Duration::from_millis(ms)));
    let step = prop_oneof![
        20 => op().prop_map(Step::Ask),
        4 => pause,
    ];
    vec(step, 1..60)
}

fn op() -> impl Strategy<Value = Op> {
    let length = || LENGTH_MS.prop_map(Duration::from_millis);
    let ticket = (0..50_u64, length()).prop_map(|(sent, claim)| Ticket {
        sent: Instant::from_nanos(sent),
        claim,
        callers: 1,
    });
    let acquire = (nonce(), length(), 1..5_u32, option::weighted(0.8, ticket));
    prop_oneof![
        5 => acquire.prop_map(|(nonce, lease, tokens, ticket)| Op::Acquire {
            nonce,
            label: Label::new(&nonce.sequence.to_string()),
            lease,
            mode: LockMode::Exclusive,
            preferred: false,
            tokens,
            ticket,
            proof: None,
        }),
        1 => (nonce(), length()).prop_map(|(nonce, lease)| Op::Renew {
            nonce,
            label: Label::default(),
            token: Token::default(),
            mode: LockMode::Exclusive,
            lease,
        }),
        3 => nonce().prop_map(|nonce| Op::Release { nonce }),
    ]
}

fn nonce() -> impl Strategy<Value = Nonce> {
    (0..NONCES).prop_map(|sequence| Nonce {
        client: ClientId((sequence % CLIENTS).into()),
        sequence,
    })
}
