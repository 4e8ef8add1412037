//! The record on etcd, and a copy on Redis.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_conformance::topology::Fixture;
use ringfence_coordinator::{
    etcd::{EtcdOptions, etcd_store},
    name::KeyPrefix,
    random::Random,
    shard::{
        ShardError,
        docs::{Commit, Committed, Expected, Name, Store, TokenChange, Write},
        redis::RedisOptions,
    },
    topology::{
        Swap, Topology, TopologyError, TopologyStore,
        server::{Founding, Joined},
    },
};
use ringfence_test_support::{Secured, database::etcd::Etcd, eventually};
use tokio::time::timeout;

use crate::{
    etcd_fixture::shared,
    lossy::{Answers, Lossy},
};

use super::servers::{Servers, founding, join_with, successor};

/// The limit of every wait: a leader is elected within 2 s, or within 4 s if the votes are split.
const SOON: Duration = Duration::from_secs(120);

/// A topology whose one shard is on Redis.
struct OnEtcd {
    etcd: Arc<Etcd>,
    servers: Servers,
    prefix: KeyPrefix,
    founded: Joined,
}

impl OnEtcd {
    async fn new() -> Self {
        Self::on(shared().await).await
    }

    async fn on(etcd: Arc<Etcd>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("test_{}", NUMBER.fetch_add(1, Relaxed));
        let prefix = KeyPrefix::new(&prefix).unwrap();
        let servers = Servers::spawn(1).await;
        let founding = on_etcd(&etcd.url());
        let founded = join_with(seeds(&servers, &prefix), founding).await.unwrap();
        assert_eq!(founded.store.home(), etcd.url());
        Self {
            etcd,
            servers,
            prefix,
            founded,
        }
    }

    async fn join(&self, founding: Founding) -> Result<Joined, TopologyError> {
        join_with(seeds(&self.servers, &self.prefix), founding).await
    }
}

fn on_etcd(url: &str) -> Founding {
    Founding {
        home: Some(url.parse().unwrap()),
        ..founding()
    }
}

fn seeds(servers: &Servers, prefix: &KeyPrefix) -> Vec<RedisOptions> {
    let mut seeds = servers.seeds();
    for seed in &mut seeds {
        seed.prefix = prefix.clone();
    }
    seeds
}

#[async_trait]
impl Fixture for OnEtcd {
    fn founded(&self) -> Arc<Topology> {
        self.founded.topology.clone()
    }

    /// By the shard's pointer: a process need not be told of etcd.
    async fn open(&self) -> Arc<dyn TopologyStore> {
        self.join(founding()).await.unwrap().store
    }
}

ringfence_conformance::topology_conformance!(OnEtcd::new());

/// A runbook deletes the key `life` after a backup was restored.
#[tokio::test]
async fn a_record_outlasts_a_life_that_was_ended_by_hand() {
    let stage = OnEtcd::new().await;
    let store = &stage.founded.store;
    let life = format!("{}/life", stage.prefix.as_str());
    stage.etcd.ctl(&["del", &life]);
    let recovered = store.load().await.unwrap();
    let founded = &stage.founded.topology;
    assert!(recovered.incarnation > founded.incarnation);
    assert_eq!(recovered.home.address, founded.home.address);
    assert_ne!(recovered.home.life, founded.home.life);
    let late = store.swap(founded.version(), &successor(founded)).await;
    assert!(
        matches!(late, Err(TopologyError::RecoverNeeded { .. })),
        "{late:?}"
    );
}

