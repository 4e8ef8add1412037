//! A shard on PostgreSQL whose primary dies, and whose standby is promoted.

use ringfence_coordinator::{
    ids::ClientId,
    name::KeyPrefix,
    shard::{ServerOptions, ShardError, postgres},
};
use ringfence_test_support::{Proxy, database::postgresql::PostgreSql, eventually};

use super::comeback::{Returning, holders_keep_their_locks_and_newcomers_wait};

/// No machine fails.
const SETTINGS: [(&str, &str); 1] = [("fsync", "off")];

/// What is in the standby's way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replication {
    /// No commit is answered before the standby has it.
    Synchronous,
    /// The standby does not have the last commits.
    Late,
    /// It has none of the commits: it followed another primary, of which this one was a standby too.
    Never,
}

struct Promoted {
    primary: PostgreSql,
    standby: PostgreSql,
    /// At the address that clients know, unless that has both servers.
    proxy: Proxy,
    by_hosts: bool,
    replication: Replication,
    tables: postgres::Tables,
    has_the_record: bool,
}

impl Promoted {
    async fn of(replication: Replication, tables: postgres::Tables) -> Self {
        let primary = PostgreSql::spawn_with(&SETTINGS).await;
        let proxy = Proxy::raw(primary.port(), 1).await;
        let url = url(proxy.port());
        let prefix = KeyPrefix::default();
        let ServerOptions::Postgres(options) =
            ServerOptions::new(url.parse().unwrap(), ClientId(0), prefix)
        else {
            unreachable!("it is one")
        };
        postgres::create(&options, tables).await.unwrap();
        let standby = primary.standby().await;
        if replication == Replication::Synchronous {
            ask(&primary, "ALTER SYSTEM SET synchronous_standby_names = '*'").await;
            ask(&primary, "SELECT pg_reload_conf()").await;
            is_so(
                &primary,
                "SELECT sync_state = 'sync' FROM pg_stat_replication",
            )
            .await;
        }
        Self {
            primary,
            standby,
            proxy,
            by_hosts: false,
            replication,
            tables,
            has_the_record: false,
        }
    }

    /// Two standbys of one primary that died. One of them is the primary now.
    async fn twins() -> Self {
        let mut origin = Self::of(Replication::Late, postgres::Tables::Logged).await;
        ask(&origin.primary, "SELECT ringfence.begin_life_1('1s')").await;
        let twin = origin.primary.standby().await;
        origin.primary.kill();
        twin.promote().await;
        origin.proxy.point_at(twin.port());
        Self {
            primary: twin,
            replication: Replication::Never,
            ..origin
        }
    }

    /// The standby comes first.
    fn url_of_both(&self) -> String {
        let [standby, primary] = [&self.standby, &self.primary].map(PostgreSql::port);
        format!("postgres://postgres@127.0.0.1:{standby},127.0.0.1:{primary}/postgres")
    }

    /// Whether the promoted standby has what is told it as the last.
    fn has_the_last(&self) -> bool {
        self.replication == Replication::Synchronous && self.tables == postgres::Tables::Logged
    }
}

fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

async fn ask(server: &PostgreSql, statement: &str) {
    server
        .connect()
        .await
        .batch_execute(statement)
        .await
        .unwrap();
}

/// Waits until the first row of `question` is `true`.
async fn is_so(server: &PostgreSql, question: &str) {
    let connection = server.connect().await;
    eventually(question, async || {
        let rows = connection.query(question, &[]).await.unwrap();
        rows.first().is_some_and(|row| row.get(0))
    })
    .await;
}

impl Returning for Promoted {
    fn url(&self) -> String {
        match self.by_hosts {
            true => self.url_of_both(),
            false => url(self.proxy.port()),
        }
    }

    fn redis(&self) -> Option<String> {
        None
    }

    fn has_the_record(&self) -> bool {
        self.has_the_record
    }

    async fn forget_from_now(&mut self) {
        if self.replication == Replication::Late {
            let followed =
                "SELECT replay_lsn >= pg_current_wal_insert_lsn() FROM pg_stat_replication";
            is_so(&self.primary, followed).await;
            ask(&self.standby, "ALTER SYSTEM SET primary_conninfo = ''").await;
            ask(&self.standby, "SELECT pg_reload_conf()").await;
            let alone = "SELECT NOT EXISTS (SELECT FROM pg_stat_replication)";
            is_so(&self.primary, alone).await;
        }
    }

    async fn come_back(&mut self) {
        self.primary.kill();
        self.standby.promote().await;
        let late = "position('late'::bytea in name) > 0 AND content <> ''";
        is_so(
            &self.standby,
            &format!(
                "SELECT EXISTS (SELECT FROM ringfence.documents WHERE {late}) = {}",
                self.has_the_last()
            ),
        )
        .await;
        self.proxy.point_at(self.standby.port());
    }
}

/// Nor is the topology's record there what it was.
#[tokio::test]
#[ignore = "long: a recovery period that no test can end"]
async fn a_promoted_standby_without_the_last_commits_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Promoted::of(Replication::Late, postgres::Tables::Logged).await;
    shard.has_the_record = true;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// By an address that has both servers.
#[tokio::test]
#[ignore = "long: a promotion and a recovery period"]
async fn a_promoted_standby_is_found_among_the_hosts_and_no_lock_is_lost() {
    let mut shard = Promoted::of(Replication::Synchronous, postgres::Tables::Logged).await;
    (shard.by_hosts, shard.has_the_record) = (true, true);
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

#[tokio::test]
async fn the_primary_among_several_hosts_is_the_shard() {
    let mut shard = Promoted::of(Replication::Late, postgres::Tables::Logged).await;
    let address = shard.url_of_both().parse().unwrap();
    let options = ServerOptions::new(address, ClientId(7), KeyPrefix::default());
    options.prepare().await.unwrap();
    shard.primary.kill();
    let failed = options.prepare().await.unwrap_err();
    assert!(matches!(failed, ShardError::Unreachable { .. }), "{failed}");
    shard.standby.promote().await;
    options.prepare().await.unwrap();
}

/// What was answered is there. It makes newcomers wait all the same: nothing tells such a standby from another.
#[tokio::test]
#[ignore = "long: a promotion and a recovery period"]
async fn a_promoted_synchronous_standby_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Promoted::of(Replication::Synchronous, postgres::Tables::Logged).await;
    shard.has_the_record = true;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// Both have the same timeline.
#[tokio::test]
#[ignore = "long: two promotions"]
async fn a_second_standby_that_is_promoted_from_the_same_primary_loses_no_lock() {
    let mut shard = Promoted::twins().await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// They are empty there.
#[tokio::test]
#[ignore = "long: a promotion and a recovery period"]
async fn unlogged_tables_of_a_promoted_standby_lose_no_lock_and_make_newcomers_wait() {
    let mut shard = Promoted::of(Replication::Synchronous, postgres::Tables::Unlogged).await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}
