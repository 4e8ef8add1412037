//! What a test works at: links to an armed shard, and short words for what it sends.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use ringfence_ring::{Slot, SlotCount};

use super::Fixture;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Incarnation, MapVersion, Nonce, Token},
    limits::LEASE_MAX,
    name::{Label, LockKey, Namespace},
    shard::{
        Answers, Arm, ArmAnswer, ControlLink, CounterLink, Counters, Grace, Holder, LockLane,
        LockLink, LockMode, MarkQuiet, Mode, Op, Reply, Request, ShardError, SlotState, SlotStates,
    },
};

/// A lease, or a grace, that no test lets end.
pub(super) const LONG: Duration = LEASE_MAX;
/// A lease, or a grace, that a test lets end. It ends before a ticket does.
pub(super) const SHORT: Duration = Duration::from_millis(2_500);
/// Enough for it to have ended.
pub(super) const PAST_SHORT: Duration = Duration::from_millis(2_700);
/// The epoch, and the incarnation's number, that a shard is armed with at first.
pub(super) const FIRST: u64 = 5;
/// The map version a quiet shard is quiet at.
pub(super) const QUIET: MapVersion = MapVersion(7);

/// As on a small ring: the suite arms often.
pub(super) fn slot_count() -> SlotCount {
    SlotCount::new(16).expect("16 is a power of two within bounds")
}

pub(super) fn all_slots() -> Vec<Slot> {
    slot_count().iter().collect()
}

/// The requester, if it does not matter.
const ANYBODY: ClientId = ClientId(0xfeed << 64);

/// One that no other acquisition has.
pub(super) fn nonce() -> Nonce {
    nonce_of(ANYBODY)
}

/// As [`nonce`], of that client.
pub(super) fn nonce_of(client: ClientId) -> Nonce {
    static SEQUENCE: AtomicU64 = AtomicU64::new(1);
    Nonce {
        client,
        sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed),
    }
}

pub(super) fn incarnation(number: u64) -> Incarnation {
    Incarnation {
        number,
        engine: ClientId(1),
    }
}

/// What arms a shard with `number` for an epoch and an incarnation: all slots open.
pub(super) fn arm(fixture: &dyn Fixture, number: u64, grace: Grace) -> Arm {
    let epoch = Epoch(number);
    Arm {
        topology: fixture.topology(),
        incarnation: incarnation(number),
        epoch,
        token_epoch: epoch,
        declared: MapVersion::UNKNOWN,
        slots: SlotStates::new(slot_count().iter(), |_| SlotState {
            mode: Mode::Open,
            epoch,
        }),
        grace,
        counters: Counters::Kept,
        copy: (number, format!("record {number}")),
    }
}

/// Every slot open, but `shut`, which left at epoch 3.
pub(super) fn all_open_but(shut: Slot) -> SlotStates {
    SlotStates::new(slot_count().iter(), |slot| {
        let mode = if slot == shut { Mode::Shut } else { Mode::Open };
        SlotState {
            mode,
            epoch: Epoch(if slot == shut { 3 } else { FIRST }),
        }
    })
}

pub(super) fn quiet_mark(number: u64, map: MapVersion, slots: Vec<Slot>) -> MarkQuiet {
    MarkQuiet {
        incarnation: incarnation(number),
        copy: (number, format!("record {number}")),
        map,
        slots,
    }
}

pub(super) async fn locks(fixture: &dyn Fixture) -> Box<dyn LockLink> {
    let link = fixture.shard().connect_locks(LockLane::Work, None).await;
    link.expect("the shard can be reached")
}

pub(super) async fn counters(fixture: &dyn Fixture) -> Box<dyn CounterLink> {
    let link = fixture.shard().connect_counters(None).await;
    link.expect("the shard can be reached")
}

pub(super) async fn control(fixture: &dyn Fixture) -> Box<dyn ControlLink> {
    let link = fixture.shard().connect_control(None).await;
    link.expect("the shard can be reached")
}

pub(super) async fn mover(fixture: &dyn Fixture) -> Box<dyn ControlLink> {
    let link = fixture.shard().connect_control(None).await;
    link.expect("the shard can be reached")
}

/// Arms over a connection of its own.
pub(super) async fn armed_with(
    fixture: &dyn Fixture,
    number: u64,
    grace: Grace,
) -> Result<ArmAnswer, ShardError> {
    control(fixture)
        .await
        .arm(&arm(fixture, number, grace))
        .await
}

/// Marks the shard quiet, over a connection of its own.
pub(super) async fn marked_quiet(
    fixture: &dyn Fixture,
    mark: &MarkQuiet,
) -> Result<bool, ShardError> {
    control(fixture).await.mark_quiet(mark).await
}

