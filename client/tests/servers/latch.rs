//! Countdown latches among processes.

use redis::Value;
use ringfence_client::{
    LatchError,
    counter::{Durability, RequestId, Terms},
};
use ringfence_test_support::{Servers, eventually};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{DEADLINE, SECOND};

/// The script calls that the server has run.
async fn calls(servers: &Servers) -> u64 {
    let stats: String = servers.ask(0, &["INFO", "commandstats"]).await;
    let calls = stats.lines().filter_map(|line| {
        let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let is_script = command.starts_with("eval") || command.starts_with("fcall");
        is_script.then(|| numbers.split(',').next().unwrap().parse::<u64>().unwrap())
    });
    calls.sum()
}

#[tokio::test]
async fn waiting_processes_send_few_requests_and_wake() {
    let servers = Servers::spawn(1).await;
    let (setter, waiting) = (servers.client().await, servers.client().await);
    let latch = setter.latch("latch").unwrap();
    latch.set(2, Durability::Memory).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let latch = waiting.latch("latch").unwrap();
        waiters.spawn(async move { latch.opened().await.unwrap() });
    }
    let first = setter.counters().request("1").unwrap();
    latch.count_down(&first).await.unwrap();
    latch.count_down(&first).await.unwrap();
    let (before, began) = (calls(&servers).await, Instant::now());
    sleep(2 * SECOND).await;
    let per_50_ms = began.elapsed().as_millis() / 50;
    let made = calls(&servers).await - before;
    // One per 50 ms, and the one that was due when it began.
    assert!(u128::from(made) <= per_50_ms + 1, "{made} calls");
    assert!(waiters.try_join_next().is_none());

    let second = waiting.counters().request("2").unwrap();
    latch.count_down(&second).await.unwrap();
    timeout(DEADLINE, waiters.join_all())
        .await
        .expect("they ask");
}

#[tokio::test]
async fn a_durable_latch_survives_a_restart_and_no_latch_opens_too_early() {
    let mut servers = Servers::spawn_with(1, |server| {
        server.set("appendonly", "yes").set("appendfsync", "always")
    })
    .await;
    let client = servers.client().await;
    let latch = client.latch("durable").unwrap();
    latch.set(2, Durability::Disk).await.unwrap();
    let request = |name| client.counters().request(name).unwrap();
    let first = request("1");
    latch.count_down(&first).await.unwrap();
    servers.servers[0].kill();
    servers.servers[0].restart().await.unwrap();
    eventually("counted again", async || {
        latch.count_down(&first).await.is_ok()
    })
    .await;
    assert_eq!(latch.remaining().await.unwrap(), 1);
    latch.count_down(&request("2")).await.unwrap();
    latch.opened_within(DEADLINE).await.unwrap();

    let mut servers = Servers::spawn(2).await;
    let client = servers.client().await;
    let latch = client.latch("memory").unwrap();
    latch.set(1, Durability::Memory).await.unwrap();
    for server in &mut servers.servers {
        server.kill();
        server.restart().await.unwrap();
    }
    let waited = latch.opened_within(10 * SECOND).await.unwrap_err();
    assert!(
        matches!(
            waited,
            LatchError::Lost(_) | LatchError::NotSet(_) | LatchError::TimedOut { .. }
        ),
        "{waited:?}"
    );
}

#[tokio::test]
async fn a_latch_whose_counts_were_lost_says_so() {
    let mut servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let latch = client.latch("memory").unwrap();
    latch.set(2, Durability::Memory).await.unwrap();
    let _: Value = servers.ask(0, &["SAVE"]).await;
    let request = client.counters().request("1").unwrap();
    latch.count_down(&request).await.unwrap();
    servers.servers[0].kill();
    servers.servers[0].restart().await.unwrap();
    let lost = latch.opened_within(DEADLINE).await.unwrap_err();
    assert!(matches!(lost, LatchError::Lost(_)), "{lost:?}");
}

#[tokio::test]
async fn a_latch_made_anew_after_a_loss_takes_no_earlier_counts() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let (counters, latch) = (client.counters(), client.latch("again").unwrap());
    latch.set(1, Durability::Memory).await.unwrap();
    let early = counters.request("1").unwrap();
    latch.count_down(&early).await.unwrap();

    let keys: Vec<String> = servers.ask(0, &["KEYS", "*:latch:again#*"]).await;
    let delete: Vec<_> = ["DEL"]
        .into_iter()
        .chain(keys.iter().map(String::as_str))
        .collect();
    let _: Value = servers.ask(0, &delete).await;
    let account = client.counters_of("latch").unwrap().open("again").unwrap();
    assert!(!account.accept().await.unwrap().is_sound());
    let lost = latch.count_down(&early).await.unwrap_err();
    assert!(matches!(lost, LatchError::Lost(_)), "{lost:?}");

    let skew_ms = Terms::in_memory().skew_ms;
    let late = RequestId::new(counters.new_request().time_ms() + skew_ms + 1, "2").unwrap();
    eventually("a request of a later time counts", async || {
        latch.count_down(&late).await.is_ok()
    })
    .await;
    latch.count_down(&early).await.unwrap();
}
