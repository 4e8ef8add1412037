//! Numbers and health over HTTP.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use ringfence_api::v1::{AcquireRequest, DowngradeRequest, LockMode};
use ringfence_client::{AcquireError, Namespace};
use ringfence_server::Config;
use ringfence_test_support::{ask as ask_server, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{
    accounts::{TERMS, amount},
    scene::{Coordinator, Scene, acquire, ask, release, renew},
};

/// The status code and the content of `path`.
async fn get(scene: &Coordinator, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(scene.monitor).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: monitor\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, content.to_owned())
}

/// The sum of `name`, with `label`, over all shards.
fn sum(numbers: &str, name: &str, label: &str) -> f64 {
    let lines = numbers.lines().filter(|line| line.contains(label));
    let values = lines.filter_map(|line| line.strip_prefix(name)?.split_once("} "));
    values.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}

/// The sum of `name`, with `label`, over all shards now.
pub(crate) async fn counted(scene: &Coordinator, name: &str, label: &str) -> f64 {
    sum(&get(scene, "/metrics").await.1, name, label)
}

/// Calls and asks that were refused for `limit`.
pub(crate) async fn refused_for(scene: &Coordinator, limit: &str) -> f64 {
    let label = format!("limit=\"{limit}\"");
    counted(scene, "ringfence_calls_limited_total{", &label).await
}

/// A value that has no labels, now.
pub(crate) async fn number(scene: &Coordinator, name: &str) -> f64 {
    let (_, numbers) = get(scene, "/metrics").await;
    let mut values = numbers.lines().filter_map(|line| line.strip_prefix(name));
    values.next().unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn acquisitions_and_holds_are_counted_without_keys() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let key = "a-secret-key";
    let held = acquire(&mut locks, ask(key, 1000, Some(0))).await.unwrap();
    acquire(&mut locks, ask(key, 1000, Some(0)))
        .await
        .unwrap_err();
    let (code, numbers) = get(&scene, "/metrics").await;
    assert_eq!(code, 200);
    let acquired = |outcome: &str| {
        let label = format!("outcome=\"{outcome}\"");
        sum(&numbers, "ringfence_acquire_seconds_count{", &label)
    };
    assert_eq!(
        (acquired("granted"), acquired("held")),
        (1.0, 1.0),
        "{numbers}"
    );
    assert_eq!(sum(&numbers, "ringfence_held{", ""), 1.0);
    assert_eq!(sum(&numbers, "ringfence_waiting{", ""), 0.0);
    assert_eq!(sum(&numbers, "ringfence_shard_up{", ""), 2.0);
    assert!(sum(&numbers, "ringfence_epoch{", "") > 0.0);
    assert!(
        numbers.ends_with("# EOF\n") && !numbers.contains(key),
        "{numbers}"
    );

    eventually("it is renewed at its shard", || async {
        renew(&mut locks.clone(), &held.handle).await.unwrap();
        let (_, numbers) = get(&scene, "/metrics").await;
        sum(&numbers, "ringfence_renewals_total{", "answer=\"renewed\"") > 0.0
    })
    .await;
    release(&mut locks, &held.handle).await.unwrap();
    let theirs = scene.other.lock(key).acquire().await.unwrap();
    let theirs_ends = async {
        // It counts as waiting before the shard has its ticket.
        eventually("it waits", async || scene.waiters(key).await == 1).await;
        assert_eq!(counted(&scene, "ringfence_waiting{", "").await, 1.0);
        theirs.release().await
    };
    let mut asking = locks.clone();
    let (next, _) = tokio::join!(
        acquire(&mut asking, ask(key, 1000, Some(10_000))),
        theirs_ends
    );
    release(&mut locks, &next.unwrap().handle).await.unwrap();
    let (_, numbers) = get(&scene, "/metrics").await;
    let waited = |outcome: &str| sum(&numbers, "ringfence_wait_seconds_count{", outcome);
    assert_eq!((waited("granted"), waited("timed_out")), (1.0, 0.0));
    assert!(sum(&numbers, "ringfence_wait_seconds_sum{", "granted") > 0.0);
    assert_eq!(sum(&numbers, "ringfence_held{", ""), 0.0);
    assert_eq!(
        sum(&numbers, "ringfence_hold_seconds_count{", "released"),
        2.0
    );
    assert!(sum(&numbers, "ringfence_hold_seconds_sum{", "released") > 0.0);
    assert!(sum(&numbers, "ringfence_batch_size_count{", "") > 0.0);
}

