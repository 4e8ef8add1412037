//! Short words for slots that move: what a mover does, and what holders and waiters send meanwhile.

use std::time::Duration;

use ringfence_ring::Slot;

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, QUIET, acquire, all_slots, arm, control, incarnation, marked_quiet,
        quiet_mark, slot_count,
    },
    line::queue,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Nonce, Token},
    name::{Label, LockKey},
    shard::{
        Grace, Listing, LockMode, Mode, Op, Proof, Scan, ScanPage, SlotState, SlotStates, Step,
        Stepped, StillHeld,
    },
};

/// The epoch of a move: above what a shard is armed with at first, and again after a restart.
pub(super) const MOVE: Epoch = Epoch(FIRST + 10);
/// That of an earlier one, which is above that too.
pub(super) const EARLIER: Epoch = Epoch(MOVE.0 - 1);
/// And of a later one.
pub(super) const LATER: Epoch = Epoch(MOVE.0 + 1);

pub(super) fn step(epoch: Epoch, mode: Mode, slots: &[Slot]) -> Step {
    Step {
        incarnation: incarnation(FIRST),
        map: MapVersion::UNKNOWN,
        copy: (epoch.0, format!("record {epoch}")),
        epoch,
        mode,
        slots: slots.to_vec(),
        above: Token::default(),
    }
}

/// A desk at a shard where the slot of the key called `key` is in `mode` since [`MOVE`], and all others
/// are open.
pub(super) async fn moving_desk(fixture: &dyn Fixture, mode: Mode) -> (Desk, LockKey) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.becomes(&key, MOVE, mode).await;
    (desk, key)
}

/// Two desks at one armed shard, like those of [`Desk::both_ways`], and a key in a sealed slot. The
/// shard is quiet at the map by which the slot migrates.
pub(super) async fn quiet_beside_sealed(fixture: &dyn Fixture) -> ([Desk; 2], LockKey) {
    let [mut full, desk] = Desk::both_ways(fixture).await;
    let key = desk.key("key");
    seal_quietly(fixture, &mut full, &key).await;
    ([full, desk], key)
}

/// Seals the slot of `key`; the shard is quiet at the map by which it migrates.
pub(super) async fn seal_quietly(fixture: &dyn Fixture, desk: &mut Desk, key: &LockKey) {
    desk.becomes(key, MOVE, Mode::Sealed).await;
    let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_but(key))).await;
    assert!(quiet.expect("it is armed"));
}

/// Every slot but that of `key`.
pub(super) fn all_but(key: &LockKey) -> Vec<Slot> {
    let mut rest = all_slots();
    rest.retain(|slot| *slot != key.slot());
    rest
}

/// Arms a life with `number`, where the slot of `key` is in `mode` since [`MOVE`], and all others are open.
pub(super) async fn armed_in(
    fixture: &dyn Fixture,
    (number, grace): (u64, Grace),
    (key, mode): (&LockKey, Mode),
) {
    let mut arm = arm(fixture, number, grace);
    let open = arm.slots.clone();
    arm.slots = SlotStates::new(slot_count().iter(), |slot| {
        if slot == key.slot() {
            SlotState { mode, epoch: MOVE }
        } else {
            open.get(slot)
        }
    });
    let answer = control(fixture).await.arm(&arm).await;
    assert!(answer.expect("it was not armed").armed_now);
}

impl Desk {
    /// Any other key of the slot of `key`.
    pub(super) fn beside(&self, key: &LockKey) -> LockKey {
        self.many_beside(key).next().expect("keys fall in any slot")
    }