/// Whichever of three nodes is killed, or answers no more: swaps and watches go on.
#[tokio::test]
async fn the_loss_of_one_node_of_three_is_not_noticed() {
    let mut stage = OnEtcd::on(Arc::new(Etcd::spawn(3).await)).await;
    let (store, other) = (stage.founded.store.clone(), stage.open().await);
    let mut version = Topology::clone(&stage.founded.topology);
    let mut swap = async || {
        let next = successor(&version);
        let watched = timeout(SOON, other.watch(version.version()));
        let (done, watched) = tokio::join!(store.swap(version.version(), &next), watched);
        assert!(matches!(done, Ok(Swap::Done)), "{done:?}");
        assert_eq!(*watched.expect("in time").unwrap(), next);
        version = next;
    };
    swap().await;
    for _ in 0..2 {
        let etcd = Arc::get_mut(&mut stage.etcd).unwrap();
        let leader = etcd.leader().await;
        etcd.kill(leader);
        swap().await;
        etcd.restart(&[leader]).await;
        swap().await;
    }
    // It takes connections, and says nothing.
    let leader = stage.etcd.leader().await;
    stage.etcd.stop(leader);
    swap().await;
    stage.etcd.cont(leader);
    swap().await;
}

/// Without a majority, changes are refused and may be repeated: none of them is lost or done twice.
#[tokio::test]
async fn without_a_majority_a_swap_is_refused_and_may_be_repeated() {
    let mut stage = OnEtcd::on(Arc::new(Etcd::spawn(3).await)).await;
    let store = stage.founded.store.clone();
    let etcd = Arc::get_mut(&mut stage.etcd).unwrap();
    let founded = &stage.founded.topology;
    let next = successor(founded);
    etcd.kill(0);
    etcd.kill(2);
    let error = store.swap(founded.version(), &next).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains(&store.home()), "{error}");
    // A process that starts now goes by the copy.
    let joined = join_with(seeds(&stage.servers, &stage.prefix), founding()).await;
    let joined = joined.unwrap();
    assert_eq!(joined.topology, *founded);
    assert_eq!(joined.warnings.len(), 1, "{:?}", joined.warnings);
    etcd.restart(&[0, 2]).await;
    // The swap without an answer may have been applied once a majority was back.
    match store.swap(founded.version(), &next).await.unwrap() {
        Swap::Done => {}
        Swap::Newer(newer) => assert_eq!(*newer, next),
    }
    assert_eq!(*store.load().await.unwrap(), next);
}

/// A person says that it will never answer again.
#[tokio::test]
async fn a_cluster_that_is_attested_dead_is_replaced_by_a_shard() {
    let mut stage = OnEtcd::on(Arc::new(Etcd::spawn(1).await)).await;
    let store = stage.founded.store.clone();
    let etcd = store.home();
    Arc::get_mut(&mut stage.etcd).unwrap().kill(0);
    let error = store.recover(&[]).await.unwrap_err().to_string();
    assert!(error.contains(&format!("--attest-dead {etcd}")), "{error}");
    let recovered = store.recover(&[etcd]).await.unwrap();
    assert_eq!(recovered.home.address, stage.servers.addresses()[0]);
    assert_eq!(stage.open().await.load().await.unwrap(), recovered);
}

/// Users, with rights to the keys of the prefix alone.
#[tokio::test]
async fn a_user_logs_in() {
    let etcd = Arc::new(Etcd::spawn(1).await);
    for setup in [
        "user add root:r00t",
        "user grant-role root root",
        "role add ringfence",
        "role grant-permission ringfence readwrite --prefix ringfence/",
        "user add coin:s3cret",
        "user grant-role coin ringfence",
        "auth enable",
    ] {
        etcd.ctl(&setup.split(' ').collect::<Vec<_>>());
    }
    let servers = Servers::spawn(1).await;
    let join = async |login: &str, prefix: &str| {
        let prefix = KeyPrefix::new(prefix).unwrap();
        join_with(seeds(&servers, &prefix), on_etcd(&etcd.url_with(login))).await
    };
    for (login, prefix, why) in [
        ("", "ringfence", "wants a login"),
        (
            "coin:other@",
            "ringfence",
            "refuses the user or the password",
        ),
        ("coin:s3cret@", "others", "needs the rights"),
    ] {
        let error = join(login, prefix).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    let joined = join("coin:s3cret@", "ringfence").await.unwrap();
    assert_eq!(joined.store.home(), etcd.url());
    // The token is forgotten by a node that restarts.
    let mut etcd = etcd;
    let etcd = Arc::get_mut(&mut etcd).unwrap();
    etcd.kill(0);
    etcd.restart(&[0]).await;
    let loaded = async || joined.store.load().await.ok();
    eventually("it logs in again", async || {
        loaded().await.as_ref() == Some(&joined.topology)
    })
    .await;
}

/// Certificates on both sides.
#[tokio::test]
async fn nodes_are_reached_by_tls() {
    let files = Secured::default();
    let etcd = Etcd::spawn_secured(&files).await;
    let servers = Servers::spawn(1).await;
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| files.path(name));
    let url = format!("{}?ca={ca}&cert={cert}&key={key}", etcd.url());
    let joined = join_with(servers.seeds(), on_etcd(&url)).await.unwrap();
    assert_eq!(joined.store.home(), etcd.url());
    let nobody = Founding {
        within: Duration::ZERO,
        ..on_etcd(&format!("{}?ca={ca}", etcd.url()))
    };
    let refused = join_with(servers.seeds(), nobody).await;
    // The shard has a copy: it is gone by that, with a warning.
    let warnings = refused.unwrap().warnings.concat();
    assert!(warnings.contains("etcds://"), "{warnings}");
}

