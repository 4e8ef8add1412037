//! Numbers and health over HTTP.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use ringfence_test_support::eventually;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::scene::{Scene, acquire, ask, release, renew};

/// The status code and the content of `path`.
async fn get(scene: &Scene, path: &str) -> (u16, String) {
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
    let (_, numbers) = get(&scene, "/metrics").await;
    assert_eq!(sum(&numbers, "ringfence_held{", ""), 0.0);
    assert_eq!(
        sum(&numbers, "ringfence_hold_seconds_count{", "released"),
        1.0
    );
    assert!(sum(&numbers, "ringfence_hold_seconds_sum{", "released") > 0.0);
    assert!(sum(&numbers, "ringfence_batch_size_count{", "") > 0.0);
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
    let scene = Scene::set().await;
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
