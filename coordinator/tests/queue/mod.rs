//! The queue of one key against a model of it that is a `Vec`: every answer, and every message to every
//! client, on every backend.

mod model;
mod steps;

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use proptest::{
    prop_assert_eq,
    test_runner::{Config, TestCaseError, TestRunner},
};
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Incarnation, MapVersion, Nonce},
    limits::LEASE_MIN,
    name::{Label, LockKey, Namespace},
    shard::{
        Answers, Arm, Counters, Grace, LockLane, LockLink, LockMode, Mode, Op, Reply, Request,
        SlotState, SlotStates, Subscription,
    },
};
use ringfence_ring::SlotCount;
use tokio::{runtime::Builder, sync::Mutex, time::timeout};

use self::{
    model::Model,
    steps::{CLIENTS, Step, steps},
};
use crate::memory_fixture::Memory;
use crate::redis_fixture::Redis;

/// How long a message may take on a busy machine.
const DELIVERY_MAX: Duration = Duration::from_secs(120);
const EPOCH: Epoch = Epoch(1);

/// A shard, and a connection to it.
struct Bench<F> {
    fixture: F,
    link: Box<dyn LockLink>,
}

impl<F: Fixture> Bench<F> {
    async fn at(fixture: F) -> Self {
        let open = |_| SlotState {
            mode: Mode::Open,
            epoch: EPOCH,
        };
        let arm = Arm {
            topology: fixture.topology(),
            incarnation: Incarnation {
                number: 1,
                engine: ClientId(9),
            },
            epoch: EPOCH,
            token_epoch: EPOCH,
            declared: MapVersion::UNKNOWN,
            slots: SlotStates::new(slots().iter(), open),
            grace: Grace::None,
            counters: Counters::Never,
            copy: (1, "record".into()),
        };
        let shard = fixture.shard();
        let mut control = shard.connect_control(None).await.unwrap();
        control.arm(&arm).await.unwrap();
        let link = shard.connect_locks(LockLane::Work, None).await.unwrap();
        Self { fixture, link }
    }

    /// Takes all of `steps` with a key that nobody has used.
    async fn run(&mut self, steps: &[Step]) -> Result<(), TestCaseError> {
        static CASES: AtomicU64 = AtomicU64::new(0);
        let case = CASES.fetch_add(1, Relaxed);
        let counter = self
            .ask(&key(&format!("before {case}")), &a_try())
            .await
            .counter;
        let key = key(&case.to_string());
        let mut model = Model::new(key.clone(), EPOCH, counter);
        let (mut ears, mut now_ms) = (self.listen().await, 1);
        for step in steps {
            match step {
                Step::Ask(op) => {
                    let mut answers = self.ask(&key, op).await;
                    let found = untimed(answers.replies.remove(0));
                    let expected = model.apply(op, now_ms);
                    prop_assert_eq!(found, expected, "{:?}", op);
                    hear(&mut ears, &mut model).await?;
                }
                Step::Elapse(length) => {
                    self.fixture.elapse(*length).await;
                    now_ms += length.as_millis() as u64;
                }
            }
        }
        Ok(())
    }

    async fn ask(&mut self, key: &LockKey, op: &Op) -> Answers {
        let request = Request {
            key: key.clone(),
            map: MapVersion::UNKNOWN,
            declared: MapVersion::UNKNOWN,
            op: op.clone(),
        };
        self.link.call(&[request]).await.unwrap()
    }

    /// As every client.
    async fn listen(&self) -> Vec<Box<dyn Subscription>> {
        let mut ears = Vec::new();
        for client in 0..CLIENTS {
            let ear = self.fixture.shard().listen(ClientId(client.into())).await;
            ears.push(ear.unwrap());
        }
        ears
    }
}

/// Every client hears the messages that the model predicts. A client that hears more is found by
/// the next step.
async fn hear(ears: &mut [Box<dyn Subscription>], model: &mut Model) -> Result<(), TestCaseError> {
    for (client, notification) in model.said() {
        let ear = &mut ears[client.0 as usize];
        let heard = timeout(DELIVERY_MAX, ear.next()).await;
        prop_assert_eq!(heard.ok().map(|heard| heard.unwrap()), Some(notification));
    }
    Ok(())
}

fn slots() -> SlotCount {
    SlotCount::new(16).unwrap()
}

fn key(name: &str) -> LockKey {
    LockKey::new(&Namespace::default(), name.as_bytes(), slots()).unwrap()
}

/// Takes one token, and tells the counter.
fn a_try() -> Op {
    Op::Acquire {
        nonce: Nonce {
            client: ClientId(u128::MAX),
            sequence: 0,
        },
        label: Label::default(),
        lease: LEASE_MIN,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: None,
        proof: None,
    }
}

/// A reply without how long another's lease goes on.
fn untimed(reply: Reply) -> Reply {
    match reply {
        Reply::Held {
            label, position, ..
        } => Reply::Held {
            remaining: Duration::ZERO,
            label,
            position,
        },
        reply => reply,
    }
}

/// Many short runs of steps, each with a key of its own. Leases, claims and tickets end in the middle.
fn check<F: Fixture>(fixture: impl Future<Output = F>, cases: u32) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Mutex::new(runtime.block_on(async { Bench::at(fixture.await).await }));
    let config = Config {
        cases,
        failure_persistence: None,
        // A message that never comes is waited for.
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(async { bench.lock().await.run(&steps).await })
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

#[test]
fn memory_queues_as_the_model_does() {
    check(Memory::new(), 4_000);
}

#[test]
fn redis_queues_as_the_model_does() {
    check(Redis::stopped(), 300);
}
