//! Servers that stop for a while (SIGSTOP): connections stay open, nothing answers, and on waking the
//! server does all that it was sent meanwhile.

use std::time::Duration;

use ringfence_client::{AcquireError, BootClock, Client, Clock, Guard, ReleaseAnswer, Removal};
use ringfence_test_support::{Servers, eventually};
use tokio::time::{Instant, sleep, timeout};

use super::{SECOND, home_of, keys_on, not_the_home, scene::Scene};

/// Renewals that the server did, ever.
async fn renewals(servers: &Servers) -> f64 {
    let info: String = servers.ask(0, &["INFO", "commandstats"]).await;
    let mut lines = info.lines();
    let calls = lines.find_map(|line| line.strip_prefix("cmdstat_pexpire:calls="));
    let calls = calls.and_then(|line| line.split(',').next());
    calls.map_or(0.0, |calls| calls.parse().unwrap())
}

/// Renewals a second, over `length`.
async fn renewal_rate(servers: &Servers, length: Duration) -> f64 {
    let (began, before) = (Instant::now(), renewals(servers).await);
    sleep(length).await;
    (renewals(servers).await - before) / began.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_shorter_than_the_lease_costs_no_lock_and_ends_without_a_storm() {
    let servers = Servers::spawn(1).await;
    let client = servers
        .builder()
        .max_lease(2 * SECOND)
        .build()
        .await
        .unwrap();
    let mut guards = Vec::new();
    for index in 0..200 {
        let key = format!("key/{index}");
        guards.push(client.lock(&key).acquire().await.unwrap());
    }
    eventually("a renewal", async || renewals(&servers).await > 0.0).await;
    let before = renewal_rate(&servers, 2 * SECOND).await;
    assert!(before > 100.0, "{before} a second of 200 locks");
    for _ in 0..2 {
        servers.servers[0].stop();
        sleep(SECOND * 4 / 5).await;
        servers.servers[0].cont();
        let after = renewal_rate(&servers, SECOND).await;
        assert!(after < 2.0 * before, "{after} a second after {before}");
        assert!(guards.iter().all(Guard::is_held));
    }
}

#[tokio::test]
async fn answers_after_a_stop_longer_than_the_lease_are_ignored() {
    let scene = Scene::new(SECOND, |builder| builder).await;
    let server = &scene.servers.servers[scene.index];
    let deadline = scene.guard.deadline();
    server.stop();
    let stopped = Instant::now();

    // Stale requests of every kind wait in its sockets when it wakes up: these, and renewals.
    let other = scene.client.lock(&scene.other);
    let unanswered = other.try_acquire().await.unwrap_err();
    assert!(
        matches!(unanswered, AcquireError::Shard(_)),
        "{unanswered:?}"
    );
    let lost = timeout(20 * SECOND, scene.guard.lost()).await;
    lost.expect("told by its deadline");
    let lost_at = BootClock.now();
    assert!(!scene.guard.is_held());
    assert!(scene.guard.deadline() <= lost_at);
    assert!(
        scene.guard.deadline() <= deadline + SECOND,
        "none was answered"
    );
    sleep((3 * SECOND).saturating_sub(stopped.elapsed())).await;
    server.cont();

    let rival = rival(&scene).await;
    let [key, _] = keys_on(&scene.servers, &scene.client, scene.index);
    for key in [&key, &scene.other] {
        let next = rival.lock(key).wait(20 * SECOND).acquire().await.unwrap();
        assert!(next.token() > scene.guard.token());
        assert!(!scene.guard.is_held());
        sleep(SECOND).await;
        assert!(next.is_held(), "nothing stale ended it");
        assert_eq!(next.release().await, ReleaseAnswer::Held);
    }
    assert_eq!(scene.guard.release().await, ReleaseAnswer::Lost);
}

/// A view ends sooner than a server that does not answer is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_member_stops_no_process_where_removal_is_leased() {
    let servers = Servers::spawn(3).await;
    let leased = servers.builder().max_lease(6 * SECOND);
    let leased = leased.removal(Removal::Leased).view_lease(SECOND);
    let old = leased.clone().build().await.unwrap();
    let (home, silent) = (home_of(&servers, &old), not_the_home(&servers, &old));
    let [of_home, next_of_home] = keys_on(&servers, &old, home);
    let [of_other, next_of_other] = keys_on(&servers, &old, 3 - home - silent);
    let take = async |client: &Client, key: &String| {
        let granted = client.lock(key).wait(10 * SECOND).acquire().await;
        granted.unwrap()
    };
    let mut held = vec![take(&old, &of_home).await, take(&old, &of_other).await];

    servers.servers[silent].stop();
    let new = leased.build().await.unwrap();
    held.push(take(&new, &next_of_home).await);
    held.push(take(&new, &next_of_other).await);
    // Confirmed a few times meanwhile.
    sleep(3 * SECOND).await;
    assert!(held.iter().all(Guard::is_held), "{held:?}");
    servers.servers[silent].cont();
    let [of_silent, _] = keys_on(&servers, &new, silent);
    take(&new, &of_silent).await.release().await;
}

/// Another client of the same servers.
async fn rival(scene: &Scene) -> Client {
    scene.servers.builder().build().await.unwrap()
}
