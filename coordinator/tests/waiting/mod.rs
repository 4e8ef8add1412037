//! What waiting and moving cost on Redis, and what only a server can have done to it. What holds on every backend
//! is in the conformance suite.

mod commands;
mod listening;
mod moving;
mod queues;

use std::time::Duration;

use redis::{FromRedisValue, aio::MultiplexedConnection};
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, Epoch, Incarnation, MapVersion, Nonce},
    limits::{CLAIM_MAX, LEASE_MAX},
    name::{Label, LockKey, Namespace},
    shard::{
        Arm, ControlLink, Counters, Grace, LockLane, LockLink, LockMode, MarkQuiet, Mode, Op,
        Reply, Request, SlotState, SlotStates, Ticket,
    },
};
use ringfence_ring::SlotCount;

use crate::redis_fixture::Redis;

/// The map version that every shard here is quiet at.
const QUIET: MapVersion = MapVersion(7);

/// One client each, so that messages name their receiver.
fn nonce(sequence: u64) -> Nonce {
    Nonce {
        client: ClientId(u128::from(sequence)),
        sequence,
    }
}

fn slot_count() -> SlotCount {
    SlotCount::new(16).unwrap()
}

fn key(name: &str) -> LockKey {
    LockKey::new(&Namespace::default(), name.as_bytes(), slot_count()).unwrap()
}

fn request(key: &LockKey, op: Op) -> Request {
    let (key, map) = (key.clone(), QUIET);
    let declared = MapVersion::UNKNOWN;
    Request {
        key,
        map,
        declared,
        op,
    }
}

fn acquire(key: &LockKey, sequence: u64) -> Request {
    let ticket = Ticket {
        sent: Instant::from_nanos(sequence),
        claim: CLAIM_MAX,
        callers: 1,
    };
    let op = Op::Acquire {
        nonce: nonce(sequence),
        label: Label::new("waiting"),
        lease: LEASE_MAX,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: Some(ticket),
        proof: None,
    };
    request(key, op)
}

fn release(key: &LockKey, sequence: u64) -> Request {
    let nonce = nonce(sequence);
    request(key, Op::Release { nonce })
}

/// A server, a link to the quiet shard on it, and a hand inside.
struct Desk {
    redis: Redis,
    link: Box<dyn LockLink>,
    mover: Box<dyn ControlLink>,
    raw: MultiplexedConnection,
}

impl Desk {
    async fn quiet() -> Self {
        Self::of(Redis::new().await).await
    }

    /// Has the present life armed.
    async fn of(redis: Redis) -> Self {
        let mut mover = redis.shard().connect_control(None).await.unwrap();
        let (epoch, incarnation) = (Epoch(5), incarnation());
        let mode = Mode::Open;
        let arm = Arm {
            topology: redis.topology(),
            incarnation,
            epoch,
            token_epoch: epoch,
            declared: MapVersion::UNKNOWN,
            slots: SlotStates::new(slot_count().iter(), |_| SlotState { mode, epoch }),
            grace: Grace::None,
            counters: Counters::Never,
            copy: (1, "record".into()),
        };
        mover.arm(&arm).await.unwrap();
        let mark = MarkQuiet {
            incarnation,
            copy: (1, "record".into()),
            map: QUIET,
            slots: slot_count().iter().collect(),
        };
        assert!(mover.mark_quiet(&mark).await.unwrap());
        let raw = redis.raw().await;
        let link = redis
            .shard()
            .connect_locks(LockLane::Work, None)
            .await
            .unwrap();
        Self {
            redis,
            link,
            mover,
            raw,
        }
    }

    async fn batch(&mut self, batch: &[Request]) -> Vec<Reply> {
        let answers = self.link.call(batch).await.unwrap();
        assert!(answers.quiet);
        answers.replies
    }

    async fn one(&mut self, request: Request) -> Reply {
        self.batch(&[request]).await.remove(0)
    }

    /// What the server answers to `words`.
    async fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.raw).await.unwrap()
    }
}

fn incarnation() -> Incarnation {
    Incarnation {
        number: 1,
        engine: ClientId(1),
    }
}

/// The answer about a held key to a requester with `position` tickets before its own.
fn assert_held(reply: &Reply, expected: Option<u32>) {
    match reply {
        Reply::Held {
            remaining,
            position,
            ..
        } => assert_eq!((*position, *remaining > Duration::ZERO), (expected, true)),
        other => panic!("it is held: {other:?}"),
    }
}
