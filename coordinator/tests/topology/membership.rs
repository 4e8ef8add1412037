//! A server comes in, and one that left is let go.

use std::sync::Arc;

use ringfence_coordinator::{
    shard::{
        Grace, Shard, ShardError,
        redis::{RedisOptions, RedisShard},
    },
    spawn::{RedisServer, RedisServerBuilder},
    topology::{
        FailedShard, Founder, ShardName, Topology, TopologyError, TopologyStore,
        server::{Founding, Joined},
    },
};
use ringfence_ring::{ShardId, Weight};

use super::{
    newcomer::{Stage, take_in},
    servers::{POINTER, Servers, founding, join, join_with, options, successor},
};

async fn arm(seed: RedisOptions, topology: &Topology, id: &ShardId) -> Result<bool, ShardError> {
    let mut link = RedisShard::new(seed).connect_control(None).await?;
    let armed = link.arm(&topology.arm(id, Grace::None)).await?;
    Ok(armed.armed_now)
}

/// The message of an error that is expected to be `Seeds`.
fn refused<T>(result: Result<T, TopologyError>) -> String {
    match result {
        Err(TopologyError::Seeds(message)) => message,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was let"),
    }
}

fn id(name: &str) -> ShardId {
    ShardId::new(name).unwrap()
}

#[tokio::test]
async fn a_server_comes_in_with_a_pointer_and_a_copy_and_nothing_else() {
    let stage = Stage::new(2).await;
    let founder = stage.take_in().await.unwrap();
    let expected = Founder {
        id: id("c"),
        address: stage.address(),
        life: stage.newcomer.life(0).await,
        weight: Weight::ONE,
        zone: None,
    };
    assert_eq!(founder, expected);
    let has = ["copy", "fence", "ringfence:lives", POINTER];
    assert_eq!(stage.left().await, has);
    let pointers = stage.newcomer.pointers().await;
    assert_eq!(pointers, [Some(stage.joined.topology.id.clone())]);
    // A caller without an answer asks again.
    assert_eq!(stage.take_in().await.unwrap(), expected);

    let called = |name| {
        stage
            .store()
            .take_in(stage.seed(), Some(id(name)), Weight::ONE)
    };
    assert_eq!(called("north").await.unwrap().id, id("north"));
    let error = refused(called("b").await);
    let there = &stage.joined.topology.shard(&id("b")).unwrap().address;
    assert!(error.contains("id b") && error.contains(there), "{error}");
}

#[tokio::test]
async fn only_what_has_come_in_can_be_armed() {
    let stage = Stage::new(1).await;
    let topology = &stage.joined.topology;
    let early = arm(stage.seed(), topology, &id("a")).await;
    assert!(
        matches!(early, Err(ShardError::Refused { .. })),
        "{early:?}"
    );
    let (topology, id) = stage.enter().await;
    assert!(arm(stage.seed(), &topology, &id).await.unwrap());
}

#[tokio::test]
async fn an_unfit_server_stays_as_it_is() {
    let stage = Stage::new(1).await;
    let spawn = async |set_up: fn(RedisServerBuilder) -> RedisServerBuilder| {
        set_up(RedisServer::builder()).spawn().await.unwrap()
    };
    let cluster = spawn(|builder| builder.set("cluster-enabled", "yes")).await;
    let evicting = spawn(|builder| builder.set("maxmemory-policy", "allkeys-lru")).await;
    for (server, why) in [(&cluster, "cluster_enabled"), (&evicting, "noeviction")] {
        let error = refused(take_in(stage.store(), options(&server.url())).await);
        assert!(error.contains(why), "{error}");
    }
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(evicting.port());
    let mut raw = stage.newcomer.raw(0).await;
    follow.exec_async(&mut raw).await.unwrap();
    let error = stage.take_in().await.unwrap_err();
    assert!(error.to_string().contains("a primary is needed"), "{error}");
    assert_eq!(stage.left().await, Vec::<String>::new());
    stage.newcomer.0[0].stop();
    let error = stage.take_in().await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains(&stage.address()), "{error}");
}

#[tokio::test]
async fn a_member_does_not_come_in_by_another_name() {
    let stage = Stage::new(2).await;
    for place in 0..2 {
        let address = &stage.servers.addresses()[place];
        let error = refused(take_in(stage.store(), stage.servers.seeds().remove(place)).await);
        let shard = ["shard a", "shard b"][place];
        assert!(error.contains(address) && error.contains(shard), "{error}");
        let other = options(
            &stage.servers.0[place]
                .url()
                .replace("127.0.0.1", "localhost"),
        );
        let error = refused(take_in(stage.store(), other.clone()).await);
        let other = other.address.as_str();
        assert!(error.contains(address) && error.contains(other), "{error}");
    }
}

