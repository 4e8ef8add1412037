//! PostgreSQL through a pooler, which gives its clients a connection for one transaction each.

use std::{cell::RefCell, sync::Arc, time::Duration};

use ringfence_conformance::store::Fixture as _;
use ringfence_coordinator::{
    ids::{Epoch, Token},
    shard::{
        ShardError,
        docs::{Commit, Draw, Expected, Name, Session, Store, TokenChange},
        postgres::{Tables, postgres_store},
    },
};
use ringfence_test_support::{
    database::{pgbouncer::PgBouncer, postgresql::PostgreSql},
    eventually,
};

use super::held_up::{behind, commit, lock, lock_of};
use crate::postgres_fixture::{Postgres, address};

/// New documents after which a session sweeps.
const MANY: u8 = 128;

/// The connection is other applications' after each transaction.
#[tokio::test]
async fn no_setting_stays_on_a_connection_of_the_pooler() {
    let fixture = Postgres::bare().await.pooled(1).await;
    let mut session = fixture.store().open(None).await.unwrap();
    let new = |key: u8| (lock_of(&[key]), Expected::Absent);
    let made: Vec<_> = (0..MANY).map(new).collect();
    for made in [&made[..], &[(lock(), Expected::Absent)]] {
        let done = session.commit(&commit(Vec::new(), made, 1)).await;
        assert!(done.unwrap().is_done());
    }
    draw(&mut *session).await.unwrap();
    let page = session.page(None, MANY.into()).await.unwrap();
    assert!(page.more);

    let pooler = fixture.pooler.as_ref().unwrap().connect().await;
    let changed = "SELECT name || ' = ' || setting FROM pg_settings
                   WHERE source = 'session' AND name <> 'application_name'";
    let changed = pooler.query(changed, &[]).await.unwrap();
    let changed: Vec<String> = changed.iter().map(|row| row.get(0)).collect();
    assert_eq!(changed, [""; 0]);
}

/// Draws do not wait for the disk: after a crash they may be drawn again. The pooler keeps those that drew them.
#[tokio::test]
async fn a_crash_of_the_server_ends_the_sessions_that_the_pooler_keeps() {
    // Nothing writes the log to the disk but commits that wait for it.
    let server = PostgreSql::spawn_with(&[("wal_writer_delay", "10s")]).await;
    let fixture = Postgres::bare_on(Arc::new(server), Tables::Logged).await;
    let mut fixture = fixture.pooled(1).await;
    fixture.options.response_timeout = Duration::from_secs(1);
    let store = fixture.store();
    let mut former = store.open(None).await.unwrap();
    let last = Token::new(Epoch(5), 0);
    let begin = Commit {
        tokens: TokenChange::Exactly(last),
        ..commit(Vec::new(), &[], 1)
    };
    assert!(former.commit(&begin).await.unwrap().is_done());
    let drawn = draw(&mut *former).await.unwrap();

    let server = Arc::get_mut(&mut fixture.server).expect("no other test has it");
    server.kill();
    let unreachable = store.open(None).await.expect_err("no server");
    assert!(unreachable.is_retryable(), "{unreachable:?}");
    server.restart().await;
    let mut later = opened(&*store).await;
    let again = draw(&mut *later).await.unwrap();
    println!("drawn after {drawn:?}, then after {again:?}");
    former.read(&[], None).await.expect("the pooler kept it");
    let grant = commit(Vec::new(), &[(lock(), Expected::Absent)], 2);
    let late = former.commit(&grant).await;
    assert!(matches!(late, Err(ShardError::NoReply { .. })), "{late:?}");
}

/// Draws three tokens. Returns the last one before them.
async fn draw(session: &mut dyn Session) -> Result<Token, ShardError> {
    let draw = Draw {
        head: Expected::Absent,
        tokens: 3,
    };
    let found = session.read(&[], Some(draw)).await?;
    assert_eq!(found.drawn, 3);
    Ok(found.last)
}

/// A session, once the server can be reached.
async fn opened(store: &dyn Store) -> Box<dyn Session> {
    let opened = RefCell::default();
    eventually("the server can be reached", async || {
        match store.open(None).await {
            Ok(session) => drop(opened.replace(Some(session))),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        opened.borrow().is_some()
    })
    .await;
    opened.take().unwrap()
}

#[tokio::test]
async fn under_repeatable_read_nothing_is_opened_or_committed() {
    in_an_old_snapshot_nothing_is_opened_or_committed(&Postgres::bare().await).await;
}

/// Otherwise a commit would be done though the head has changed while it waited for that.
pub(crate) async fn in_an_old_snapshot_nothing_is_opened_or_committed(fixture: &Postgres) {
    let role = format!("app_{}", fixture.options.prefix);
    let superuser = format!("CREATE ROLE {role} LOGIN SUPERUSER");
    fixture.run(&superuser).await;
    let pooler = PgBouncer::spawn(&fixture.server, &role, 2).await;
    let mut options = fixture.options.clone();
    options.address = address(&role, pooler.port(), Some(fixture.server.port()));
    let store = postgres_store(options);
    let (mut one, mut other) = (
        store.open(None).await.unwrap(),
        store.open(None).await.unwrap(),
    );
    let head = commit(Vec::new(), &[(Name::Head, Expected::Absent)], 1);
    assert!(one.commit(&head).await.unwrap().is_done());
    fixture
        .run(&format!(
            "ALTER ROLE {role} SET default_transaction_isolation = 'repeatable read'"
        ))
        .await;
    fixture.end_backends().await;

    let known = Expected::Version(1);
    let change = commit(
        Vec::new(),
        &[(Name::Head, known), (lock(), Expected::Absent)],
        2,
    );
    let grant = commit(
        vec![(Name::Head, known)],
        &[(lock_of(b"other"), Expected::Absent)],
        3,
    );
    let both = behind(fixture, one.commit(&change), other.commit(&grant)).await;
    let (changed, granted, _) = both;
    let opened = store.open(None).await.map(drop);
    for refused in [changed.map(drop), granted.map(drop), opened] {
        match refused {
            Err(ShardError::Unusable { reason }) => {
                let mend = format!(
                    "ALTER ROLE {role} SET default_transaction_isolation = 'read committed'"
                );
                assert!(reason.contains(&mend), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}
