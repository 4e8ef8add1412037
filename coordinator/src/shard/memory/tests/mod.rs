//! What the conformance suite leaves out: faults, and properties that only this backend can show.

mod faults;
mod lives;
mod migration;
mod waiting;

use std::{sync::Arc, time::Duration};

use ringfence_ring::SlotCount;

use super::MemoryShard;
use crate::{
    clock::TokioClock,
    ids::{ClientId, Epoch, Incarnation, MapVersion, Nonce, Token},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{
        Arm, ControlLink, Counters, Grace, LockLane, LockLink, LockMode, Mode, Op, Reply, Request,
        Shard, ShardError, SlotState, SlotStates, Ticket,
    },
};

const LEASE: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(5);

fn shard() -> Arc<MemoryShard> {
    seeded(1)
}

fn seeded(seed: u64) -> Arc<MemoryShard> {
    let clock = TokioClock::starting_at(Duration::ZERO);
    MemoryShard::new(Arc::new(clock), Arc::new(Random::seeded(seed)))
}

fn arm(number: u64, grace: Grace) -> Arm {
    let epoch = Epoch(number);
    let open = |_| SlotState {
        mode: Mode::Open,
        epoch,
    };
    Arm {
        topology: "test".into(),
        incarnation: Incarnation {
            number,
            engine: ClientId(0),
        },
        epoch,
        token_epoch: epoch,
        declared: MapVersion::UNKNOWN,
        slots: SlotStates::new(SlotCount::new(16).unwrap().iter(), open),
        grace,
        counters: Counters::Never,
        copy: (number, format!("record {number}")),
    }
}

async fn locks(shard: &MemoryShard, lane: LockLane) -> Box<dyn LockLink> {
    shard.connect_locks(lane, None).await.unwrap()
}

/// A connection of a mover.
async fn mover(shard: &MemoryShard) -> Box<dyn ControlLink> {
    shard.connect_control(None).await.unwrap()
}

async fn armed() -> (Arc<MemoryShard>, Box<dyn LockLink>) {
    armed_from(shard()).await
}

async fn armed_from(shard: Arc<MemoryShard>) -> (Arc<MemoryShard>, Box<dyn LockLink>) {
    mover(&shard).await.arm(&arm(5, Grace::None)).await.unwrap();
    let link = locks(&shard, LockLane::Work).await;
    (shard, link)
}

fn key(name: &str) -> LockKey {
    LockKey::new(
        &Namespace::default(),
        name.as_bytes(),
        SlotCount::new(16).unwrap(),
    )
    .unwrap()
}

fn nonce(sequence: u64) -> Nonce {
    Nonce {
        client: ClientId(9),
        sequence,
    }
}

fn acquire(name: &str, sequence: u64) -> Request {
    let op = Op::Acquire {
        nonce: nonce(sequence),
        label: Label::default(),
        lease: LEASE,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: None,
        proof: None,
    };
    Request {
        key: key(name),
        map: MapVersion::UNKNOWN,
        declared: MapVersion::UNKNOWN,
        op,
    }
}

fn ticket() -> Ticket {
    Ticket {
        sent: Default::default(),
        claim: LEASE,
        callers: 1,
    }
}

fn renew(name: &str, sequence: u64) -> Request {
    let token = Token::new(Epoch(5), sequence);
    let op = Op::Renew {
        nonce: nonce(sequence),
        label: Label::default(),
        token,
        mode: LockMode::Exclusive,
        lease: LEASE,
    };
    Request {
        key: key(name),
        map: MapVersion::UNKNOWN,
        declared: MapVersion::UNKNOWN,
        op,
    }
}

async fn holder(shard: &MemoryShard, name: &str) -> Option<u64> {
    let found = mover(shard).await.inspect(&key(name)).await.unwrap();
    found.holder.map(|found| found.nonce.sequence)
}

async fn reply(link: &mut Box<dyn LockLink>, request: Request) -> Reply {
    link.call(&[request]).await.unwrap().replies.remove(0)
}

fn assert_no_reply<T: std::fmt::Debug>(answer: Result<T, ShardError>) {
    assert!(
        matches!(answer, Err(ShardError::NoReply { .. })),
        "{answer:?}"
    );
}