#[tokio::test]
async fn a_server_of_another_topology_is_refused_and_both_are_named() {
    let stage = Stage::new(1).await;
    let theirs = stage.newcomer.found().await.topology;
    let before = stage.left().await;
    let error = refused(stage.take_in().await);
    for named in [&stage.address(), &theirs.id, &stage.joined.topology.id] {
        assert!(error.contains(named), "{error}");
    }
    assert_eq!(stage.left().await, before);
    assert_eq!(stage.newcomer.pointers().await, [Some(theirs.id.clone())]);
}

#[tokio::test]
async fn a_pointer_that_no_resize_followed_harms_nobody() {
    let mut stage = Stage::new(1).await;
    let founder = stage.take_in().await.unwrap();
    let joined = join(vec![stage.seed()]).await.unwrap();
    assert_eq!(joined.topology, stage.joined.topology);
    let told = joined.warnings.iter();
    let told = told.filter(|told| told.contains("no member")).count();
    assert_eq!(told, 1, "{:?}", joined.warnings);

    let theirs = Servers::spawn(1).await;
    let their_store = theirs.found().await.store;
    refused(take_in(&their_store, stage.seed()).await);
    stage.newcomer.0[0].restart().await.unwrap();
    let again = stage.take_in().await.unwrap();
    assert_eq!((again.id, again.address), (founder.id, founder.address));
    assert_ne!(again.life, founder.life);
    assert!(stage.store().release(&stage.address()).await.unwrap());
    assert_eq!(stage.newcomer.pointers().await, [None]);
}

#[tokio::test]
async fn a_new_member_has_a_copy_before_it_is_armed_and_a_former_one_gets_none() {
    let stage = Stage::new(1).await;
    let (entered, id) = stage.enter().await;
    let copy = stage.newcomer.key_of_life(0, "copy").await;
    let copied = async || stage.newcomer.get(0, &copy).await.unwrap();
    let of = |topology: &Topology| {
        let (n, version) = topology.version();
        format!("{n} {version} {}", topology.encode())
    };
    assert_eq!(copied().await, of(&entered));
    let mut next = successor(&entered);
    next.last_epoch.0 += 1;
    stage.swap(&entered, &next).await;
    assert_eq!(copied().await, of(&next));
    stage.leave(&id).await;
    assert_eq!(copied().await, of(&next));
}

#[tokio::test]
async fn a_former_member_still_works_as_a_seed() {
    let stage = Stage::new(2).await;
    let (entered, id) = stage.enter().await;
    assert!(arm(stage.seed(), &entered, &id).await.unwrap());
    let left = Arc::new(stage.leave(&id).await);
    let told = |joined: Joined| {
        let of_it = |told: &&String| told.starts_with(&stage.address());
        assert_eq!(joined.topology, left);
        assert_eq!(joined.warnings.iter().filter(of_it).count(), 1);
    };
    told(join(vec![stage.seed()]).await.unwrap());
    let all = || [stage.servers.seeds(), vec![stage.seed()]].concat();
    told(join(all()).await.unwrap());
    assert!(stage.store().release(&stage.address()).await.unwrap());
    told(join(all()).await.unwrap());
}

#[tokio::test]
async fn a_former_member_may_return_until_it_is_released_and_after_a_restart() {
    let mut stage = Stage::new(2).await;
    let (entered, id) = stage.enter().await;
    assert!(arm(stage.seed(), &entered, &id).await.unwrap());
    stage.leave(&id).await;
    let (again, id) = stage.enter().await;
    // Its state is of before: it is armed anew, and a late arming of before does nothing.
    assert!(arm(stage.seed(), &again, &id).await.unwrap());
    assert!(!arm(stage.seed(), &entered, &id).await.unwrap());

    stage.leave(&id).await;
    assert!(stage.store().release(&stage.address()).await.unwrap());
    let late = arm(stage.seed(), &entered, &id).await;
    assert!(matches!(late, Err(ShardError::Refused { .. })), "{late:?}");
    let error = refused(stage.take_in().await);
    assert!(error.contains("restart it"), "{error}");
    stage.newcomer.0[0].restart().await.unwrap();
    let (again, id) = stage.enter().await;
    assert!(arm(stage.seed(), &again, &id).await.unwrap());
}

