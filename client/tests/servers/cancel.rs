//! Dropping a future at any await leaves nothing locked and loses nothing: on a server, with any
//! part of a request or of its answer on the way.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, Lock, limits::LEASE_MAX};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Flow, Relay, Whose, cancel, eventually};
use tokio::task::yield_now;

use super::{
    SECOND,
    comeback::Stage,
    queue::{KEY, Waiter, leaves_only, traces},
    scene::Proxied,
};

/// Two clients of a server that is reached by a relay.
struct Relayed {
    client: Client,
    other: Client,
    server: RedisServer,
    _ways: (Relay, Stage),
}

impl Relayed {
    async fn spawn() -> Self {
        let server = RedisServer::spawn().await.unwrap();
        let relay = Relay::to(server.port()).await;
        let url = format!("redis://127.0.0.1:{}", relay.port());
        let stage = Stage::of(url, LEASE_MAX).await;
        Self {
            client: stage.client("client").await,
            other: stage.client("other").await,
            server,
            _ways: (relay, stage),
        }
    }
}

#[tokio::test]
async fn an_acquire_dropped_after_any_turn_holds_nothing() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_acquire_holds_nothing(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_set_dropped_after_any_turn_holds_nothing() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_multi_lock_holds_nothing(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_wait_dropped_after_any_turn_holds_nothing() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_wait_holds_nothing(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_release_dropped_after_any_turn_still_releases() {
    let Relayed { client, other, .. } = &Relayed::spawn().await;
    cancel::a_dropped_release_releases(client, other, &yield_now).await;
}

#[tokio::test]
async fn a_dropped_wait_for_danger_or_loss_has_no_effect() {
    let Relayed { client, .. } = &Relayed::spawn().await;
    cancel::dropped_notices_lose_nothing(client, &yield_now).await;
}

/// Asked for, in the queue, asking again, or past its deadline.
#[tokio::test]
async fn a_wait_dropped_after_any_turn_leaves_no_place_in_the_queue() {
    let Relayed {
        client,
        other,
        server,
        ..
    } = &Relayed::spawn().await;
    leaves_no_place(server, &other.lock(KEY), &client.lock(KEY)).await;
}

/// Before it is granted, while its turn is on the way, and after.
#[tokio::test]
async fn a_wait_dropped_after_any_turn_while_it_is_granted_leaves_nothing() {
    let Relayed {
        client,
        other,
        server,
        ..
    } = &Relayed::spawn().await;
    leaves_no_turn(server, &other.lock(KEY), &client.lock(KEY)).await;
}

/// A wait for `wanted`, while `of_holder` is held, leaves neither a place in the queue nor a record.
async fn leaves_no_place(server: &RedisServer, of_holder: &Lock, wanted: &Lock) {
    let guard = of_holder.acquire().await.unwrap();
    after_every_turn("a wait with a deadline", async |turns| {
        let lock = wanted.clone().wait(SECOND / 20);
        let waited = dropped_after(turns, yield_now, lock.acquire()).await;
        // The request may still be under way, with its release behind it.
        eventually("no place in the queue", async || {
            let found = of_holder.inspect().await.unwrap();
            let holder = found.holder.map(|holder| holder.token);
            assert_eq!(holder, Some(guard.token()));
            assert!(found.others.is_empty());
            found.waiters.is_empty()
        })
        .await;
        leaves_only(server, 1).await;
        waited.is_some()
    })
    .await;
    guard.release().await;
    leaves_only(server, 0).await;
}

/// A wait for `wanted` leaves nothing when `of_holder` is released meanwhile.
async fn leaves_no_turn(server: &RedisServer, of_holder: &Lock, wanted: &Lock) {
    after_every_turn("a turn", async |turns| {
        let guard = of_holder.acquire().await.unwrap();
        let mut wait = Box::pin(wanted.acquire());
        let queued = async || {
            let found = of_holder.inspect().await.unwrap();
            found.waiters.len() == 1 && traces(server).await.len() == 3
        };
        tokio::select! {
            waited = &mut wait => panic!("there is no room: {waited:?}"),
            () = eventually("in the queue", queued) => {}
        }
        let waiting = dropped_after(turns, yield_now, wait);
        let (waited, _) = tokio::join!(waiting, guard.release());
        let done = waited.is_some();
        drop(waited);
        leaves_only(server, 0).await;
        done
    })
    .await;
}

/// What a reader waits for while a writer has the table, and what two permits wait for while one of two is taken.
fn shares(client: &Client) -> [[Lock; 2]; 2] {
    let (table, semaphore) = (client.rw_lock("table"), client.semaphore("permits", 2));
    [
        [table.write(), table.read()],
        [semaphore.permit(), semaphore.permits(2)],
    ]
}

/// Asked for, in the queue, asking again, or past its deadline.
#[tokio::test]
async fn a_wait_for_shares_dropped_after_any_turn_leaves_no_place_and_no_share() {
    let Relayed {
        client,
        other,
        server,
        ..
    } = &Relayed::spawn().await;
    for ([of_holder, _], [_, wanted]) in std::iter::zip(shares(other), shares(client)) {
        leaves_no_place(server, &of_holder, &wanted).await;
    }
}

/// Before they are granted, while their turn is on the way, and after.
#[tokio::test]
async fn a_wait_for_shares_dropped_after_any_turn_while_it_is_granted_leaves_nothing() {
    let Relayed {
        client,
        other,
        server,
        ..
    } = &Relayed::spawn().await;
    for ([of_holder, _], [_, wanted]) in std::iter::zip(shares(other), shares(client)) {
        leaves_no_turn(server, &of_holder, &wanted).await;
    }
}

#[tokio::test]
async fn a_wait_whose_time_is_over_leaves_no_place_in_the_queue() {
    let Relayed {
        client,
        other,
        server,
        ..
    } = &Relayed::spawn().await;
    let guard = other.lock(KEY).acquire().await.unwrap();
    for length in 0..20 {
        let lock = client.lock(KEY).wait(Duration::from_millis(length));
        let waited = lock.acquire().await;
        assert!(
            matches!(waited, Err(AcquireError::TimedOut { .. })),
            "{waited:?}"
        );
        leaves_only(server, 1).await;
    }
    guard.release().await;
    leaves_only(server, 0).await;
}

/// What it asked for comes to the server after it left: what takes it back comes behind.
#[tokio::test]
async fn a_wait_given_up_while_its_request_is_on_the_way_leaves_no_place_in_the_queue() {
    let scene = Proxied::new(LEASE_MAX).await;
    let rival = scene.rival().await;
    let guard = scene.client.lock(KEY).acquire().await.unwrap();
    let work = Whose::lane("work");
    for _ in 0..5 {
        // With connections that are there already.
        rival.lock(KEY).try_acquire().await.unwrap_err();
        let before = scene.proxy.counts(&work).replies;
        scene.proxy.requests(&work, Flow::Hold);
        let mut waiter = Waiter::start(&rival, LEASE_MAX);
        assert!(waiter.waits_for(SECOND / 20).await);
        drop(waiter);
        yield_now().await;
        scene.proxy.heal();
        let both = async || scene.proxy.counts(&work).replies >= before + 2;
        eventually("it came, and was taken back", both).await;
        leaves_only(&scene.servers.servers[0], 1).await;
    }
    guard.release().await;
    leaves_only(&scene.servers.servers[0], 0).await;
}
