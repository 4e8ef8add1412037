//! Each error of a server, from a real one: what it means, that nothing was applied, that held
//! locks outlive it, and that all goes on when it is over.

use std::{pin::pin, time::Duration};

use redis::aio::MultiplexedConnection;
use ringfence_client::{AcquireError, Danger, Effect, ReleaseAnswer, ShardError};
use ringfence_coordinator::spawn::RedisServerBuilder;
use ringfence_test_support::{Servers, connection, eventually, pause};

use super::{DEADLINE, SECOND, scene::Scene};

/// Far longer than each trouble lasts.
const LEASE: Duration = Duration::from_secs(12);

/// A port that nobody listens on.
const NOBODY: &str = "1";

async fn scene() -> Scene {
    Scene::new(LEASE, |builder| builder).await
}

/// A renewal has met it, and the guard is in danger, but held.
async fn renewal_has_failed(scene: &Scene) {
    assert_eq!(scene.guard.danger().await, Danger::RenewalFailed);
    assert!(scene.guard.is_held());
}

#[tokio::test]
async fn readonly_is_another_life_perhaps() {
    let scene = scene().await;
    scene.ask::<()>(&["REPLICAOF", "127.0.0.1", NOBODY]).await;
    assert!(scene.refuses_scripts_with("READONLY").await);
    assert!(matches!(scene.refused(true).await, ShardError::Unarmed));
    renewal_has_failed(&scene).await;
    scene.ask::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    scene.goes_on().await;
}

#[tokio::test]
async fn masterdown_is_another_life_perhaps() {
    let set_up = |builder: RedisServerBuilder| {
        let builder = builder.set("replica-serve-stale-data", "no");
        builder.set("replica-read-only", "no")
    };
    let scene = Scene::new(LEASE, set_up).await;
    scene.ask::<()>(&["REPLICAOF", "127.0.0.1", NOBODY]).await;
    assert!(scene.refuses_scripts_with("MASTERDOWN").await);
    assert!(matches!(scene.refused(true).await, ShardError::Unarmed));
    renewal_has_failed(&scene).await;
    scene.ask::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    scene.goes_on().await;
}

#[tokio::test]
async fn loading_is_waited_for() {
    let set_up = |builder: RedisServerBuilder| {
        let builder = builder.set("appendonly", "yes");
        builder.set("key-load-delay", 50) // microseconds
    };
    let mut scene = Scene::new(LEASE, set_up).await;
    let many = "for key = 1, 10000 do redis.call('SET', key, key) end";
    scene.ask::<()>(&["EVAL", many, "0"]).await;

    let lock = scene.client.lock(&scene.other);
    let told = async || {
        loop {
            pause().await;
            // It may not be ended yet, or may have loaded already.
            let Err(refused) = lock.try_acquire().await else {
                continue;
            };
            assert!(refused.is_retryable(), "{refused:?}");
            if refused.to_string().contains("is loading the dataset") {
                assert_eq!(refused.effect(), Effect::None, "{refused:?}");
                return;
            }
        }
    };
    let mut is_told = false;
    while !is_told {
        let mut restarting = pin!(scene.servers.servers[scene.index].restart());
        is_told = tokio::select! {
            () = told() => true,
            restarted = &mut restarting => {
                restarted.unwrap();
                continue;
            }
        };
        restarting.await.unwrap();
    }
    scene.goes_on().await;
}

#[tokio::test]
async fn a_flush_of_functions_is_another_life_perhaps() {
    let scene = scene().await;
    for _ in 0..3 {
        // A renewal that comes first has it armed again.
        let is_refused = async || {
            scene.ask::<()>(&["FUNCTION", "FLUSH"]).await;
            match scene.client.lock(&scene.other).try_acquire().await {
                Ok(guard) => drop(guard.release().await),
                Err(AcquireError::Shard(ShardError::Unarmed)) => return true,
                Err(error) => panic!("{error:?}"),
            }
            false
        };
        eventually("refused", is_refused).await;
        let renewed = scene.guard.deadline();
        eventually("renewed", async || scene.guard.deadline() > renewed).await;
        let lock = scene.client.lock(&scene.other).wait(DEADLINE);
        lock.acquire().await.unwrap().release().await;
    }
    scene.goes_on().await;
}

