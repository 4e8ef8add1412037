//! What is done to both, at random.

use std::{ops::Range, time::Duration};

use proptest::{collection::vec, option, prelude::*, sample::select};

/// Keys in play. The slot of the last one may be shut.
pub(crate) const KEYS: [&str; 4] = ["a", "b", "\0{9}|", "gone"];
/// Acquisitions in play,
pub(crate) const NONCES: u64 = 6;
/// of so many clients.
pub(crate) const CLIENTS: u64 = 3;
/// In milliseconds. The shortest lease the engine asks for is 100 ms.
const LEASE_MS: Range<u64> = 100..300;
const GRACE_MS: Range<u64> = 40..200;
const PASS_MS: Range<u64> = 1..90;
/// Tickets end, or nearly.
const LONG_PASS_MS: Range<u64> = 2_500..3_300;
/// A sender's clock, which may be asked for in any order.
const SENT: Range<u64> = 0..1_000;
const TOKENS: Range<u32> = 1..5;

/// One thing done to both.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Batch {
        map: u64,
        ops: Vec<Deed>,
    },
    Inspect {
        key: usize,
    },
    Arm(Arming),
    Settle {
        incarnation: u64,
        map: u64,
        shut_too: bool,
    },
    Raise {
        incarnation: u64,
        epoch: u64,
    },
    /// The life's state is gone, and mostly armed again at once; records stay.
    LoseState {
        rearm: Option<Arming>,
    },
    /// So are the records.
    Forget {
        rearm: Option<Arming>,
    },
    Pass(Duration),
}

/// One operation of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) key: usize,
    pub(crate) nonce: u64,
    pub(crate) verb: Verb,
}

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Acquire {
        label: &'static str,
        lease: Duration,
        tokens: u32,
        /// `sent`, and the claim.
        ticket: Option<(u64, Duration)>,
    },
    Renew {
        claim: Claim,
        lease: Duration,
    },
    Release,
}

/// Which token a renewal presents.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// The nonce's last one.
    Own,
    /// One that was seen, or is near to it.
    Other { epoch: u64, counter: u64 },
}

/// An arming. Its epochs are always fresh.
#[derive(Clone, Debug)]
pub(crate) struct Arming {
    pub(crate) incarnation: u64,
    pub(crate) grace: Option<Duration>,
    pub(crate) shut: bool,
}

/// A run.
pub(crate) fn run() -> impl Strategy<Value = Vec<Step>> {
    let begin = arming().prop_map(|arming| {
        Step::Arm(Arming {
            incarnation: 0,
            ..arming
        })
    });
    (begin, vec(step(), 30..60)).prop_map(|(begin, mut steps)| {
        steps.insert(0, begin);
        steps
    })
}

fn step() -> impl Strategy<Value = Step> {
    let rearm = || option::weighted(0.9, arming());
    prop_oneof![
        60 => (map(), deeds()).prop_map(|(map, ops)| Step::Batch { map, ops }),
        12 => (0..KEYS.len()).prop_map(|key| Step::Inspect { key }),
        2 => arming().prop_map(Step::Arm),
        8 => (incarnation(), map(), any::<bool>()).prop_map(|(incarnation, map, shut_too)| {
            Step::Settle { incarnation, map: map.max(1), shut_too }
        }),
        2 => (incarnation(), 1..40_u64)
            .prop_map(|(incarnation, epoch)| Step::Raise { incarnation, epoch }),
        4 => rearm().prop_map(|rearm| Step::LoseState { rearm }),
        1 => rearm().prop_map(|rearm| Step::Forget { rearm }),
        11 => PASS_MS.prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        1 => prop_oneof![7 => PASS_MS, 1 => LONG_PASS_MS]
            .prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
    ]
}

/// A batch. Redis applies it by verbs, which must not matter to the tokens: it is of one key, or in
/// that order.
fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let of_one_key = (0..KEYS.len(), vec(deed(), 1..=8)).prop_map(|(key, mut deeds)| {
        deeds.iter_mut().for_each(|deed| deed.key = key);
        deeds
    });
    let in_order = vec(deed(), 1..=8).prop_map(|mut deeds| {
        deeds.sort_by_key(|deed| match deed.verb {
            Verb::Release => 0,
            Verb::Renew { .. } => 1,
            Verb::Acquire { .. } => 2,
        });
        deeds
    });
    prop_oneof![of_one_key, in_order]
}

fn deed() -> impl Strategy<Value = Deed> {
    (0..KEYS.len(), 0..NONCES, verb()).prop_map(|(key, nonce, verb)| Deed { key, nonce, verb })
}

fn verb() -> impl Strategy<Value = Verb> {
    let lease = || LEASE_MS.prop_map(Duration::from_millis);
    let label = select(vec!["", "host/1", "a|b\r\n", "\u{1f512} %s {1}"]);
    let ticket = option::weighted(0.7, (SENT, lease()));
    prop_oneof![
        6 => (label, lease(), TOKENS, ticket).prop_map(|(label, lease, tokens, ticket)| {
            Verb::Acquire { label, lease, tokens, ticket }
        }),
        4 => (claim(), lease()).prop_map(|(claim, lease)| Verb::Renew { claim, lease }),
        3 => Just(Verb::Release),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    let other = (0..40_u64, 0..30_u64);
    prop_oneof![
        2 => Just(Claim::Own),
        1 => other.prop_map(|(epoch, counter)| Claim::Other { epoch, counter }),
    ]
}

fn arming() -> impl Strategy<Value = Arming> {
    let grace = option::weighted(0.7, GRACE_MS.prop_map(Duration::from_millis));
    (incarnation(), grace, prop::bool::weighted(0.4)).prop_map(|(incarnation, grace, shut)| {
        Arming {
            incarnation,
            grace,
            shut,
        }
    })
}

/// Relative to the greatest seen: mostly the same.
fn incarnation() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 12 => Just(1), 2 => Just(2)]
}

/// 0 is [`MapVersion::UNKNOWN`](ringfence_coordinator::ids::MapVersion::UNKNOWN).
fn map() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 4 => Just(1), 1 => Just(2)]
}
