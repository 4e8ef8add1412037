//! A mover's steps on the groups of counters while a slot changes hands.

use std::sync::LazyLock;

use ringfence_ring::Slot;
use ringfence_segment_lock::{
    Amount, Caller, Change, Durability, HashKey, RequestId, Terms,
    segment::{Create, Inspect, Money, Op, Prepare, Reply as Told, SegmentView, State},
};

use super::{
    desk::Desk,
    movers::{LATER, MOVE},
};
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    ids::{Epoch, Life, MapVersion},
    limits::COPY_ROWS,
    name::LockKey,
    shard::{
        Admit, Arrival, Arrive, AskGroups, CopyIn, CopyOf, CopyOut, CounterOp, CounterReply,
        CounterRequest, DropGroups, Dropped, Excerpt, Group, Mode, Piece, PutAside, Row, Stamp,
        When,
    },
};

/// More than one piece of a group holds.
pub(super) const MANY: usize = COPY_ROWS + 8;

/// Of every request: the test's beginning.
static TIME_MS: LazyLock<u64> = LazyLock::new(|| BootClock.unix().as_millis() as u64);

/// One segment of an account.
pub(super) fn create() -> CounterOp {
    let prepare = Prepare {
        generation: 1,
        base: 0,
        from_ms: 0,
        closed: false,
        mark_ms: 0,
        manifest: "layout".into(),
    };
    let terms = Terms::in_memory();
    CounterOp::Segment(
        Create {
            prepare,
            terms,
            credit: 0,
            planned_ms: BootClock.unix().as_millis() as u64,
        }
        .into(),
    )
}

/// Two answers to the same request may have other money after it.
pub(super) fn leave_money_out(reply: &mut CounterReply) {
    if let CounterReply::Segment(Ok(Told::Recorded(_, money))) = reply {
        *money = Money::default();
    }
}

pub(super) fn amount(units: i64) -> Amount {
    Amount::new(units).expect("it is positive")
}

pub(super) fn op(name: &str, change: Change) -> CounterOp {
    let op = Op {
        id: RequestId::new(*TIME_MS, name).expect("a name of fair length"),
        change,
        generation: 1,
        lands: Vec::new(),
        logged: true,
        reference: None,
        caller: Caller {
            process: 1,
            call: 1,
        },
    };
    CounterOp::Segment(op.into())
}

pub(super) fn deposit(name: &str, units: i64) -> CounterOp {
    let amount = amount(units);
    op(name, Change::Deposit { amount })
}

pub(super) fn reserve(name: &str, units: i64) -> CounterOp {
    let (amount, deadline_ms) = (
        amount(units),
        *TIME_MS + Terms::in_memory().idempotency_for_ms,
    );
    op(
        name,
        Change::Reserve {
            amount,
            deadline_ms,
        },
    )
}

/// A copy of a group: what a mover has in its hands.
pub(super) struct Copied {
    pub(super) group: Group,
    pub(super) sizes: Vec<u64>,
    pub(super) stamp: Stamp,
    pub(super) pieces: Vec<Vec<Row>>,
    pub(super) source: Life,
}

impl Desk {
    pub(super) async fn count(&mut self, key: &LockKey, op: CounterOp) -> CounterReply {
        let request = CounterRequest {
            key: key.clone(),
            map: MapVersion::UNKNOWN,
            hash_key: HashKey(7),
            op,
        };
        let answers = self.counters.call(&[request]).await;
        answers.expect("an answer").replies.remove(0)
    }

    /// A segment under `key`.
    pub(super) async fn creates(&mut self, key: &LockKey) {
        let created = self.count(key, create()).await;
        assert_eq!(created, CounterReply::Segment(Ok(Told::Prepared)));
    }

    pub(super) async fn deposits(&mut self, key: &LockKey, name: &str, units: i64) {
        let mut reply = self.count(key, deposit(name, units)).await;
        leave_money_out(&mut reply);
        let done = CounterReply::Segment(Ok(Told::Recorded(State::Done, Money::default())));
        assert_eq!(reply, done, "{name}");
    }

    /// A segment under `key` with a manifest, money, and more answers than a piece holds.
    pub(super) async fn fills(&mut self, key: &LockKey) -> SegmentView {
        self.creates(key).await;
        for nth in 0..MANY {
            self.deposits(key, &format!("deposit {nth}"), 3).await;
        }
        self.count(key, reserve("reservation", 2)).await;
        let swap = CounterOp::SwapManifest {
            expected: 0,
            manifest: "layout".into(),
            durability: Durability::Memory,
        };
        assert_eq!(self.count(key, swap).await, CounterReply::Swapped(true));
        self.view(key).await
    }

    /// What the segment under `key` has; its clock is left out.
    pub(super) async fn view(&mut self, key: &LockKey) -> SegmentView {
        match self.count(key, CounterOp::Segment(Inspect.into())).await {
            CounterReply::Segment(Ok(Told::View(view))) => SegmentView { now_ms: 0, ..*view },
            other => panic!("{key}: {other:?}"),
        }
    }

