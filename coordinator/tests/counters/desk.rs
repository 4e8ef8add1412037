//! One link to an armed shard, and what is asked of segments over it.

use std::{sync::LazyLock, time::Duration};

use ringfence_coordinator::{
    clock::{BootClock, Clock},
    ids::{ClientId, Epoch, Incarnation, MapVersion},
    name::{LockKey, Namespace},
    shard::{
        Arm, CounterLink, CounterOp, CounterReply, CounterRequest, Counters, Grace, Mode, Shard,
        SlotState, SlotStates,
    },
};
use ringfence_ring::SlotCount;
use ringfence_segment_lock::{
    Amount, Caller, Change, HashKey, RequestId, Terms,
    segment::{Answer, Create, Inspect, Money, Op, Prepare, Reply, Request, SegmentView},
};

/// Id of the topology that a fixture's server belongs to.
const TOPOLOGY: &str = "00112233445566778899aabbccddeeff";

/// A link, and short words for what it is asked.
pub(crate) struct Desk {
    pub(crate) link: Box<dyn CounterLink>,
}

impl Desk {
    /// At a shard that is armed with `epoch`, if it was not armed before.
    pub(crate) async fn open(shard: &dyn Shard, epoch: u64) -> Self {
        let counters = match epoch {
            1 => Counters::Never,
            _ => Counters::Kept,
        };
        Self::armed(shard, epoch, counters).await
    }

    /// The same; its slots have had these `counters`.
    pub(crate) async fn armed(shard: &dyn Shard, epoch: u64, counters: Counters) -> Self {
        let slots = SlotCount::new(16).unwrap();
        let epoch = Epoch(epoch);
        let arm = Arm {
            topology: TOPOLOGY.into(),
            incarnation: Incarnation {
                number: epoch.0,
                engine: ClientId(1),
            },
            epoch,
            token_epoch: epoch,
            declared: MapVersion::UNKNOWN,
            slots: SlotStates::new(slots.iter(), |_| SlotState {
                mode: Mode::Open,
                epoch,
            }),
            grace: Grace::None,
            counters,
            copy: (epoch.0, "record".into()),
        };
        let mut control = shard.connect_control(None).await.unwrap();
        control.arm(&arm).await.unwrap();
        let link = shard.connect_counters(None).await.unwrap();
        Self { link }
    }

    pub(crate) async fn batch(&mut self, batch: &[(LockKey, CounterOp)]) -> Vec<CounterReply> {
        let batch = batch.iter().map(|(key, op)| CounterRequest {
            key: key.clone(),
            map: MapVersion::UNKNOWN,
            hash_key: HashKey(7),
            op: op.clone(),
        });
        let batch: Vec<_> = batch.collect();
        self.link.call(&batch).await.unwrap().replies
    }

    /// The answer, apart from the money after it.
    pub(crate) async fn one(&mut self, key: &LockKey, op: CounterOp) -> CounterReply {
        without_money(self.batch(&[(key.clone(), op)]).await.remove(0))
    }

    /// What the segment answers, apart from the money after it.
    pub(crate) async fn ask(&mut self, key: &LockKey, request: impl Into<Request>) -> Answer {
        match self.one(key, CounterOp::Segment(request.into())).await {
            CounterReply::Segment(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The segment's money, doubtful or not.
    pub(crate) async fn view(&mut self, key: &LockKey) -> SegmentView {
        match self.ask(key, Inspect).await {
            Ok(Reply::View(view)) => *view,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn without_money(reply: CounterReply) -> CounterReply {
    match reply {
        CounterReply::Segment(Ok(Reply::Recorded(state, _))) => {
            CounterReply::Segment(Ok(Reply::Recorded(state, Money::default())))
        }
        reply => reply,
    }
}

pub(crate) fn key(name: &str) -> LockKey {
    let namespace = Namespace::new("money").unwrap();
    LockKey::new(&namespace, name.as_bytes(), SlotCount::new(16).unwrap()).unwrap()
}

pub(crate) fn now_ms() -> u64 {
    BootClock.unix().as_millis() as u64
}

/// A request of the test's beginning.
pub(crate) fn id(name: &str) -> RequestId {
    static TIME_MS: LazyLock<u64> = LazyLock::new(|| BootClock.unix().as_millis() as u64);
    RequestId::new(*TIME_MS, name).unwrap()
}

pub(crate) fn caller(call: u64) -> Caller {
    Caller { process: 7, call }
}

/// Creates a segment that every id is known to.
pub(crate) fn create(terms: Terms) -> Create {
    Create {
        prepare: Prepare {
            generation: 1,
            base: 0,
            from_ms: 0,
            closed: false,
            mark_ms: 0,
            manifest: "layout".into(),
        },
        credit: terms.credit(),
        planned_ms: now_ms(),
        terms,
    }
}

pub(crate) fn op(id: &RequestId, change: Change) -> Op {
    Op {
        id: id.clone(),
        change,
        generation: 1,
        lands: Vec::new(),
        logged: true,
        reference: None,
        caller: caller(1),
    }
}

pub(crate) fn deposit(id: &RequestId, amount: i64) -> Op {
    let amount = Amount::new(amount).unwrap();
    op(id, Change::Deposit { amount })
}

pub(crate) fn deduct(id: &RequestId, amount: i64) -> Op {
    let amount = Amount::new(amount).unwrap();
    op(id, Change::Deduct { amount })
}

/// Until `is_so`, or for ten seconds.
pub(crate) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let patience = Duration::from_secs(120);
    let waited = tokio::time::timeout(patience, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("in time");
}
