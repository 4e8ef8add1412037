//! Submitters, the lane that sends, and a connection that ends, with their steps in any order.
//!
//! Every request is answered once. Requests for one key are sent in their order, for any map
//! versions. Those of a batch's first version are together and before all others, as far as that
//! allows. No batch is longer than allowed.

use std::{collections::BTreeMap, sync::Arc};

use ringfence_ring::SlotCount;
use ringfence_segment_lock::{Durability, HashKey};
use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
    scheduler::RandomScheduler,
    thread,
};
use tokio::sync::oneshot;

use super::{Batch, Queue};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::{Life, MapVersion},
    name::{LockKey, Namespace},
    shard::{ConnectionId, CounterOp, CounterReply, CounterRequest, Effect, ShardError},
    sync::{Mutex, explore},
};

const ORDERS: usize = 300;
const BATCH_MAX: usize = 3;
const TASKS: u64 = 3;
const EACH: u64 = 4;

type Requests = Queue<CounterRequest>;

/// The `number`th request of `task`. It asks a manifest for the number as its version.
fn request(task: u64, number: u64) -> CounterRequest {
    let name = format!("{}", task % 2);
    let key = LockKey::new(&Namespace::default(), name.as_bytes(), SlotCount::default());
    CounterRequest {
        key: key.unwrap(),
        map: MapVersion(thread_rng().gen_range(0..3)),
        hash_key: HashKey::default(),
        op: CounterOp::SwapManifest {
            expected: task * EACH + number,
            manifest: String::new(),
            durability: Durability::Memory,
        },
    }
}

fn connection() -> (Life, ConnectionId) {
    (Life::new("one"), ConnectionId(1))
}

fn number(request: &CounterRequest) -> u64 {
    match request.op {
        CounterOp::SwapManifest { expected, .. } => expected,
        _ => unreachable!("only these are sent"),
    }
}

/// Submits; does not wait for one answer before the next request. Answers which were applied.
fn submit(queue: &Requests, task: u64) -> Vec<u64> {
    let mut waiting = Vec::new();
    for number in 0..EACH {
        let (caller, answer) = oneshot::channel::<Answer<CounterReply>>();
        let request = request(task, number);
        match queue.push(request, Respond::Caller(caller)) {
            Ok(()) => waiting.push((task * EACH + number, answer)),
            Err((_, error)) => assert_eq!(error.effect(), Effect::None),
        }
        thread::yield_now();
    }
    let applied = waiting.into_iter().filter_map(|(number, answer)| {
        match block_on(answer).expect("everybody is answered") {
            Ok(Answered { reply, .. }) => {
                assert_eq!(
                    reply,
                    CounterReply::Manifest(Some((number, String::new()))),
                    "its own"
                );
                Some(number)
            }
            Err(_) => None,
        }
    });
    applied.collect()
}

/// Sends batch after batch, until everything is closed; now and then the connection ends.
fn send(queue: &Requests, sent: &Mutex<Vec<CounterRequest>>, ended: &Mutex<bool>) {
    loop {
        let mut batch = Batch::default();
        if !queue.take(&mut batch) {
            if *ended.lock() {
                return;
            }
            thread::yield_now();
            continue;
        }
        assert!(batch.requests.len() <= BATCH_MAX, "too long");
        let mut maps = batch.requests.iter().map(|its| its.map);
        let map = maps.find(|map| *map != MapVersion::UNKNOWN);
        let requests = &batch.requests;
        let run = requests.iter().take_while(|its| Some(its.map) == map);
        let behind = &requests[run.count()..];
        for (at, request) in behind.iter().enumerate() {
            let follows = behind[..at].iter().any(|its| its.key == request.key);
            assert!(
                Some(request.map) != map || follows,
                "not with those of its map"
            );
        }
        thread::yield_now();
        if thread_rng().gen_bool(0.2) {
            let error = ShardError::NoReply {
                reason: "it ended".into(),
            };
            batch.fail(&error);
            queue.close(&ShardError::Unarmed);
            thread::yield_now();
            queue.open(connection());
            continue;
        }
        let requests = std::mem::take(&mut batch.requests);
        for (request, respond) in requests.iter().zip(batch.responds.drain(..)) {
            let reply = CounterReply::Manifest(Some((number(request), String::new())));
            let sent = Instant::default();
            respond.respond(Ok(Answered { reply, sent }));
        }
        sent.lock().extend(requests);
    }
}

#[test]
fn everybody_is_answered_once_and_in_the_order_of_each_key() {
    explore(RandomScheduler::new(ORDERS), || {
        let queue = Arc::new(Requests::new(BATCH_MAX));
        let (sent, ended) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
        let lane = {
            let (queue, sent, ended) = (queue.clone(), sent.clone(), ended.clone());
            thread::spawn(move || send(&queue, &sent, &ended))
        };
        let submit = |task| {
            let queue = queue.clone();
            thread::spawn(move || submit(&queue, task))
        };
        let tasks: Vec<_> = (0..TASKS).map(submit).collect();
        let applied = tasks.into_iter().flat_map(|task| task.join().unwrap());
        let mut applied: Vec<u64> = applied.collect();
        *ended.lock() = true;
        lane.join().unwrap();

        let sent = sent.lock();
        let mut numbers: Vec<u64> = sent.iter().map(number).collect();
        let mut last = BTreeMap::new();
        for request in sent.iter() {
            // For each task: all its requests are for one key.
            let before = last.insert(number(request) / EACH, number(request));
            assert!(before < Some(number(request)), "out of order");
        }
        numbers.sort_unstable();
        applied.sort_unstable();
        assert_eq!(numbers, applied, "each once");
    });
}