    /// Other keys of the slot of `key`: as many as are wanted.
    pub(super) fn many_beside<'a>(&'a self, key: &'a LockKey) -> impl Iterator<Item = LockKey> {
        let others = (0_u32..).map(|at| self.key(format!("beside/{at}")));
        others.filter(|other| other.slot() == key.slot())
    }

    /// Makes a mover's step.
    pub(super) async fn step(&mut self, step: &Step) -> Stepped {
        self.mover.step(step).await.expect("an answer")
    }

    /// Changes the slot of `key`, which nothing forbids.
    pub(super) async fn becomes(&mut self, key: &LockKey, epoch: Epoch, mode: Mode) -> Stepped {
        let stepped = self.step(&step(epoch, mode, &[key.slot()])).await;
        assert_eq!(stepped.refused, [], "{mode:?} at {epoch}");
        stepped
    }

    /// The keys that are held in the slots sealed at `epoch`, in their order.
    pub(super) async fn scanned(&mut self, epoch: Epoch) -> Vec<LockKey> {
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let scan = Scan { epoch, after };
            let ScanPage {
                grace_left,
                held: found,
                next,
            } = self.mover.scan(&scan).await.expect("an answer");
            assert_eq!(grace_left, Duration::ZERO);
            held.extend(found);
            after = next;
            if after.is_none() {
                break;
            }
        }
        held.sort();
        held.dedup();
        held
    }

    /// Tells the `held` keys by the move [`MOVE`], and that the list is complete for the slots
    /// `complete`.
    pub(super) async fn lists(&mut self, held: Vec<LockKey>, complete: &[Slot]) -> Vec<Slot> {
        self.lists_at(MOVE, held, complete).await
    }

    /// As [`lists`](Self::lists), of the move at `epoch`.
    pub(super) async fn lists_at(
        &mut self,
        epoch: Epoch,
        held: Vec<LockKey>,
        complete: &[Slot],
    ) -> Vec<Slot> {
        let listing = Listing {
            epoch,
            held,
            complete: complete.to_vec(),
        };
        self.mover.take_list(&listing).await.expect("an answer")
    }

    /// Asks with a ticket for what only a proof makes free.
    pub(super) async fn waits_for_proof(&mut self, key: &LockKey, nonce: Nonce, sent: u64) {
        let reply = self.one(key, queue(nonce, sent)).await;
        assert_eq!(word(&reply), "need proof", "{key}");
    }

    /// The waiters for `key`, in order.
    pub(super) async fn waiting(&mut self, key: &LockKey) -> Vec<Nonce> {
        let found = self.mover.inspect(key).await.expect("an answer");
        found.waiters.iter().map(|waiter| waiter.nonce).collect()
    }
}

/// The proof that the former shard has no holder left.
pub(super) const ABSENT: Proof = Proof {
    epoch: MOVE,
    left: 0,
};

/// An acquire with the proof that the former shard has no holder left, of the move at `epoch`.
pub(super) fn proving(nonce: Nonce, epoch: Epoch) -> Op {
    with_proof(acquire(nonce, LONG), Proof { epoch, ..ABSENT })
}

/// `op`, an acquire, with the proof `its`.
pub(super) fn with_proof(mut op: Op, its: Proof) -> Op {
    if let Op::Acquire { proof, .. } = &mut op {
        *proof = Some(its);
    }
    op
}

/// How many tokens an adopted lock has in use.
pub(super) const IN_USE: u32 = 8;

pub(super) fn adopt(nonce: Nonce, token: Token, epoch: Epoch) -> Op {
    adopt_agreed(nonce, (token, token), epoch)
}

/// An adoption with a token at the former shard and the greatest one of all replicas.
pub(super) fn adopt_agreed(nonce: Nonce, (own, token): (Token, Token), epoch: Epoch) -> Op {
    Op::Adopt {
        nonce,
        label: Label::new("brought along"),
        own,
        token,
        tokens: IN_USE,
        mode: LockMode::Exclusive,
        lease: LONG,
        epoch,
    }
}

pub(super) fn still(epoch: Epoch, keys: &[&LockKey], slots: &[Slot]) -> StillHeld {
    StillHeld {
        epoch,
        keys: keys.iter().map(|&key| key.clone()).collect(),
        slots: slots.to_vec(),
    }
}
