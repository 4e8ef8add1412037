//! What a lock promises, on real Redis servers.

mod blocking;
mod cancel;
mod clock_steps;
mod comeback;
mod composed;
mod connections;
mod detached;
mod election;
mod errors;
mod exits;
mod failover;
mod fairness;
mod faults;
mod latch;
mod listing;
mod locking;
mod lost_notifications;
mod manifests;
mod multi;
mod odd_names;
#[cfg(feature = "postgres")]
mod pooler;
mod queue;
mod recover;
mod replicated;
mod restart;
mod rights;
mod scene;
mod secured;
mod segmented;
mod sentinel;
mod setup;
#[cfg(feature = "postgres")]
mod standby;
mod stops;
mod turns;

use std::time::Duration;

use ringfence_client::{Client, Namespace, ReleaseAnswer};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::Servers;

const SECOND: Duration = Duration::from_secs(1);

/// The one time limit of what must happen.
const DEADLINE: Duration = Duration::from_secs(120);

/// `key` is free, and every part of the way to it works.
async fn take_and_give_back(client: &Client, key: &str) {
    let guard = client.lock(key).try_acquire().await.unwrap();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// The index of the server that the topology's record is on.
fn home_of(servers: &Servers, client: &Client) -> usize {
    let home = client.topology().home.address.clone();
    let is_home = |server: &RedisServer| home.contains(&server.port().to_string());
    servers.servers.iter().position(is_home).unwrap()
}

/// The index of a server that the topology's record is not on.
fn not_the_home(servers: &Servers, client: &Client) -> usize {
    (home_of(servers, client) + 1) % servers.servers.len()
}

/// Two keys on the shard at the server of `index`.
fn keys_on(servers: &Servers, client: &Client, index: usize) -> [String; 2] {
    let port = servers.servers[index].port().to_string();
    let is_there = |key: &String| {
        let shard = client.shard_of(&Namespace::default(), key).unwrap();
        client
            .topology()
            .shard(&shard)
            .unwrap()
            .address
            .contains(&port)
    };
    let mut keys = (0..).map(|number| format!("key/{number}")).filter(is_there);
    [keys.next().unwrap(), keys.next().unwrap()]
}
