//! Servers that stop for a while (SIGSTOP): connections stay open, nothing answers, and on waking the
//! server does all that it was sent meanwhile.

use std::time::Duration;

use ringfence_client::{AcquireError, BootClock, Client, Clock, Guard, ReleaseAnswer, Removal};
use ringfence_test_support::{Servers, eventually};
use tokio::time::{Instant, sleep, timeout};

use super::{DEADLINE, SECOND, home_of, keys_on, not_the_home, scene::Scene};

/// Of a lock that is lost.
const SHORT: Duration = Duration::from_secs(3);

/// Of locks whose renewals are waited for.
const LEASE: Duration = Duration::from_secs(6);

/// Renewals that the server did, ever.
async fn renewals(servers: &Servers) -> u64 {
    let info: String = servers.ask(0, &["INFO", "commandstats"]).await;
    let mut lines = info.lines();
    let calls = lines.find_map(|line| line.strip_prefix("cmdstat_pexpire:calls="));
    let calls = calls.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_shorter_than_the_lease_costs_no_lock_and_ends_without_a_storm() {
    const LOCKS: u64 = 200;
    let servers = Servers::spawn(1).await;
    let client = servers.builder().max_lease(LEASE).build().await.unwrap();
    let mut guards = Vec::new();
    for index in 0..LOCKS {
        let key = format!("key/{index}");
        guards.push(client.lock(&key).acquire().await.unwrap());
    }
    for _ in 0..2 {
        let (began, before) = (Instant::now(), renewals(&servers).await);
        let deadlines: Vec<_> = guards.iter().map(Guard::deadline).collect();
        servers.servers[0].stop();
        sleep(SECOND * 4 / 5).await;
        servers.servers[0].cont();
        eventually("all are renewed", async || {
            let mut both = std::iter::zip(&guards, &deadlines);
            both.all(|(guard, before)| guard.deadline() > *before)
        })
        .await;
        // Each lock once per quarter of a lease at most, and once more for a renewal that the stop kept back.
        let done = renewals(&servers).await - before;
        let quarters = began.elapsed().as_millis().div_ceil(LEASE.as_millis() / 4);
        let most = LOCKS * (quarters as u64 + 1);
        assert!(
            done <= most,
            "{done} of {LOCKS} locks in {quarters} quarters"
        );
        assert!(guards.iter().all(Guard::is_held));
    }
}

#[tokio::test]
async fn answers_after_a_stop_longer_than_the_lease_are_ignored() {
    let scene = Scene::new(SHORT, |builder| builder).await;
    let server = &scene.servers.servers[scene.index];
    let deadline = scene.guard.deadline();
    server.stop();

    // Stale requests of every kind wait in its sockets when it wakes up: these, and renewals.
    let other = scene.client.lock(&scene.other);
    let unanswered = other.try_acquire().await.unwrap_err();
    assert!(
        matches!(unanswered, AcquireError::Shard(_)),
        "{unanswered:?}"
    );
    let lost = timeout(DEADLINE, scene.guard.lost()).await;
    lost.expect("told by its deadline");
    let lost_at = BootClock.now();
    assert!(!scene.guard.is_held());
    assert!(scene.guard.deadline() <= lost_at);
    assert!(
        scene.guard.deadline() <= deadline + SHORT,
        "none was answered"
    );
    // Its record has ended, too, when the server wakes up.
    sleep(SHORT / 2).await;
    server.cont();

    let rival = rival(&scene).await;
    let [key, _] = keys_on(&scene.servers, &scene.client, scene.index);
    for key in [&key, &scene.other] {
        let next = rival.lock(key).wait(DEADLINE).acquire().await.unwrap();
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
        let granted = client.lock(key).wait(DEADLINE).acquire().await;
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