fn store_at(url: &str, prefix: &str) -> Arc<dyn Store> {
    let mut options = EtcdOptions::new(url.parse().unwrap());
    options.prefix = KeyPrefix::new(prefix).unwrap();
    etcd_store(options, Arc::new(Random::from_os()))
}

/// Writes the head.
fn commit(version: u64, expected: Expected) -> Commit {
    Commit {
        checks: Vec::new(),
        writes: vec![Write {
            name: Name::Head,
            expected,
            content: "text".into(),
            ends_ms: None,
        }],
        version,
        tokens: TokenChange::None,
        not_before_ms: 0,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    }
}

/// A request without an answer may still be under way when the next session opens.
#[tokio::test]
async fn a_commit_of_a_session_that_was_ended_does_nothing() {
    let etcd = shared().await;
    let store = store_at(&etcd.url(), "ended");
    let mut former = store.open(None).await.unwrap();
    let ended = (former.life().clone(), former.id());
    let mut later = store.open(Some(ended)).await.unwrap();
    let late = former.commit(&commit(1, Expected::Absent)).await;
    assert!(matches!(late, Err(ShardError::NoReply { .. })), "{late:?}");
    let done = later.commit(&commit(2, Expected::Absent)).await;
    assert!(done.unwrap().is_done());
}

/// Two sessions that read the same version do not both replace it.
#[tokio::test]
async fn of_two_commits_on_one_version_one_is_done() {
    let etcd = shared().await;
    let store = store_at(&etcd.url(), "compared");
    let mut one = store.open(None).await.unwrap();
    let mut other = store.open(None).await.unwrap();
    let done = one.commit(&commit(1, Expected::Absent)).await;
    assert!(done.unwrap().is_done());
    other.read(&[Name::Head], None).await.unwrap();
    let done = one.commit(&commit(2, Expected::Version(1))).await;
    assert!(done.unwrap().is_done());
    let refused = other.commit(&commit(3, Expected::Version(1))).await;
    let stale = vec![Name::Head];
    assert_eq!(refused.unwrap(), Committed::Refused { stale });
}

/// A node dies after it has done a commit, and before it answers.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_known_to_be_done() {
    let etcd = shared().await;
    let port = etcd.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let lossy = Lossy::to(port).await;
    let store = store_at(&format!("etcd://127.0.0.1:{}", lossy.port), "lost");
    let mut session = store.open(None).await.unwrap();
    let mut direct = store_at(&etcd.url(), "lost").open(None).await.unwrap();
    lossy.answers.send_replace(Answers::Held);
    let lose = async {
        let mut found = async || direct.read(&[Name::Head], None).await.unwrap().documents;
        while found().await[0].is_none() {
            tokio::task::yield_now().await;
        }
        lossy.answers.send_replace(Answers::Lost);
    };
    let commit = commit(7, Expected::Absent);
    let (done, ()) = timeout(SOON, async { tokio::join!(session.commit(&commit), lose) })
        .await
        .expect("in time");
    assert!(done.unwrap().is_done());
}