    /// All that it has: a reservation that ends gives back what it held.
    pub(super) async fn owns(&mut self, key: &LockKey) -> i64 {
        let view = self.view(key).await;
        view.value + view.held
    }

    pub(super) async fn groups_left(
        &mut self,
        epoch: Epoch,
        slots: &[Slot],
    ) -> (Vec<Group>, Vec<Slot>) {
        let slots = slots.to_vec();
        let when = When::Sealed;
        let ask = AskGroups { epoch, slots, when };
        let found = self.mover.groups(&ask).await.expect("an answer");
        (found.groups, found.refused)
    }

    pub(super) async fn piece(&mut self, epoch: Epoch, key: &LockKey) -> Option<Piece> {
        let copy = CopyOut {
            epoch,
            key: key.clone(),
            what: Excerpt::Rows(None),
        };
        self.mover.copy_out(&copy).await.expect("an answer")
    }

    /// Copies the group of `key`, whose slot leaves by `epoch`.
    pub(super) async fn copies(&mut self, epoch: Epoch, key: &LockKey) -> Copied {
        let (groups, refused) = self.groups_left(epoch, &[key.slot()]).await;
        assert_eq!(refused, []);
        let group = groups.into_iter().find(|group| group.key == *key);
        let mut copied = Copied {
            group: group.expect("it is left"),
            sizes: Vec::new(),
            stamp: Stamp::default(),
            pieces: Vec::new(),
            source: self.link.life().clone(),
        };
        let blocks = copied.group.blocks.clone();
        let mut copy = CopyOut {
            epoch,
            key: key.clone(),
            what: Excerpt::Blocks(blocks.clone()),
        };
        if !blocks.is_empty() {
            let piece = self.mover.copy_out(&copy).await.expect("an answer");
            copied.pieces.push(piece.expect("it is left").rows);
        }
        copy.what = Excerpt::Rows(None);
        loop {
            let piece = self.mover.copy_out(&copy).await.expect("an answer");
            let piece = piece.expect("it is left");
            let Piece {
                sizes,
                rows,
                next,
                stamp,
            } = piece;
            assert!(rows.len() <= 2 * COPY_ROWS, "{} rows", rows.len());
            (copied.sizes, copied.stamp) = (sizes, stamp);
            copied.pieces.push(rows);
            if next.is_none() {
                return copied;
            }
            copy.what = Excerpt::Rows(next);
        }
    }

    /// Puts some pieces of a copy aside; answers whether they were taken.
    pub(super) async fn puts(
        &mut self,
        epoch: Epoch,
        copied: &Copied,
        pieces: &[Vec<Row>],
    ) -> bool {
        let mut taken = true;
        for rows in pieces {
            let put = CopyIn {
                epoch,
                source: copied.source.clone(),
                group: copied.group.clone(),
                rows: rows.clone(),
            };
            taken &= self.mover.copy_in(&put).await.expect("an answer") != PutAside::Refused;
        }
        taken
    }

    pub(super) async fn arrives(&mut self, epoch: Epoch, copied: &Copied) -> Arrival {
        let arrive = Arrive {
            epoch,
            source: copied.source.clone(),
            group: copied.group.clone(),
            sizes: copied.sizes.clone(),
            stamp: copied.stamp.clone(),
        };
        match self.mover.arrive(&arrive).await.expect("an answer") {
            // What it is a copy of is another question.
            Arrival::Here(_) => Arrival::Here(None),
            other => other,
        }
    }

    /// Drops the group of `key`, in any state.
    pub(super) async fn drops(&mut self, epoch: Epoch, key: &LockKey) -> Vec<Slot> {
        self.drops_copied(epoch, key, None).await.refused
    }

    /// Drops it, if it is what was copied.
    pub(super) async fn drops_copied(
        &mut self,
        epoch: Epoch,
        key: &LockKey,
        copy: Option<CopyOf>,
    ) -> Dropped {
        let groups = vec![(key.clone(), copy)];
        let drop = DropGroups { epoch, groups };
        self.mover.drop_groups(&drop).await.expect("an answer")
    }

    pub(super) async fn admits(&mut self, epoch: Epoch, key: &LockKey) -> Vec<Slot> {
        let slots = vec![key.slot()];
        let admit = Admit {
            epoch,
            slots,
            complete: true,
        };
        self.mover.admit(&admit).await.expect("an answer")
    }

    /// A filled group that left by [`MOVE`] and is dropped; its slot comes back by [`LATER`].
    pub(super) async fn leaves(&mut self, key: &LockKey) -> (Copied, SegmentView) {
        let view = self.fills(key).await;
        self.becomes(key, MOVE, Mode::Sealed).await;
        let copied = self.copies(MOVE, key).await;
        assert!(copied.pieces.len() > 1, "it has more than one piece");
        assert_eq!(self.drops(MOVE, key).await, []);
        self.becomes(key, LATER, Mode::Import).await;
        (copied, view)
    }
}