/// A link of each kind, one map version, and a namespace.
pub(super) struct Desk {
    pub(super) link: Box<dyn LockLink>,
    pub(super) counters: Box<dyn CounterLink>,
    pub(super) mover: Box<dyn ControlLink>,
    pub(super) map: MapVersion,
    /// When a namespace was last declared, by the view of its requests.
    pub(super) declared: MapVersion,
    /// As the fixture has it.
    pub(super) late: Duration,
    namespace: Namespace,
}

impl Desk {
    /// A desk at a shard armed as given.
    pub(super) async fn armed(fixture: &dyn Fixture, grace: Grace) -> Self {
        let answer = armed_with(fixture, FIRST, grace)
            .await
            .expect("it was not armed");
        assert!(answer.armed_now, "{answer:?}");
        Self::open(fixture, MapVersion::UNKNOWN).await
    }

    /// A desk at a shard that is armed already, or is not.
    pub(super) async fn open(fixture: &dyn Fixture, map: MapVersion) -> Self {
        let name = if map == MapVersion::UNKNOWN {
            "full"
        } else {
            "quiet"
        };
        Self {
            link: locks(fixture).await,
            counters: counters(fixture).await,
            mover: mover(fixture).await,
            map,
            declared: MapVersion::UNKNOWN,
            late: fixture.late(),
            namespace: Namespace::new(name).expect("two plain words"),
        }
    }

    /// Two desks at one armed and quiet shard: one that has every slot looked at, one that trusts
    /// the quiet. Their keys differ.
    pub(super) async fn both_ways(fixture: &dyn Fixture) -> [Self; 2] {
        let full = Self::armed(fixture, Grace::None).await;
        let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
        assert!(quiet.expect("it is armed"), "every slot is open");
        let mut quiet = Self::open(fixture, QUIET).await;
        assert!(quiet.is_quiet().await);
        [full, quiet]
    }

    pub(super) fn key(&self, name: impl AsRef<[u8]>) -> LockKey {
        LockKey::new(&self.namespace, name.as_ref(), slot_count()).expect("a key of fair length")
    }

    pub(super) fn request(&self, key: &LockKey, op: Op) -> Request {
        Request {
            key: key.clone(),
            map: self.map,
            declared: self.declared,
            op,
        }
    }

    pub(super) async fn batch(&mut self, batch: &[Request]) -> Answers {
        let answers = self.link.call(batch).await.expect("an answer");
        assert_eq!(answers.replies.len(), batch.len());
        answers
    }

    pub(super) async fn one(&mut self, key: &LockKey, op: Op) -> Reply {
        let request = self.request(key, op);
        self.batch(&[request]).await.replies.remove(0)
    }

    /// Whether the shard is quiet at this desk's map version.
    pub(super) async fn is_quiet(&mut self) -> bool {
        let request = self.request(&self.key("is it quiet"), acquire(nonce(), SHORT));
        self.batch(&[request]).await.quiet
    }

    pub(super) async fn acquire(&mut self, key: &LockKey, nonce: Nonce, lease: Duration) -> Reply {
        self.one(key, acquire(nonce, lease)).await
    }

    /// Acquires what nobody else can have.
    pub(super) async fn granted(&mut self, key: &LockKey, nonce: Nonce, lease: Duration) -> Token {
        match self.acquire(key, nonce, lease).await {
            Reply::Granted { token, .. } => token,
            other => panic!("{key} was to be granted: {other:?}"),
        }
    }

    pub(super) async fn renew(
        &mut self,
        key: &LockKey,
        (nonce, token): (Nonce, Token),
        lease: Duration,
    ) -> Reply {
        self.one(key, renew(nonce, token, lease)).await
    }

    pub(super) async fn release(&mut self, key: &LockKey, nonce: Nonce) -> Reply {
        self.one(key, Op::Release { nonce }).await
    }

    /// The live record of `key`.
    pub(super) async fn inspect(&mut self, key: &LockKey) -> Option<Holder> {
        self.mover.inspect(key).await.expect("an answer").holder
    }

    /// The nonce of the record of `key`.
    pub(super) async fn holder(&mut self, key: &LockKey) -> Option<Nonce> {
        self.inspect(key).await.map(|holder| holder.nonce)
    }
}

pub(super) fn acquire(nonce: Nonce, lease: Duration) -> Op {
    Op::Acquire {
        nonce,
        label: Label::new("suite"),
        lease,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: None,
        proof: None,
    }
}

pub(super) fn renew(nonce: Nonce, token: Token, lease: Duration) -> Op {
    Op::Renew {
        nonce,
        label: Label::new("suite"),
        token,
        mode: LockMode::Exclusive,
        lease,
    }
}
