//! Sets of locks of several processes, and processes that are killed.

use std::{env, future::pending, process::Stdio};

use ringfence_client::{AcquireError, Client, MultiLockError, ReleaseAnswer};
use ringfence_test_support::{Servers, multi::share_random_sets};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    runtime::Builder,
    time::Instant,
};

use super::{SECOND, keys_on};

const SERVERS: &str = "RINGFENCE_TEST_SERVERS";

/// The keys of the process that is killed.
const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const LEASE: std::time::Duration = SECOND;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_overlapping_sets_never_wait_in_a_circle() {
    let servers = Servers::spawn(3).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let client = servers.client().await;
        clients.extend([client.clone(), client]);
    }
    share_random_sets(clients, 1, 60 * SECOND).await;
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
        let guard = other.lock(key).wait(SECOND).acquire().await.unwrap();
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    servers.servers[2].cont();
    for key in &keys[4..] {
        let guard = other.lock(key).wait(10 * SECOND).acquire().await.unwrap();
        guard.release().await;
    }
}

/// The process that is killed. Says when it holds some, and when all.
#[test]
#[ignore = "a process that the test below starts"]
fn a_process_that_holds_a_set_until_it_is_killed() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let servers = env::var(SERVERS).unwrap();
        let client = Client::builder().redis(servers.split(' ')).build().await;
        let client = client.unwrap();
        let lock = client.multi_lock(KEYS).lease(LEASE);
        let lock = lock.on_wait(|_| println!("\nholds some"));
        let _guard = lock.acquire().await.unwrap();
        println!("\nholds all");
        pending::<()>().await;
    });
}

/// Starts the process, and kills it when it says `when`.
async fn kill_when(when: &str, servers: &Servers) {
    let mut process = Command::new(env::current_exe().unwrap())
        .args([
            "servers::multi::a_process_that_holds_a_set_until_it_is_killed",
            "--exact",
        ])
        .args(["--ignored", "--nocapture"])
        .env(SERVERS, servers.urls().join(" "))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
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
    kill_when("holds all", &servers).await;
    all_free_in_time(&client).await;

    // Killed while it waits for the last of its keys.
    for key in KEYS {
        let holder = client.lock(key).acquire().await.unwrap();
        kill_when("holds some", &servers).await;
        holder.release().await;
        all_free_in_time(&client).await;
    }
}

async fn all_free_in_time(client: &Client) {
    let killed = Instant::now();
    let all = client.multi_lock(KEYS).wait(20 * SECOND).acquire().await;
    // A lease is counted at the server, one percent longer; an abandoned place in a queue passes in three seconds.
    assert!(killed.elapsed() < 5 * LEASE, "{:?}", killed.elapsed());
    all.unwrap().release().await;
}
