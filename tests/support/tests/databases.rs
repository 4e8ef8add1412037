//! Databases of one's own.
#![cfg(feature = "databases")]

use std::{fs, path::Path};

use mysql_async::prelude::Queryable;
use ringfence_test_support::database::{mariadb::MariaDb, postgresql::PostgreSql};

/// Of processes with `title` in their command lines.
fn called(title: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|process| fs::read(process.path().join("cmdline")));
    lines
        .filter(|line| String::from_utf8_lossy(line.as_deref().unwrap_or_default()).contains(title))
        .count()
}

#[tokio::test]
async fn postgresql_is_durable_by_default_and_leaves_nothing_behind() {
    let server = PostgreSql::spawn_with(&[("max_connections", "7")]).await;
    let connection = server.connect().await;
    for (setting, expected) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("max_connections", "7"),
    ] {
        let show = format!("SHOW {setting}");
        let shown: String = connection.query_one(&show, &[]).await.unwrap().get(0);
        assert_eq!(shown, expected, "{setting}");
    }
    gone_with(server, |server| {
        let address = server.address();
        let (_, host) = address.split_once("host=").unwrap();
        host.split_once('&').unwrap().0.to_owned()
    });
}

#[tokio::test]
async fn mariadb_is_durable_by_default_and_leaves_nothing_behind() {
    let server = MariaDb::spawn_with(&[("max_connections", "17")]).await;
    let mut connection = server.connect().await;
    for (setting, expected) in [
        ("innodb_flush_log_at_trx_commit", 1),
        ("max_connections", 17),
    ] {
        let show = format!("SELECT @@{setting}");
        let shown: Option<u64> = connection.query_first(show).await.unwrap();
        assert_eq!(shown, Some(expected), "{setting}");
    }
    gone_with(server, |server| {
        let address = server.address();
        let (_, socket) = address.split_once("socket=").unwrap();
        socket.strip_suffix("/socket").unwrap().to_owned()
    });
}

/// Nothing is left of a server once its value is gone.
fn gone_with<S>(server: S, dir: impl FnOnce(&S) -> String) {
    let dir = dir(&server);
    assert!(called(&dir) > 0);
    drop(server);
    assert_eq!(called(&dir), 0);
    assert!(!Path::new(&dir).exists());
}
