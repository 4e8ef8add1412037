//! Random operations on both.

use std::{ops::Range, time::Duration};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};
use ringfence_coordinator::shard::{LockKind, LockMode, Mode};

/// Keys in play. The slots of the first and of the last one move.
pub(crate) const KEYS: [&str; 4] = ["a", "b", "\0{9}|", "gone"];
/// The keys in slots that move.
pub(crate) const MOVING: [usize; 2] = [0, KEYS.len() - 1];
/// Acquisitions in play,
pub(crate) const NONCES: u64 = 6;
/// of so many clients.
pub(crate) const CLIENTS: u64 = 3;
/// In milliseconds. The shortest lease the engine asks for is 100 ms.
const LEASE_MS: Range<u64> = 1_000..3_000;
const GRACE_MS: Range<u64> = 400..2_000;
const PASS_MS: Range<u64> = 1..900;
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
    /// Slots change, by the keys they are of.
    Change {
        incarnation: u64,
        when: When,
        mode: Mode,
        slots: Vec<usize>,
        /// A token's epoch and counter.
        above: Option<(u64, u64)>,
    },
    /// All pages of a scan.
    Scan(When),
    /// A list; and of which slots it is complete, by the keys they are of.
    List {
        when: When,
        held: Vec<usize>,
        complete: Vec<usize>,
    },
    /// Whether any key is held still.
    StillHeld(When),
    MarkQuiet {
        incarnation: u64,
        map: u64,
        /// Those that move, too.
        all: bool,
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

/// Which move.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// One of an epoch that was never used.
    New,
    /// The latest.
    Latest,
    /// One before it.
    Earlier,
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
        mode: LockMode,
        preferred: bool,
        lease: Duration,
        tokens: u32,
        /// `sent`, and the claim.
        ticket: Option<(u64, Duration)>,
        /// Of which move, and how many shares are left.
        proof: Option<(When, u32)>,
    },
    Confirm {
        claim: Claim,
        lease: Duration,
        tokens: u32,
        install: bool,
    },
    Renew {
        claim: Claim,
        mode: LockMode,
        lease: Duration,
    },
    Release,
    Adopt {
        /// At the former shard.
        own: Claim,
        claim: Claim,
        tokens: u32,
        mode: LockMode,
        lease: Duration,
        when: When,
    },
    Remove(When),
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
    /// With an epoch that is not greater than any that it is armed with.
    pub(crate) late: bool,
    pub(crate) grace: Option<Duration>,
    /// The last key's slot is elsewhere, or moves: by a new move, or at epoch 1.
    pub(crate) away: Option<(When, Mode)>,
}

/// What the keys are: mutexes, or mostly semaphores and read-write locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    Mutexes,
    Shares,
}

/// A run: of everything, or of slots that move, while nothing else happens.
pub(crate) fn run(kinds: Kinds) -> impl Strategy<Value = Vec<Step>> {
    let everything = (arming(), vec(step(kinds), 30..60));
    let moves = arming().prop_map(|arming| Arming {
        grace: None,
        ..arming
    });
    let moves = (moves, vec(step_of_a_move(kinds), 30..60));
    prop_oneof![everything, moves].prop_map(|(arming, mut steps)| {
        let begin = Step::Arm(Arming {
            incarnation: 0,
            ..arming
        });
        steps.insert(0, begin);
        steps
    })
}

fn step(kinds: Kinds) -> impl Strategy<Value = Step> {
    let rearm = || option::weighted(0.9, arming());
    prop_oneof![
        60 => batch(&[0, 1, 2, 3], kinds),
        12 => (0..KEYS.len()).prop_map(|key| Step::Inspect { key }),
        2 => arming().prop_map(Step::Arm),
        8 => mark_quiet(),
        9 => step_of_a_move(kinds),
        2 => (incarnation(), 1..40_u64)
            .prop_map(|(incarnation, epoch)| Step::Raise { incarnation, epoch }),
        4 => rearm().prop_map(|rearm| Step::LoseState { rearm }),
        1 => rearm().prop_map(|rearm| Step::Forget { rearm }),
        11 => PASS_MS.prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        1 => prop_oneof![7 => PASS_MS, 1 => LONG_PASS_MS]
            .prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
    ]
}

fn step_of_a_move(kinds: Kinds) -> impl Strategy<Value = Step> {
    let list = (latest(), vec(held(), 0..4), some_moving());
    prop_oneof![
        10 => batch(&MOVING, kinds),
        5 => change(),
        4 => list.prop_map(|(when, held, complete)| Step::List { when, held, complete }),
        2 => latest().prop_map(Step::Scan),
        1 => latest().prop_map(Step::StillHeld),
        1 => mark_quiet(),
        1 => PASS_MS.prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
    ]
}

fn mark_quiet() -> impl Strategy<Value = Step> {
    (incarnation(), map(), any::<bool>()).prop_map(|(incarnation, map, all)| Step::MarkQuiet {
        incarnation,
        map: map.max(1),
        all,
    })
}

fn batch(keys: &'static [usize], kinds: Kinds) -> impl Strategy<Value = Step> {
    (map(), deeds(keys, kinds)).prop_map(|(map, ops)| Step::Batch { map, ops })
}

