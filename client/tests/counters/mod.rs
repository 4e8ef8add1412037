//! What a counter promises, on embedded shards under simulated time, through a client.

mod faults;
mod resized;
mod spread;
mod together;

use std::{sync::Arc, time::Duration};

use ringfence_client::{
    Client, Counter, Counters, TokioClock,
    counter::{Amount, CounterError, Terms},
};
use tokio::task::JoinSet;

/// A client of `shards` embedded shards, under simulated time.
async fn client_of(shards: usize) -> Client {
    let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
    let client = Client::builder().embedded(shards).seed(7);
    client.clock(Arc::new(clock)).build().await.unwrap()
}

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

/// An account with `units` in it, put into each segment in turn.
async fn account(counters: &Counters, name: &str, segments: u32, units: i64) -> Counter {
    let counter = counters
        .create(name, Terms::in_memory(), segments)
        .await
        .unwrap();
    if units > 0 {
        let id = counters.new_request();
        counter.deposit(&id, amount(units)).await.unwrap();
    }
    counter
}

async fn exact(counter: &Counter) -> i128 {
    counter.exact_balance().await.unwrap().available
}

/// How many of `tasks` deductions of 1, all at once, found the money.
async fn deduct_at_once(counters: &Counters, name: &str, tasks: usize) -> usize {
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (counters, name) = (counters.clone(), name.to_owned());
        running.spawn(async move {
            let counter = counters.open(&name).unwrap();
            match counter.deduct(&counters.new_request(), amount(1)).await {
                Ok(_) => 1,
                Err(CounterError::Insufficient) => 0,
                Err(error) => panic!("{error}"),
            }
        });
    }
    running.join_all().await.into_iter().sum()
}
