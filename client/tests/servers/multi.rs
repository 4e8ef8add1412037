//! Sets of locks of several processes, and processes that are killed.

use std::{env, future::pending, process::Stdio, time::Duration};

use futures_util::future::join_all;
use ringfence_client::{AcquireError, Client, MultiLockError, ReleaseAnswer};
use ringfence_test_support::{Servers, multi::share_random_sets};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    runtime::Builder,
    task::JoinSet,
    time::Instant,
};

use super::{DEADLINE, SECOND, keys_on};

/// Tell a process where its servers are, its seed, and the directory of what is held.
const SERVERS: &str = "RINGFENCE_TEST_SERVERS";
const SEED: &str = "RINGFENCE_TEST_SEED";
const HELD: &str = "RINGFENCE_TEST_HELD";
const PREFIX: &str = "RINGFENCE_TEST_PREFIX";

/// How many seconds random sets are taken for, with one seed after the other; one seed if not said.
const SECONDS: &str = "RINGFENCE_TEST_SETS_SECONDS";

/// How many processes take random sets, with two tasks each.
const PROCESSES: u64 = 4;

/// The keys of the process that is killed.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Its end is waited for.
const LEASE: Duration = Duration::from_secs(3);

/// A process that takes random sets.
#[test]
#[ignore = "a process that the test below starts"]
fn a_process_that_takes_random_sets() {
    let (Ok(seed), Ok(held)) = (env::var(SEED), env::var(HELD)) else {
        return;
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client_of_process().await;
        let clients = vec![client.clone(), client];
        let seed = seed.parse().unwrap();
        share_random_sets(clients, seed, held.as_ref(), DEADLINE).await;
    });
}

#[tokio::test]
async fn processes_with_overlapping_sets_never_wait_in_a_circle() {
    let servers = Servers::spawn(3).await;
    servers.client().await.close().await;
    let seconds = env::var(SECONDS).map_or(0, |seconds| seconds.parse().unwrap());
    let began = Instant::now();
    for seed in 1.. {
        let held = tempfile::tempdir().unwrap();
        let mut processes = JoinSet::new();
        for process in 0..PROCESSES {
            let mut command = process_of("a_process_that_takes_random_sets", &servers);
            command.env(SEED, (seed * PROCESSES + process).to_string());
            command.env(HELD, held.path());
            processes.spawn(async move { command.output().await.unwrap() });
        }
        for output in processes.join_all().await {
            assert!(output.status.success(), "seed {seed}: {output:?}");
        }
        if began.elapsed() >= seconds * SECOND {
            break;
        }
    }
}

async fn client_of_process() -> Client {
    let servers = env::var(SERVERS).unwrap();
    let client = Client::builder().redis(servers.split(' ')).build().await;
    client.unwrap()
}

/// The process of a test of this module, not started.
fn process_of(test: &str, servers: &Servers) -> Command {
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args([format!("servers::multi::{test}").as_str(), "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(SERVERS, servers.urls().join(" "))
        .kill_on_drop(true);
    process
}

#[tokio::test]
async fn a_set_over_a_silent_server_is_refused_and_holds_nothing() {
    let servers = Servers::spawn(3).await;
    let (client, other) = (servers.client().await, servers.client().await);
    let keys: Vec<_> = (0..3)
        .flat_map(|index| keys_on(&servers, &client, index))
        .collect();
    servers.servers[2].stop();
    let refused = client.multi_lock(&keys).wait(SECOND).acquire().await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(
            refused,
            MultiLockError::NotAcquired {
                error: AcquireError::TimedOut { .. } | AcquireError::Shard(_),
                ..
            }
        ),
        "{refused:?}"
    );
    for key in &keys[..4] {
        let guard = other.lock(key).wait(DEADLINE).acquire().await.unwrap();
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    servers.servers[2].cont();
    for key in &keys[4..] {
        let guard = other.lock(key).wait(DEADLINE).acquire().await.unwrap();
        guard.release().await;
    }
}

/// The process that is killed. Says when it holds some, and when all.
#[test]
#[ignore = "a process that the test below starts"]
fn a_process_that_holds_a_set_until_it_is_killed() {
    let Ok(prefix) = env::var(PREFIX) else { return };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client_of_process().await;
        let lock = client.multi_lock(keys(&prefix));
        let lock = lock.lease(LEASE);
        let lock = lock.on_wait(|_| println!("\nholds some"));
        let _guard = lock.acquire().await.unwrap();
        println!("\nholds all");
        pending::<()>().await;
    });
}

/// The keys of the process with this prefix.
fn keys(prefix: &str) -> [String; 6] {
    KEYS.map(|key| format!("{prefix}/{key}"))
}

/// Starts the process, and kills it when it says `when`.
async fn kill_when(when: &str, prefix: &str, servers: &Servers) {
    let test = "a_process_that_holds_a_set_until_it_is_killed";
    let mut process = process_of(test, servers)
        .env(PREFIX, prefix)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    while lines.next_line().await.unwrap().expect("it runs") != when {}
    process.kill().await.unwrap();
}

#[tokio::test]
async fn a_process_that_is_killed_holds_no_key_of_its_set_beyond_one_lease() {
    let servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let with_all = async {
        kill_when("holds all", "all", &servers).await;
        all_free_in_time(&client, "all").await;
    };
    // Killed while it waits for the last of its keys.
    let with_some = KEYS.map(async |key| {
        let wanted = client.lock(format!("{key}/{key}"));
        let holder = wanted.acquire().await.unwrap();
        kill_when("holds some", key, &servers).await;
        holder.release().await;
        all_free_in_time(&client, key).await;
    });
    tokio::join!(with_all, join_all(with_some));
}

/// Every record ends within a lease, and the set is granted then.
async fn all_free_in_time(client: &Client, prefix: &str) {
    let keys = keys(prefix);
    for key in &keys {
        let found = client.lock(key).inspect().await.unwrap().holder;
        // A lease is counted at the server, one percent longer.
        assert!(found.is_none_or(|found| found.remaining <= LEASE * 102 / 100));
    }
    let all = client.multi_lock(&keys).wait(DEADLINE).acquire().await;
    all.unwrap().release().await;
}
