//! The memory shard and Redis answer alike: the same random operations to both, every reply and
//! every message compared. Time passes at both when a step says so.

mod control;
mod deeds;
mod migration;
mod notifications;
mod pair;
mod server;
mod steps;
mod tally;

use proptest::test_runner::{Config, TestRunner};

use crate::redis_fixture::Redis;
use pair::Pair;
use steps::Kinds;
use tally::Tally;

/// Runs at a time, each with a server of its own.
const WORKERS: u32 = 4;
/// Runs a worker makes before it looks whether that was enough.
const CASES: u32 = 8;
/// Operations after which no more runs begin, if everything was compared.
const ENOUGH: u64 = 15_000;
/// The same in any case.
const AT_MOST: u64 = 4 * ENOUGH;

#[test]
fn memory_and_redis_answer_alike() {
    compare(Kinds::Mutexes, &tally::MINIMA);
}

#[test]
fn memory_and_redis_answer_alike_on_shares() {
    compare(Kinds::Shares, &tally::MINIMA_OF_SHARES);
}

fn compare(kinds: Kinds, minima: &'static [(&'static str, u64)]) {
    let tally = Tally::new(minima);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| work(kinds, &tally)))
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
    println!("{tally}");
    tally.assert_not_vacuous();
}

fn work(kinds: Kinds, tally: &Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let redis = runtime.block_on(Redis::stopped());
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 60,
        // A message that never comes is waited for.
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let goes_on = |operations| operations < ENOUGH || operations < AT_MOST && tally.is_vacuous();
    while goes_on(tally.of("operations")) {
        let outcome = TestRunner::new(config.clone()).run(&steps::run(kinds), |steps| {
            runtime.block_on(async { Pair::new(&redis, tally).await.run(&steps).await })
        });
        if let Err(difference) = outcome {
            panic!("{difference}");
        }
    }
}
