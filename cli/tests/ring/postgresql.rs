//! Shards on PostgreSQL and MariaDB, beside shards on Redis and instead of them.

use std::{
    cell::OnceCell,
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use ringfence_client::{Client, Token};
use ringfence_test_support::{
    database::{mariadb::MariaDb, pgbouncer::PgBouncer, postgresql::PostgreSql},
    eventually,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{each, founded, founded_with, told};
use crate::{binary::ringfence, counter::counter_by, serve::Coordinator};

/// A server with tables, as an owner makes them, and a role with exactly the rights that are printed.
async fn prepared() -> (PostgreSql, String) {
    let server = PostgreSql::spawn_with(&[("fsync", "off")]).await;
    let owner = server.connect().await;
    owner.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    let schema = ringfence(&["schema", "postgres", "--role", "app"]);
    owner.batch_execute(&schema.stdout).await.unwrap();
    let url = url(&server, "app");
    (server, url)
}

fn url(server: &PostgreSql, user: &str) -> String {
    format!("postgres://{user}@127.0.0.1:{}/postgres", server.port())
}

/// The same on MariaDB.
async fn prepared_mariadb() -> (MariaDb, String) {
    let server = MariaDb::spawn_with(&[("innodb_flush_method", "nosync")]).await;
    let schema = ringfence(&["schema", "mysql"]).stdout;
    server
        .run(&format!(
            "CREATE DATABASE locks; USE locks;\n{schema}
             CREATE USER app@localhost;
             GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app@localhost;"
        ))
        .await;
    let url = format!("mysql://app@127.0.0.1:{}/locks", server.port());
    (server, url)
}

fn ring(url: &str, args: &[&str]) -> Value {
    told(&ringfence(
        &[&["ring"], args, &["--json", "--redis", url]].concat(),
    ))
}

/// The locks at the shards of `urls`, once each of them answers in time.
async fn listed(urls: &str) -> Value {
    let listed = OnceCell::new();
    eventually("each shard answers", async || {
        let output = ringfence(&["locks", "list", "--json", "--redis", urls]);
        output.code == 0 && listed.set(told(&output)).is_ok()
    })
    .await;
    listed.into_inner().unwrap()
}

/// Runs a command that resizes; its last line says that it is done.
fn resize(urls: &str, args: &[&str]) {
    let quickly = ["--slots-in-flight", "4096", "--pause", "1ms", "--json"];
    let done = ringfence(&[&["ring"], args, &quickly, &["--redis", urls]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let last: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["state"], "done", "{last}");
}

/// Tasks that take locks all the time, and see that each has one holder and rising tokens.
struct Load {
    tasks: JoinSet<()>,
    ended: Arc<AtomicBool>,
    grants: Arc<AtomicU64>,
}

/// By key: whether it is held, and its last token.
type Believed = Arc<Mutex<HashMap<String, (bool, Option<Token>)>>>;

impl Load {
    fn start(clients: &[Client]) -> Self {
        let (ended, grants) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let believed = Believed::default();
        let mut tasks = JoinSet::new();
        for worker in 0..8 {
            let client = clients[worker % clients.len()].clone();
            let (ended, grants) = (ended.clone(), grants.clone());
            let believed = believed.clone();
            tasks.spawn(async move {
                let mut turn = worker;
                while !ended.load(Relaxed) {
                    turn += 1;
                    let key = format!("busy/{}", turn % 5);
                    let guard = client.lock(&key).acquire().await.unwrap();
                    begins(&believed, &key, guard.token());
                    grants.fetch_add(1, Relaxed);
                    tokio::task::yield_now().await;
                    believed.lock().unwrap().get_mut(&key).unwrap().0 = false;
                    guard.release().await;
                }
            });
        }
        Self {
            tasks,
            ended,
            grants,
        }
    }

    /// Ends it once so many locks were granted.
    async fn stop_after(self, grants: u64) {
        eventually("locks are granted", async || {
            self.grants.load(Relaxed) > grants
        })
        .await;
        self.ended.store(true, Relaxed);
        self.tasks.join_all().await;
    }
}

fn begins(believed: &Believed, key: &str, token: Token) {
    let mut believed = believed.lock().unwrap();
    let (held, last) = believed.entry(key.to_owned()).or_default();
    assert!(!*held, "{key} has two holders");
    assert!(Some(token) > *last, "{key}: {token} after {last:?}");
    (*held, *last) = (true, Some(token));
}

/// In the end the record is on PostgreSQL too, and the servers of Redis are gone.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: two resizes of all slots to and from a database"]
async fn a_ring_moves_from_redis_to_postgresql_under_load_and_no_lock_is_lost() {
    // Longer than a busy machine takes to answer a renewal.
    let redis = founded_with(1, 0, &["--max-lease", "30s"]).await;
    let (server, postgres) = prepared().await;
    let first = redis.urls()[0].clone();
    let both = format!("{first},{postgres}");
    let mut clients = Vec::new();
    for _ in 0..2 {
        let client = Client::builder().servers(both.split(','));
        clients.push(client.existing_topology(true).build().await.unwrap());
    }
    let mut guards = Vec::new();
    for index in 0..50 {
        let key = format!("kept/{index}");
        guards.push(clients[0].lock(key).acquire().await.unwrap());
    }
    let load = Load::start(&clients);

    resize(&both, &["add", &postgres, "--servers-are-new"]);
    let shown = ring(&both, &["show"]);
    assert_eq!(each(&shown["shards"], "slots"), [8192, 8192]);
    let shown_url = url(&server, "app").replace("app@", "");
    assert_eq!(shown["shards"][1]["address"], json!(shown_url), "no login");
    resize(&both, &["remove", "a"]);
    let shown = ring(&both, &["show"]);
    assert_eq!(each(&shown["shards"], "slots"), [16384]);

    load.stop_after(100).await;
    for guard in &guards {
        assert!(guard.is_held(), "{guard:?}");
    }
    // The home is on Redis, and a pointer on PostgreSQL.
    let held = listed(&both).await;
    let kept = held["locks"].as_array().unwrap().len();
    assert_eq!(kept, 50, "{held}");

    drop(redis);
    let recover = ["recover", "--attest-dead"];
    let home = shown["home"].as_str().unwrap();
    let recovered = ring(&postgres, &[&recover[..], &[home]].concat());
    assert_eq!(recovered["home"], json!(shown_url));
    let lock = ["lock", "after", "--redis", &postgres, "--", "true"];
    let locked = ringfence(&lock);
    assert_eq!(locked.code, 0, "{locked:?}");
    for guard in guards {
        guard.release().await;
    }
}

/// No Redis at all. The tables are made by the command.
#[tokio::test(flavor = "multi_thread")]
async fn a_topology_on_postgresql_alone_has_locks_and_no_counters() {
    let server = PostgreSql::spawn().await;
    let url = url(&server, "postgres");
    let init = ["init", "--servers-are-new", "--max-lease", "30s"];
    let begun = ring(&url, &init);
    assert_eq!(begun["done"], "founded");
    let mut command = vec!["lock", "nightly", "--redis", &url, "--"];
    let token = "test \"$RINGFENCE_TOKEN\" -gt 0";
    command.extend(["sh", "-c", token]);
    let locked = ringfence(&command);
    assert_eq!(locked.code, 0, "{locked:?}");
    let again = ring(&url, &init);
    assert_eq!(
        (&again["done"], &again["topology"]),
        (&json!("there_already"), &begun["topology"])
    );

    let shown = url.replace("postgres@", "");
    let refused = counter_by(["--redis", &url], &["create", "coins"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains(&format!("shard a, {shown}, keeps locks")),
        "{refused:?}"
    );

    // Nor can another topology have it.
    let other = founded(1, 0).await;
    let seed = &other.urls()[0];
    // A busy server may take longer to answer than a command that asks once waits for it.
    eventually("refused by the server", async || {
        let refused = ringfence(&["ring", "add", &url, "--redis", seed]);
        refused.code == 2 && refused.stderr.contains("belongs to topology")
    })
    .await;
}

/// The tables are made at the server itself. Other processes learn of both from the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_topology_is_reached_through_a_pooler() {
    let server = PostgreSql::spawn_with(&[("fsync", "off")]).await;
    let pooler = PgBouncer::spawn(&server, "postgres", 2).await;
    let (port, direct) = (pooler.port(), server.port());
    let shown = format!("postgres://127.0.0.1:{port}/postgres?direct=127.0.0.1:{direct}");
    let url = shown.replace("//", "//postgres@");
    let init = ["init", "--servers-are-new", "--max-lease", "30s"];
    assert_eq!(ring(&url, &init)["done"], "founded");
    let shards = &ring(&url, &["show"])["shards"];
    assert_eq!(each(shards, "address"), [shown]);
    let locked = ringfence(&["lock", "nightly", "--redis", &url, "--", "true"]);
    assert_eq!(locked.code, 0, "{locked:?}");
}

/// A coordinator with one shard on each, and none on Redis.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_serves_locks_on_postgresql_and_mariadb_and_no_counters() {
    let (postgres, first) = prepared().await;
    let (mariadb, second) = prepared_mariadb().await;
    let both = format!("{first},{second}");
    let init = ["init", "--servers-are-new", "--max-lease", "30s"];
    assert_eq!(ring(&both, &init)["done"], "founded");
    let coordinator = Coordinator::start_at(&[first, second]);
    let builder = || Client::builder().coordinators(&*coordinator.url);
    let (one, other) = (
        builder().build().await.unwrap(),
        builder().build().await.unwrap(),
    );
    // Keys of both shards; the holders of each are of two sessions by turns.
    let load = Load::start(&[one.clone(), other]);
    let mut guards = Vec::new();
    for index in 0..10 {
        let key = format!("kept/{index}");
        guards.push(one.lock(key).acquire().await.unwrap());
    }
    load.stop_after(100).await;
    let held = listed(&both).await;
    let shards = each(&held["locks"], "shard");
    for shard in ["a", "b"] {
        assert!(shards.contains(&json!(shard)), "{held}");
    }
    for guard in guards {
        assert!(guard.is_held(), "{guard:?}");
        guard.release().await;
    }
    eventually("the coordinator alone has three to each", async || {
        connections(&postgres, &mariadb).await == [3, 3]
    })
    .await;
}

/// How many the role `app` has to each server.
async fn connections(postgres: &PostgreSql, mariadb: &MariaDb) -> [i64; 2] {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    let postgres = postgres.connect().await.query_one(count, &[]).await;
    [
        postgres.unwrap().get(0),
        mariadb.connections_of("app").await,
    ]
}

/// From one kind of server to another, under load.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: two resizes of all slots, from database to database"]
async fn a_topology_on_postgresql_moves_to_mariadb_and_no_lock_is_lost() {
    let (_postgres, first) = prepared().await;
    let (_mariadb, second) = prepared_mariadb().await;
    let init = ["init", "--servers-are-new", "--max-lease", "30s"];
    assert_eq!(ring(&first, &init)["done"], "founded");
    let both = format!("{first},{second}");
    let client = Client::builder().servers(both.split(','));
    let client = client.existing_topology(true).build().await.unwrap();
    let mut guards = Vec::new();
    for index in 0..20 {
        let key = format!("kept/{index}");
        guards.push(client.lock(key).acquire().await.unwrap());
    }
    let load = Load::start(&[client]);
    resize(&both, &["add", &second, "--servers-are-new"]);
    resize(&both, &["remove", "a"]);
    load.stop_after(100).await;
    for guard in guards {
        assert!(guard.is_held(), "{guard:?}");
        guard.release().await;
    }
    let shown = ring(&both, &["show"]);
    let address = second.replace("app@", "");
    assert_eq!(each(&shown["shards"], "address"), [address]);
    let locked = ringfence(&["lock", "after", "--redis", &both, "--", "true"]);
    assert_eq!(locked.code, 0, "{locked:?}");
}

#[tokio::test]
async fn replicas_on_databases_of_one_server_are_warned_of() {
    let server = PostgreSql::spawn_with(&[("fsync", "off")]).await;
    let owner = server.connect().await;
    for name in ["one", "two"] {
        let create = format!("CREATE DATABASE {name}");
        owner.batch_execute(&create).await.unwrap();
    }
    let port = server.port();
    let urls = ["postgres", "one", "two"];
    let urls = urls.map(|name| format!("postgres://postgres@127.0.0.1:{port}/{name}"));
    let urls = urls.join(",");
    let warned = format!("are on one server, 127.0.0.1:{port}");
    let init = ["init", "--servers-are-new", "--namespace", "ledger=3"];
    for args in [&init[..], &["show"]] {
        let warnings = ring(&urls, args)["warnings"].to_string();
        assert!(warnings.contains(&warned), "{args:?}: {warnings}");
    }
}