#[tokio::test]
async fn renewals_are_counted_by_their_answer_and_every_expiry_once() {
    const RENEWALS: &str = "ringfence_renewals_total{";
    const EXPIRIES: &str = "ringfence_expiries_total{";
    const ENDS: &str = "ringfence_hold_seconds_count{";
    let mut scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let shard_of = |key| {
        let shard = scene.other.shard_of(&Namespace::default(), key).unwrap();
        format!("shard=\"{shard}\"")
    };

    let writer = AcquireRequest {
        mode: LockMode::Write.into(),
        ..ask("renewed", 30_000, Some(0))
    };
    let handle = acquire(&mut locks, writer).await.unwrap().handle;
    // Each is a renewal at the shard, however soon it comes.
    let downgrade = async || {
        let handle = handle.clone();
        let downgraded = locks.clone().downgrade(DowngradeRequest { handle }).await;
        downgraded.map(drop)
    };
    for _ in 0..3 {
        downgrade().await.unwrap();
    }
    let renewed = format!("{},answer=\"renewed\"", shard_of("renewed"));
    assert_eq!(counted(&scene, RENEWALS, &renewed).await, 3.0);
    assert_eq!(counted(&scene, RENEWALS, "").await, 3.0);
    scene.remove_records().await;
    downgrade().await.unwrap_err();
    assert_eq!(counted(&scene, RENEWALS, "answer=\"lost\"").await, 1.0);
    assert_eq!(counted(&scene, RENEWALS, "").await, 4.0);
    assert_eq!(counted(&scene, ENDS, "end=\"lost\"").await, 1.0);
    assert_eq!(counted(&scene, EXPIRIES, "").await, 0.0);

    // Its caller has died.
    acquire(&mut locks, ask("dead", 300, None)).await.unwrap();
    let at_its_shard = shard_of("dead");
    eventually("it expires", || async {
        counted(&scene, ENDS, "end=\"left\"").await == 1.0
    })
    .await;
    assert_eq!(counted(&scene, ENDS, "end=\"lost\"").await, 1.0);
    assert_eq!(counted(&scene, EXPIRIES, &at_its_shard).await, 1.0);
    // One that is released does not expire.
    let short = acquire(&mut locks, ask("dead", 300, None)).await.unwrap();
    release(&mut locks, &short.handle).await.unwrap();

    let cut_off = acquire(&mut locks, ask("cut off", 600, None))
        .await
        .unwrap();
    scene.kill_servers();
    while renew(&mut locks, &cut_off.handle).await.is_ok() {}
    assert!(counted(&scene, RENEWALS, "answer=\"failed\"").await >= 1.0);
    assert_eq!(counted(&scene, EXPIRIES, "").await, 2.0);
    assert_eq!(counted(&scene, ENDS, "end=\"lost\"").await, 2.0);
    assert_eq!(counted(&scene, "ringfence_held{", "").await, 0.0);
}