#[tokio::test]
async fn busy_is_waited_for() {
    let scene = Scene::new(LEASE, |builder| builder.set("busy-reply-threshold", 10)).await;
    let busy = async || scene.refuses_scripts_with("BUSY").await;
    let mut spinning = connection(&scene.servers.servers[scene.index]).await;
    let mut endless = redis::cmd("EVAL");
    endless.arg("while true do end").arg(0);
    let trouble = async {
        eventually("busy", busy).await;
        let refused = scene.refused(true).await;
        assert!(
            matches!(refused, ShardError::Unreachable { .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("BUSY"), "{refused}");
        renewal_has_failed(&scene).await;
        scene.ask::<()>(&["SCRIPT", "KILL"]).await;
    };
    let (endless, ()) = tokio::join!(endless.exec_async(&mut spinning), trouble);
    endless.unwrap_err();
    eventually("killed", async || !busy().await).await;
    scene.goes_on().await;
}

#[tokio::test]
async fn noreplicas_is_waited_for() {
    let scene = scene().await;
    scene
        .ask::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .await;
    assert!(scene.refuses_scripts_with("NOREPLICAS").await);
    let refused = scene.refused(true).await;
    assert!(
        matches!(refused, ShardError::Unreachable { .. }),
        "{refused:?}"
    );
    renewal_has_failed(&scene).await;
    scene
        .ask::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"])
        .await;
    scene.goes_on().await;
}

#[tokio::test]
async fn misconf_is_waited_for() {
    let scene = scene().await;
    let [_, dir]: [String; 2] = scene.ask(&["CONFIG", "GET", "dir"]).await;
    scene
        .ask::<()>(&["CONFIG", "SET", "save", "3600 1000000"])
        .await;
    std::fs::remove_dir_all(&dir).unwrap();
    scene.ask::<()>(&["BGSAVE"]).await;
    eventually("the disk has failed", async || {
        scene.refuses_scripts_with("MISCONF").await
    })
    .await;
    let refused = scene.refused(true).await;
    assert!(
        matches!(refused, ShardError::Unreachable { .. }),
        "{refused:?}"
    );
    renewal_has_failed(&scene).await;
    std::fs::create_dir(&dir).unwrap();
    scene
        .ask::<()>(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"])
        .await;
    scene.goes_on().await;
}

#[tokio::test]
async fn noperm_is_for_a_person_to_mend() {
    let scene = scene().await;
    scene
        .ask::<()>(&["ACL", "SETUSER", "default", "-fcall"])
        .await;
    let refused = scene.refused(false).await;
    assert!(
        matches!(refused, ShardError::Unusable { .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("docs/operate/servers.md"),
        "{refused}"
    );
    renewal_has_failed(&scene).await;
    scene
        .ask::<()>(&["ACL", "SETUSER", "default", "+fcall"])
        .await;
    scene.goes_on().await;
}

#[tokio::test]
async fn a_limit_of_connections_is_named() {
    let scene = scene().await;
    let mut asks = connection(&scene.servers.servers[scene.index]).await;
    let limit = async |asks: &mut MultiplexedConnection, most: u32| {
        let mut set = redis::cmd("CONFIG");
        set.arg(&["SET", "maxclients"]).arg(most);
        set.exec_async(asks).await.unwrap();
    };
    limit(&mut asks, 1).await;
    let newcomer = scene.servers.builder().existing_topology(true);
    let newcomer = newcomer.build().await.unwrap();
    let warnings = newcomer.warnings().join("\n");
    assert!(warnings.contains("raise its maxclients"), "{warnings}");
    limit(&mut asks, 10_000).await;
    scene.goes_on().await;
}

#[tokio::test]
async fn a_server_that_refuses_keeps_its_connections() {
    let scene = scene().await;
    let accepted = async || -> u64 {
        let info: String = scene.ask(&["INFO", "stats"]).await;
        let field = "total_connections_received:";
        let line = info.lines().find_map(|line| line.strip_prefix(field));
        line.unwrap().parse().unwrap()
    };
    scene
        .ask::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .await;
    let before = accepted().await;
    scene.refused(true).await;
    // By then a connection that had ended would have been opened again.
    renewal_has_failed(&scene).await;
    scene.refused(true).await;
    assert_eq!(accepted().await, before + 1, "none but the one that asks");
    scene
        .ask::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"])
        .await;
    scene.goes_on().await;
}

#[tokio::test]
async fn a_full_server_keeps_its_locks_and_grants_nothing() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let guard = client
        .lock("key")
        .lease(6 * SECOND)
        .acquire()
        .await
        .unwrap();
    servers
        .ask::<()>(0, &["CONFIG", "SET", "maxmemory", "1"])
        .await;
    let refused = client.lock("other").try_acquire().await.unwrap_err();
    assert!(
        matches!(refused, AcquireError::OutOfMemory(_)),
        "{refused:?}"
    );
    assert!(refused.is_retryable());
    assert_eq!(refused.effect(), Effect::None);
    let end = guard.deadline();
    eventually("renewed", async || guard.deadline() > end).await;
    assert!(guard.is_held());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    servers
        .ask::<()>(0, &["CONFIG", "SET", "maxmemory", "0"])
        .await;
    client
        .lock("other")
        .try_acquire()
        .await
        .unwrap()
        .release()
        .await;
}

#[tokio::test]
async fn a_full_server_that_came_back_still_accepts_its_holders() {
    let scene = scene().await;
    scene.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    scene.ask::<()>(&["REPLICAOF", "127.0.0.1", NOBODY]).await;
    scene.ask::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    let end = scene.guard.deadline();
    eventually("renewed in the new life", async || {
        scene.guard.deadline() > end
    })
    .await;
    scene.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    scene.goes_on().await;
}
