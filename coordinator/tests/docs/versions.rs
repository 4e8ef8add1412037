//! The functions of two releases beside each other, at the same tables.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use ringfence_coordinator::{
    ids::Life,
    shard::{
        ConnectionId, ShardError,
        docs::{Committed, Expected, Name, Store},
        mysql::{self, mysql_store},
        postgres::{self, Tables, postgres_store},
    },
};

use super::held_up::commit;
use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

/// A document that this release's commits write, too.
const NAME: Name = Name::Slots(0);

/// The text of a schema, as if it had another version.
fn of_version_0(schema: &str) -> String {
    schema.replace("_1(", "_0(").replace("_1`(", "_0`(")
}

/// A session of another release, which calls its own functions.
trait Older {
    /// Opens it. Returns its life, and its id.
    async fn open(&self) -> (Life, ConnectionId);

    /// Writes [`NAME`], which must have the version. Returns the outcome.
    async fn commit(&self, session: &(Life, ConnectionId), version: Option<u64>) -> i32;
}

impl Older for Postgres {
    async fn open(&self) -> (Life, ConnectionId) {
        let schema = self.options.prefix.as_str();
        let open = format!("SELECT * FROM {schema}.open_0(NULL, NULL, '10s')");
        let row = self.raw().await.query_one(&open, &[]).await.unwrap();
        let (life, id): (String, i64) = (row.get(0), row.get(1));
        (Life::new(life), ConnectionId(id as u64))
    }

    async fn commit(&self, (life, id): &(Life, ConnectionId), version: Option<u64>) -> i32 {
        let (schema, id) = (self.options.prefix.as_str(), id.0 as i64);
        let version = version.map_or("NULL".into(), |version| version.to_string());
        let commit = format!(
            "SELECT outcome FROM {schema}.commit_0(
                 '{life}', {id}, '10s', false, 0, {max}, 100, NULL, NULL, '{{}}', '{{}}', ARRAY['slots/0'::bytea],
                 ARRAY[false], ARRAY[{version}::bigint], ARRAY['older'], ARRAY[NULL::bigint], '{{}}', '{{}}')",
            max = i64::MAX
        );
        let row = self.raw().await.query_one(&commit, &[]).await;
        row.unwrap().get(0)
    }
}

impl Older for Maria {
    async fn open(&self) -> (Life, ConnectionId) {
        let open = format!("CALL `{}_open_0`(NULL, NULL)", self.options.prefix);
        let mut raw = self.server.connect().await;
        let row: Option<(String, u64, bool)> = raw.query_first(open).await.unwrap();
        let (life, id, _) = row.unwrap();
        (Life::new(life), ConnectionId(id))
    }

    async fn commit(&self, (life, id): &(Life, ConnectionId), version: Option<u64>) -> i32 {
        let (prefix, id) = (self.options.prefix.as_str(), id.0);
        let version = version.map_or("null".into(), |version| version.to_string());
        let commit = format!(
            r#"CALL `{prefix}_commit_0`('{life}', {id}, 0, {max}, 100, NULL, NULL, false, false,
               '[]', '[]',
               concat('[{{"n":"', hex('slots/0'), '","v":{version},"any":false,"at":1,"len":5,"e":null}}]'),
               'older', '[]')"#,
            max = i64::MAX
        );
        let mut raw = self.server.connect().await;
        let row: Option<(i32, Option<String>, Option<u64>)> =
            raw.query_first(commit).await.unwrap();
        row.unwrap().0
    }
}

/// `prepare` makes this release's functions, as an owner does, where those of another one are.
async fn go_on_beside_each_other<F: Older>(
    older: &F,
    store: Arc<dyn Store>,
    prepare: impl AsyncFn() -> Result<(), ShardError>,
) {
    let refused = store.open(None).await.unwrap_err();
    let told = refused.to_string();
    let names_the_command = told.contains("of version 1; as their owner, run: ringfence schema ");
    assert!(names_the_command && !refused.is_retryable(), "{told}");

    let open = older.open().await;
    assert_eq!(older.commit(&open, None).await, 0);
    prepare().await.unwrap();
    let mut session = store.open(None).await.unwrap();
    assert_eq!(*session.life(), open.0);
    let found = session.read(&[NAME], None).await.unwrap();
    let found = found.documents[0].clone().expect("the older one wrote it");
    assert_eq!((found.version, &*found.content), (100, "older"));

    let stale = commit(Vec::new(), &[(NAME, Expected::Absent)], 7);
    let refused = session.commit(&stale).await.unwrap();
    assert_eq!(refused, Committed::Refused { stale: vec![NAME] });
    let newer = commit(Vec::new(), &[(NAME, Expected::Version(100))], 8);
    assert!(session.commit(&newer).await.unwrap().is_done());
    let [stale, due] = [100, 8].map(Some);
    assert_eq!(older.commit(&open, stale).await, 1);
    assert_eq!(older.commit(&open, due).await, 0);

    store.open(Some(open.clone())).await.unwrap();
    assert_eq!(older.commit(&open, Some(100)).await, 3, "it was ended");
    // Again, where all is there.
    prepare().await.unwrap();
    session.read(&[NAME], None).await.unwrap();
}

#[tokio::test]
async fn releases_go_on_beside_each_other_on_postgresql() {
    let fixture = Postgres::bare().await;
    fixture.run("DROP SCHEMA {} CASCADE").await;
    let older = of_version_0(&postgres::schema(&fixture.options.prefix, Tables::Logged));
    fixture.raw().await.batch_execute(&older).await.unwrap();
    let store = postgres_store(fixture.options.clone());
    let prepare = async || postgres::prepare(&fixture.options).await;
    go_on_beside_each_other(&fixture, store, prepare).await;
}

#[tokio::test]
async fn releases_go_on_beside_each_other_on_mariadb() {
    let fixture = Maria::bare().await;
    for routine in ["open", "read", "page", "commit", "sweep"] {
        let drop = format!("DROP PROCEDURE `{{}}_{routine}_1`");
        fixture.run(&drop).await;
    }
    for routine in ["clock_ms", "server"] {
        let drop = format!("DROP FUNCTION `{{}}_{routine}_1`");
        fixture.run(&drop).await;
    }
    let older = of_version_0(&mysql::schema(&fixture.options.prefix));
    fixture.server.run(&older).await;
    let store = mysql_store(fixture.options.clone());
    let prepare = async || mysql::prepare(&fixture.options).await;
    go_on_beside_each_other(&fixture, store, prepare).await;
}