/// A batch. Redis applies it by verbs, which must not matter to the tokens: it is of one key, or in
/// that order.
fn deeds(keys: &'static [usize], kinds: Kinds) -> impl Strategy<Value = Vec<Deed>> {
    let of_one_key = select(keys).prop_flat_map(move |key| vec(deed(Just(key), kinds), 1..=8));
    let in_order = vec(deed(select(keys), kinds), 1..=8).prop_map(|mut deeds| {
        deeds.sort_by_key(|deed| match deed.verb {
            Verb::Release => 0,
            Verb::Remove(_) => 1,
            Verb::Renew { .. } => 2,
            Verb::Confirm { .. } => 3,
            Verb::Adopt { .. } => 4,
            Verb::Acquire { mode, .. } => 5 + u8::from(mode != LockMode::Exclusive),
        });
        deeds
    });
    prop_oneof![of_one_key, in_order]
}

fn deed(key: impl Strategy<Value = usize>, kinds: Kinds) -> impl Strategy<Value = Deed> {
    (key, 0..NONCES, verb(), 0..24_u32).prop_map(move |(key, nonce, mut verb, choice)| {
        if kinds == Kinds::Shares
            && let Verb::Acquire {
                mode, preferred, ..
            } = &mut verb
        {
            *mode = mode_of(key, nonce, choice);
            *preferred = mode.kind() == LockKind::ReadWrite && choice.is_multiple_of(3);
        }
        if kinds == Kinds::Shares
            && let Verb::Renew { mode, .. } | Verb::Adopt { mode, .. } = &mut verb
        {
            *mode = mode_of(key, nonce, choice);
        }
        if kinds == Kinds::Shares
            && let Verb::Confirm { install, .. } = &mut verb
        {
            // As a mutex alone.
            *install &= nonce == NONCES - 1;
        }
        Deed { key, nonce, verb }
    })
}

/// Mostly shares of one kind per key. A nonce is of one kind.
fn mode_of(key: usize, nonce: u64, choice: u32) -> LockMode {
    let is_semaphore = key.is_multiple_of(2) != (nonce == NONCES - 2);
    match choice % 8 {
        _ if nonce == NONCES - 1 => LockMode::Exclusive,
        _ if is_semaphore => LockMode::Permits {
            count: 1 + choice % 2,
            capacity: 3 + choice % 3,
        },
        0 | 1 => LockMode::Write,
        _ => LockMode::Read,
    }
}

fn verb() -> impl Strategy<Value = Verb> {
    let lease = || LEASE_MS.prop_map(Duration::from_millis);
    let label = select(vec!["", "host/1", "a|b\r\n", "\u{1f512} %s {1}"]);
    let ticket = option::weighted(0.7, (SENT, lease()));
    let proof = option::weighted(0.3, (latest(), prop_oneof![3 => Just(0), 2 => 1..4_u32]));
    prop_oneof![
        6 => (label, lease(), TOKENS, ticket, proof).prop_map(
            |(label, lease, tokens, ticket, proof)| {
                let mode = LockMode::Exclusive;
                let preferred = false;
                Verb::Acquire { label, mode, preferred, lease, tokens, ticket, proof }
            },
        ),
        2 => (claim(), lease(), TOKENS, any::<bool>()).prop_map(|(claim, lease, tokens, install)| {
            Verb::Confirm { claim, lease, tokens, install }
        }),
        4 => (claim(), lease()).prop_map(|(claim, lease)| {
            let mode = LockMode::Exclusive;
            Verb::Renew { claim, mode, lease }
        }),
        3 => Just(Verb::Release),
        2 => (claim(), claim(), TOKENS, lease(), latest()).prop_map(
            |(own, claim, tokens, lease, when)| {
                let mode = LockMode::Exclusive;
                Verb::Adopt { own, claim, tokens, mode, lease, when }
            },
        ),
        2 => latest().prop_map(Verb::Remove),
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
    let shut = Just((When::Earlier, Mode::Shut));
    let moving = select(vec![Mode::Sealed, Mode::Import]).prop_map(|mode| (When::New, mode));
    let away = option::weighted(0.6, prop_oneof![2 => shut, 1 => moving]);
    let late = prop::bool::weighted(0.8);
    (incarnation(), late, grace, away).prop_map(|(incarnation, late, grace, away)| Arming {
        incarnation,
        late,
        grace,
        away,
    })
}

/// Mostly as movers do, some of it late or never.
fn change() -> impl Strategy<Value = Step> {
    let any = select(vec![Mode::Shut, Mode::Open, Mode::Sealed, Mode::Import]);
    let change = prop_oneof![
        4 => Just((When::New, Mode::Sealed)),
        8 => Just((When::New, Mode::Import)),
        1 => Just((When::New, Mode::Open)),
        2 => Just((When::Latest, Mode::Open)),
        3 => (latest(), any),
    ];
    let above = option::weighted(0.3, (0..40_u64, 0..2_000_u64));
    let slots = subsequence(MOVING.to_vec(), 1..=MOVING.len());
    (incarnation(), change, slots, above).prop_map(|(incarnation, (when, mode), slots, above)| {
        Step::Change {
            incarnation,
            when,
            mode,
            slots,
            above,
        }
    })
}

fn held() -> impl Strategy<Value = usize> {
    prop_oneof![5 => select(MOVING.to_vec()), 1 => 0..KEYS.len()]
}

fn some_moving() -> impl Strategy<Value = Vec<usize>> {
    subsequence(MOVING.to_vec(), 0..=MOVING.len())
}

/// Mostly.
fn latest() -> impl Strategy<Value = When> {
    prop_oneof![6 => Just(When::Latest), 1 => Just(When::Earlier)]
}

/// Relative to the greatest seen: mostly the same.
fn incarnation() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 12 => Just(1), 2 => Just(2)]
}

/// 0 is [`MapVersion::UNKNOWN`](ringfence_coordinator::ids::MapVersion::UNKNOWN).
fn map() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 4 => Just(1), 1 => Just(2)]
}