#[tokio::test]
async fn a_recovery_period_is_counted_once_and_raises_the_epoch_of_its_shard() {
    const PERIODS: &str = "ringfence_recovery_periods_total{";
    const UNAVAILABLE: &str = "outcome=\"unavailable\"";
    let longest = Duration::from_secs(5);
    let mut scene = Scene::founded(|builder| builder.max_lease(longest), |_| {}).await;
    let mut locks = scene.locks().await;
    let topology = scene.other.topology();
    let shard_of = |key: &str| scene.other.shard_of(&Namespace::default(), key).unwrap();
    let address_of = |key: &str| topology.shard(&shard_of(key)).unwrap().address.clone();
    let mut keys = (0..).map(|number: u32| number.to_string());
    let key = keys.find(|key| address_of(key) != topology.home.address);
    let key = key.unwrap();
    let shard = format!("shard=\"{}\"", shard_of(&key));
    let is_there = |index: &usize| address_of(&key).contains(&scene.address(*index));
    let index = (0..3).find(is_there).unwrap();
    let epochs = async |label: &str| counted(&scene, "ringfence_epoch{", label).await;
    let (epoch, all) = (epochs(&shard).await, epochs("").await);
    let version = number(&scene, "ringfence_topology_version ").await;
    assert_eq!(counted(&scene, PERIODS, "").await, 0.0);

    scene.server(index).restart().await.unwrap();
    // Another process activates it, as soon as it is asked for. The shard itself answers that it recovers: nobody begins
    // anew because an answer was lost.
    eventually("it recovers", || async {
        let asked = scene.other.lock(&key).try_acquire().await;
        let recovers = |error: AcquireError| matches!(error, AcquireError::Grace { .. });
        asked.is_err_and(recovers) && counted(&scene, PERIODS, &shard).await == 1.0
    })
    .await;
    // Its connections are made anew in the same period.
    let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
    assert!(ask_server::<u64>(scene.server(index), &kill).await > 0);
    acquire(&mut locks, ask(&key, 1000, Some(0)))
        .await
        .unwrap_err();
    let label = format!("{shard},{UNAVAILABLE}");
    let refused = counted(&scene, "ringfence_acquire_seconds_count{", &label).await;
    assert_eq!(refused, 1.0);

    acquire(&mut locks, ask(&key, 1000, None)).await.unwrap();
    assert_eq!(counted(&scene, PERIODS, &shard).await, 1.0);
    assert_eq!(counted(&scene, PERIODS, "").await, 1.0);
    let epochs = async |label: &str| counted(&scene, "ringfence_epoch{", label).await;
    let risen = epochs(&shard).await - epoch;
    assert!(risen > 0.0 && risen == epochs("").await - all, "{risen}");
    let now = scene.other.topology().version as f64;
    assert!(now > version);
    eventually("it has the new version", || async {
        number(&scene, "ringfence_topology_version ").await == now
    })
    .await;
}

#[tokio::test]
async fn a_coordinator_that_stops_is_healthy_but_not_ready() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::from_secs(60)).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    assert_eq!(get(&scene, "/readyz").await, (200, "ok\n".into()));
    scene.stop();
    eventually("it is not ready", || async {
        get(&scene, "/readyz").await.0 == 503
    })
    .await;
    assert_eq!(get(&scene, "/healthz").await.0, 200);
    release(&mut locks, &held.handle).await.unwrap();
    scene.ended().await;
}

#[tokio::test]
async fn a_coordinator_without_shards_is_not_ready() {
    let mut scene = Scene::set().await;
    eventually("it is ready", || async {
        get(&scene, "/readyz").await.0 == 200
    })
    .await;
    scene.kill_servers();
    eventually("it is not ready", || async {
        get(&scene, "/readyz").await.0 == 503
    })
    .await;
    assert_eq!(get(&scene, "/healthz").await.0, 200);
    let (_, numbers) = get(&scene, "/metrics").await;
    assert_eq!(sum(&numbers, "ringfence_shard_up{", ""), 0.0);
}

#[tokio::test]
async fn a_health_check_says_of_each_service_whether_it_is_ready() {
    let mut scene = Scene::set().await;
    let health = HealthClient::new(scene.channel().await);
    let all_are = async |status: ServingStatus| {
        let services = ["Admin", "Counter", "Latch", "Lock", "Session"];
        let services = services.map(|service| format!("ringfence.v1.{service}Service"));
        for service in services.into_iter().chain([String::new()]) {
            let asked = health.clone().check(HealthCheckRequest { service }).await;
            if asked.unwrap().into_inner().status() != status {
                return false;
            }
        }
        true
    };
    eventually("all are ready", || all_are(ServingStatus::Serving)).await;
    scene.kill_servers();
    eventually("none is ready", || all_are(ServingStatus::NotServing)).await;
    let unknown = HealthCheckRequest {
        service: "ringfence.v1.Other".into(),
    };
    let refused = health.clone().check(unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
}

/// Waits until no connection of callers is left; the next call opens another.
async fn none_is_connected(scene: &Scene) {
    eventually("no connection is left", || async {
        number(scene, "ringfence_connections{port=\"service\"} ").await == 0.0
    })
    .await;
}

#[tokio::test]
async fn callers_connect_anew_when_a_stop_begins() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::from_secs(60)).await;
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
        .await
        .unwrap();
    scene.stop();
    none_is_connected(&scene).await;
    release(&mut locks, &held.handle).await.unwrap();
    scene.ended().await;
}

