//! A topology is founded once, on all servers, and only on servers without a trace of one.

use std::{sync::mpsc, time::Duration};

use ringfence_coordinator::{
    name::KeyPrefix,
    shard::redis::RedisOptions,
    spawn::RedisServer,
    topology::{
        Constants, Removal, Status, TopologyError, TopologyStore,
        server::{Founding, Joined, Observer, Step},
    },
};
use ringfence_ring::{ShardId, Weight};
use tokio::task::JoinSet;

use super::servers::{RECORD, Servers, founding, hopeless, join, join_with, members, options};

#[tokio::test]
async fn a_topology_is_founded_on_all_seeds_in_their_order() {
    let servers = Servers::spawn(3).await;
    let joined = servers.found().await;

    let topology = &joined.topology;
    let names: Vec<&str> = topology.shards.keys().map(|name| name.0.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(members(topology), servers.addresses());
    assert_eq!(topology.status, Status::Active);
    assert!(
        topology
            .shards
            .values()
            .all(|entry| entry.epoch == topology.last_epoch)
    );
    assert_eq!(servers.pointers().await, vec![Some(topology.id.clone()); 3]);
}

#[tokio::test]
async fn the_home_is_the_first_by_run_id_whatever_the_order_of_the_list() {
    let servers = Servers::spawn(3).await;
    for turns in 0..3 {
        let mut seeds = servers.seeds();
        seeds.rotate_left(turns);
        // Under a prefix of its own: a topology that shares nothing with the others.
        seeds
            .iter_mut()
            .for_each(|seed| seed.prefix = KeyPrefix::new(&format!("turned{turns}")).unwrap());
        let topology = join(seeds).await.unwrap().topology;
        let by_run_id = topology
            .shards
            .values()
            .min_by_key(|entry| entry.life.as_str())
            .unwrap();
        assert_eq!(topology.home.address, by_run_id.address);
    }
}

#[tokio::test]
async fn a_second_call_finds_the_same_topology() {
    let servers = Servers::spawn(3).await;
    let first = servers.found().await;
    let mut backwards = servers.seeds();
    backwards.reverse();
    let second = join(backwards).await.unwrap();
    assert!(!second.founded_now);
    assert_eq!(second.topology, first.topology);
}

#[tokio::test]
async fn a_silent_seed_founds_nothing() {
    let servers = Servers::spawn(3).await;
    let seeds = servers.seeds();
    servers.0[1].stop();
    let error = join_with(seeds.clone(), hopeless()).await.unwrap_err();
    assert!(
        matches!(error, TopologyError::Unreachable { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains(seeds[1].address.as_str()),
        "{error}"
    );

    servers.0[1].cont();
    assert_eq!(servers.pointers().await, vec![None; 3]);
    servers.found().await;
}

#[tokio::test]
async fn a_seed_that_starts_late_is_waited_for() {
    let servers = Servers::spawn(2).await;
    let seeds = servers.seeds();
    servers.0[1].stop();
    let starting = async {
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        servers.0[1].cont();
    };
    let (joined, ()) = tokio::join!(join(seeds), starting);
    assert!(joined.unwrap().founded_now);
}

#[tokio::test]
async fn a_server_that_is_not_fit_is_an_error_and_founds_nothing() {
    let mut servers = Servers::spawn(1).await;
    let evicting = RedisServer::builder().set("maxmemory-policy", "allkeys-lru");
    servers.0.push(evicting.spawn().await.unwrap());
    let error = join(servers.seeds()).await.unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
    assert!(
        error.to_string().contains(&servers.addresses()[1]),
        "{error}"
    );
    assert_eq!(servers.pointers().await, [None, None]);
}

#[tokio::test]
async fn one_server_is_a_topology_too() {
    let servers = Servers::spawn(1).await;
    let first = servers.found().await;
    assert_eq!(
        join(servers.seeds()).await.unwrap().topology,
        first.topology
    );
}

#[tokio::test]
async fn a_home_of_its_own_is_no_shard() {
    let servers = Servers::spawn(3).await;
    let mut seeds = servers.seeds();
    let home = seeds.pop().unwrap().address;
    let founding = Founding {
        home: Some(home.clone().into()),
        ..founding()
    };
    let joined = join_with(seeds.clone(), founding).await.unwrap();

    assert_eq!(joined.topology.home.address, home.as_str());
    assert_eq!(members(&joined.topology), servers.addresses()[..2]);
    assert!(servers.get(2, RECORD).await.is_some());
    // The pointers tell where it is.
    assert_eq!(join(seeds).await.unwrap().topology, joined.topology);
}

#[tokio::test]
async fn a_founding_keeps_to_what_it_is_given() {
    let servers = Servers::spawn(2).await;
    let constants = Constants {
        max_lease_ms: 5_000,
        rho_permille: 20,
        replica_lag_ms: 1_000,
        removal: Removal::Leased,
        view_lease_ms: Some(700),
    };
    let weights = vec![Weight::ONE, Weight::new(3).unwrap()];
    let founding = Founding {
        constants,
        weights,
        ..founding()
    };
    let topology = join_with(servers.seeds(), founding).await.unwrap().topology;
    assert_eq!(topology.constants, constants);
    assert_eq!(
        topology.table.quota(&ShardId::new("b").unwrap()),
        16_384 * 3 / 4
    );

    let told = |warnings: &[String]| warnings.iter().any(|it| it.contains("max_lease 5s"));
    let unasked = join(servers.seeds()).await.unwrap();
    assert_eq!(unasked.topology.constants, constants);
    assert!(!told(&unasked.warnings), "{:?}", unasked.warnings);

    let others = Constants {
        max_lease_ms: 7_000,
        ..constants
    };
    let asked = Founding {
        constants: others,
        ..self::founding()
    };
    let asked = join_with(servers.seeds(), asked).await.unwrap();
    assert_eq!(asked.topology.constants, constants);
    assert!(told(&asked.warnings), "{:?}", asked.warnings);
}

#[tokio::test]
async fn a_founding_is_above_every_incarnation_and_epoch_that_a_server_has_seen() {
    const FAR: u64 = 200_000_000;
    for place in 0..2 {
        let servers = Servers::spawn(2).await;
        let fence = servers.key_of_life(place, "fence").await;
        servers
            .set(place, &fence, &format!("{FAR:016x}{:032x}", 9))
            .await;
        let topology = servers.found().await.topology;
        assert_eq!(topology.incarnation.number, FAR + 1);
        assert_eq!(topology.last_epoch.0, FAR + 1);
    }
}

#[tokio::test]
async fn a_founding_that_cannot_be_claims_nothing() {
    let servers = Servers::spawn(1).await;
    let constants = Constants {
        max_lease_ms: 0,
        ..Constants::default()
    };
    let error = join_with(
        servers.seeds(),
        Founding {
            constants,
            ..founding()
        },
    )
    .await
    .unwrap_err();
    assert!(matches!(error, TopologyError::Founding(_)), "{error}");
    assert_eq!(servers.pointers().await, [None]);
}

#[tokio::test]
async fn the_record_has_no_password_and_members_are_reached_with_the_seeds() {
    let mut servers = Servers(Vec::new());
    for _ in 0..2 {
        servers.0.push(
            RedisServer::builder()
                .password("s3cret")
                .spawn()
                .await
                .unwrap(),
        );
    }
    let topology = servers.found().await.topology;
    assert!(!topology.encode().contains("s3cret"));

    let home = servers.place(&topology.home.address);
    let [other] = servers.others(home)[..] else {
        unreachable!("there are two")
    };
    let joined = join(vec![options(&servers.0[other].url())]).await.unwrap();
    assert_eq!(joined.topology, topology);
}

/// A process that is held up as soon as it has claimed, until `release` is told.
struct Slow {
    process: JoinSet<Result<Joined, TopologyError>>,
    release: mpsc::Sender<()>,
}

impl Slow {
    /// Starts it, and waits until it has claimed.
    async fn claims(seeds: Vec<RedisOptions>) -> Self {
        let (at_claim, mut claimed) = tokio::sync::mpsc::unbounded_channel();
        let (release, released) = mpsc::channel();
        let released = std::sync::Mutex::new(released);
        let observer = Observer::new(move |step| {
            if matches!(step, Step::Claimed { .. }) {
                at_claim.send(()).unwrap();
                // Later claims are not held up: then nobody is there to release them.
                let _ = tokio::task::block_in_place(|| released.lock().unwrap().recv());
            }
        });
        let mut process = JoinSet::new();
        process.spawn(async move {
            join_with(
                seeds,
                Founding {
                    observer,
                    ..founding()
                },
            )
            .await
        });
        claimed.recv().await.unwrap();
        Self { process, release }
    }

    async fn goes_on(mut self) -> Joined {
        self.release.send(()).unwrap();
        drop(self.release);
        self.process.join_next().await.unwrap().unwrap().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_that_others_finished_is_joined_by_its_own_process() {
    let servers = Servers::spawn(3).await;
    let slow = Slow::claims(servers.seeds()).await;
    let quick = join(servers.seeds()).await.unwrap();
    let slow = slow.goes_on().await;
    assert!(!quick.founded_now && slow.founded_now);
    assert_eq!(slow.topology, quick.topology);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_that_others_voided_never_comes_into_use() {
    let mut servers = Servers::spawn(3).await;
    let slow = Slow::claims(servers.seeds()).await;
    let home = servers
        .pointers()
        .await
        .iter()
        .position(Option::is_some)
        .unwrap();
    // A member begins another life: the claim, which names the former one, cannot be finished.
    let member = servers.others(home)[0];
    servers.0[member].restart().await.unwrap();

    let quick = join(servers.seeds()).await.unwrap();
    let slow = slow.goes_on().await;
    assert!(quick.founded_now && !slow.founded_now);
    assert_eq!(slow.topology, quick.topology);
    assert_eq!(quick.store.load().await.unwrap(), quick.topology);
    assert_eq!(
        servers.pointers().await,
        vec![Some(quick.topology.id.clone()); 3]
    );
}