#[tokio::test]
async fn a_shard_declared_dead_returns_in_another_life_and_by_another_name() {
    let mut stage = Stage::new(2).await;
    let (entered, id) = stage.enter().await;
    assert!(arm(stage.seed(), &entered, &id).await.unwrap());
    let known = stage.store().load().await.unwrap();
    let mut next = successor(&known);
    let entry = next.shards.remove(&ShardName(id.clone())).unwrap();
    next.failed.push(FailedShard {
        shard: ShardName(id.clone()),
        address: entry.address,
        lives: vec![entry.life],
        epoch: next.last_epoch,
    });
    stage.swap(&known, &next).await;

    let error = refused(stage.take_in().await);
    assert!(
        error.contains("dead") && error.contains("restart it"),
        "{error}"
    );
    stage.newcomer.0[0].restart().await.unwrap();
    let error = stage.store().take_in(stage.seed(), Some(id), Weight::ONE);
    let error = refused(error.await);
    assert!(error.contains("id c is taken"), "{error}");
    assert_eq!(stage.take_in().await.unwrap().id.as_str(), "d");
}

#[tokio::test]
async fn a_server_that_is_released_is_free_for_another_topology() {
    let stage = Stage::new(1).await;
    let (entered, id) = stage.enter().await;
    assert!(arm(stage.seed(), &entered, &id).await.unwrap());
    stage.leave(&id).await;
    assert!(stage.store().release(&stage.address()).await.unwrap());
    assert_eq!(stage.left().await, ["fence", "ringfence:lives"]);
    assert!(!stage.store().release(&stage.address()).await.unwrap());

    let theirs = stage.newcomer.found().await.topology;
    let first = theirs.shards.first_key_value().unwrap().0.0.clone();
    assert!(arm(stage.seed(), &theirs, &first).await.unwrap());
    // It is not ours to release.
    assert!(!stage.store().release(&stage.address()).await.unwrap());
    assert_eq!(stage.newcomer.pointers().await, [Some(theirs.id.clone())]);
}

#[tokio::test]
async fn a_home_that_is_no_shard_is_not_released_by_whatever_name() {
    let (servers, home) = (Servers::spawn(1).await, Servers::spawn(1).await);
    let address = home.seeds().remove(0).address;
    let founding = Founding {
        home: Some(address.clone().into()),
        ..founding()
    };
    let joined = join_with(servers.seeds(), founding).await.unwrap();
    assert!(!joined.store.release(address.as_str()).await.unwrap());
    let other = address.as_str().replace("127.0.0.1", "localhost");
    let error = refused(joined.store.release(&other).await);
    assert!(error.contains("keeps the record"), "{error}");
    assert_eq!(joined.store.load().await.unwrap(), joined.topology);
    assert_eq!(home.pointers().await, servers.pointers().await);
}

#[tokio::test]
async fn a_member_in_use_is_not_released() {
    let stage = Stage::new(2).await;
    let (home, other) = (stage.home, 1 - stage.home);
    let addresses = stage.servers.addresses();
    let store = stage.store();
    assert!(!store.release(&addresses[home]).await.unwrap());
    let error = refused(store.release(&addresses[other]).await);
    assert!(error.contains("remove it first"), "{error}");
    let by_another_name = addresses[other].replace("127.0.0.1", "localhost");
    let error = refused(store.release(&by_another_name).await);
    assert!(error.contains("remove it first"), "{error}");
    let home_by_another_name = addresses[home].replace("127.0.0.1", "localhost");
    refused(store.release(&home_by_another_name).await);

    let shard = id(["a", "b"][other]);
    let seed = stage.servers.seeds().remove(other);
    assert!(arm(seed, &stage.joined.topology, &shard).await.unwrap());
    stage.leave(&shard).await;
    let before = stage.servers.keys(other, "*").await.len();
    let error = refused(store.release(&addresses[other]).await);
    assert!(error.contains("not shut"), "{error}");
    assert_eq!(stage.servers.keys(other, "*").await.len(), before);
}

/// Both addresses lead to it, and some process knows the former one only.
#[tokio::test]
async fn a_member_with_another_address_is_one_server_and_pointers_name_that() {
    let (mut servers, joined, home) = Servers::spawn(2).await.founded().await;
    let other = 1 - home;
    let [name, home_name] = [other, home].map(|place| id(&servers.shard(&joined.topology, place)));
    let [renamed, home_renamed] = [other, home].map(|place| {
        let url = servers.0[place].url();
        options(&url.replace("127.0.0.1", "localhost"))
    });
    let theirs = join(servers.seeds()).await.unwrap().store;
    let address = renamed.address.to_string();
    let changed = theirs.readdress(&name, renamed).await.unwrap();
    servers.0[home].restart().await.unwrap();
    let recovered = joined.store.load().await.unwrap();
    assert!(recovered.version() > changed.version());
    assert_eq!(recovered.shard(&name).unwrap().address, address);

    let address = home_renamed.address.to_string();
    let changed = theirs.readdress(&home_name, home_renamed).await.unwrap();
    assert_eq!(changed.home.address, address);
    let pointer = servers.get(other, POINTER).await.unwrap();
    assert!(pointer.ends_with(&address), "{pointer}");
}
