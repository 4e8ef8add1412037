//! Commits that the server undoes for the sake of others.

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::shard::{LockLane, Reply};

use super::races::{LONG, acquire, arm, key, nonce, request};
use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

/// A lock is asked for once, and granted.
async fn is_granted(fixture: &dyn Fixture) {
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let link = shard.connect_locks(LockLane::Work, None).await;
    let asked = [request(&key(0), acquire(nonce(1, 1), LONG, false))];
    let replies = link.unwrap().call(&asked).await.unwrap().replies;
    assert!(
        matches!(replies[..], [Reply::Granted { .. }]),
        "{replies:?}"
    );
}

#[tokio::test]
async fn postgresql_is_asked_again_after_a_deadlock_and_a_serialization_failure() {
    for (code, name) in [("40P01", "deadlock"), ("40001", "serialization")] {
        let fixture = Postgres::new().await;
        fixture
            .run(&format!(
                "CREATE SEQUENCE {{}}.times;
                 CREATE FUNCTION {{}}.undo() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN
                    IF nextval(''{{}}.times'') = 1 THEN RAISE EXCEPTION ''{name}'' USING ERRCODE = ''{code}''; END IF;
                    RETURN NEW;
                  END';
                 CREATE TRIGGER undo BEFORE INSERT ON {{}}.documents FOR EACH ROW
                 WHEN (NEW.name LIKE 'lock/%'::bytea) EXECUTE FUNCTION {{}}.undo()"
            ))
            .await;
        is_granted(&fixture).await;
        fixture
            .run("DO 'BEGIN ASSERT (SELECT last_value FROM {}.times) = 2; END'")
            .await;
    }
}

#[tokio::test]
async fn mariadb_is_asked_again_after_a_deadlock() {
    let fixture = Maria::new().await;
    fixture.run("CREATE SEQUENCE `{}_times` NOCACHE").await;
    fixture
        .run(
            "CREATE TRIGGER `{}_undo` BEFORE INSERT ON `{}_documents` FOR EACH ROW
             IF NEW.name LIKE 'lock/%' AND nextval(`{}_times`) = 1 THEN
               SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
             END IF",
        )
        .await;
    is_granted(&fixture).await;
    fixture
        .run("BEGIN NOT ATOMIC IF nextval(`{}_times`) <> 3 THEN SIGNAL SQLSTATE '45000'; END IF; END")
        .await;
}