#[tokio::test]
async fn callers_connect_anew_after_some_time() {
    let age = Some(Duration::from_secs(1));
    let scene = Scene::set_with(|config| config.limits.connection_age = age).await;
    let mut locks = scene.locks().await;
    for _ in 0..2 {
        let held = acquire(&mut locks, ask("key", 30_000, Some(0)))
            .await
            .unwrap();
        none_is_connected(&scene).await;
        release(&mut locks, &held.handle).await.unwrap();
    }
}

/// The names `ringfence_…` in `text`.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = text.split(|c| !is_name(c));
    words
        .filter(|word| word.starts_with("ringfence_"))
        .collect()
}

#[tokio::test]
async fn the_alerts_and_the_dashboard_ask_for_metrics_that_exist() {
    let scene = Scene::set_with(sweeps_often).await;
    eventually("it sweeps", async || {
        swept(&scene, "all").await == Some(0.0)
    })
    .await;
    let (_, numbers) = get(&scene, "/metrics").await;
    let samples = numbers.lines().filter(|line| !line.starts_with('#'));
    let existing: BTreeSet<_> = samples.flat_map(metrics_in).collect();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    for (file, at_least) in [("prometheus/alerts.yml", 6), ("grafana/ringfence.json", 10)] {
        let text = fs::read_to_string(deploy.join(file)).unwrap();
        let asked = metrics_in(&text);
        assert!(asked.len() >= at_least, "{file}: {asked:?}");
        let missing: Vec<_> = asked.difference(&existing).collect();
        assert!(missing.is_empty(), "{file}: {missing:?} of {existing:?}");
    }
}

fn sweeps_often(config: &mut Config) {
    config.sweep_every = Duration::from_millis(100);
}

/// The accounts of a condition that the last sweep of a coordinator found; `None` if another one sweeps.
async fn swept(coordinator: &Coordinator, condition: &str) -> Option<f64> {
    let (_, numbers) = get(coordinator, "/metrics").await;
    let line = format!("ringfence_accounts{{condition=\"{condition}\"}} ");
    let value = numbers.lines().find_map(|its| its.strip_prefix(&line));
    value.map(|value| value.parse().unwrap())
}

/// Nobody asks for the accounts but the coordinators. The one that sweeps stops: the other goes on.
#[tokio::test]
async fn one_coordinator_after_the_other_sweeps_the_accounts_of_all_namespaces() {
    let mut scene = Scene::set_with(sweeps_often).await;
    let second = scene.another(sweeps_often).await;
    for namespace in ["default", "billing"] {
        let counters = scene.other.counters_of(namespace).unwrap();
        let coins = counters.create("coins", TERMS, 8).await.unwrap();
        let gift = counters.request("gift").unwrap();
        coins.deposit(&gift, amount(800)).await.unwrap();
        let order = counters.request("order").unwrap();
        let soon = order.time_ms() + 1_000;
        coins.reserve(&order, amount(1), soon).await.unwrap();
    }
    let work = async |work: &str| {
        let label = format!("work=\"{work}\"");
        let [one, two] = [&*scene, &second]
            .map(|coordinator| counted(coordinator, "ringfence_swept_total{", &label));
        one.await + two.await
    };
    eventually("both reservations expire", async || {
        work("expired").await == 2.0
    })
    .await;
    eventually("nothing is held", async || {
        let [one, two] = [&*scene, &second].map(|its| swept(its, "held"));
        [one.await, two.await].into_iter().flatten().eq([0.0])
    })
    .await;
    assert_eq!(work("failed").await, 0.0);

    scene.stop();
    eventually("the other one sweeps", async || {
        swept(&second, "all").await == Some(2.0)
    })
    .await;
    // It forgets its half of each account.
    scene.server(0).restart().await.unwrap();
    scene.end_recovery(0).await;
    eventually("the loss is seen", async || {
        swept(&second, "lost").await == Some(2.0)
    })
    .await;
}
