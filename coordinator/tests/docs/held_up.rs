//! Commits that are held up in the middle.

use std::time::Duration;

use async_trait::async_trait;
use ringfence_conformance::store::Fixture;
use ringfence_coordinator::{
    name::{LockKey, Namespace},
    shard::{
        ShardError,
        docs::{Commit, Committed, Expected, Name, TokenChange, Write},
        postgres::postgres_store,
    },
};
use ringfence_ring::SlotCount;
use tokio::time::{Instant, sleep, timeout};

use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

/// How long the server takes to write a lock.
pub(super) const HELD_UP: Duration = Duration::from_millis(600);

/// The other request comes so much later: the first one is in the middle of its commit.
pub(super) const LATER: Duration = Duration::from_millis(100);

/// A server whose commits can be held up.
#[async_trait]
pub(crate) trait HoldsUp: Fixture {
    /// Has the server take `length` to make the document of a lock.
    async fn hold_up(&self, length: Duration);
}

#[async_trait]
impl HoldsUp for Postgres {
    async fn hold_up(&self, length: Duration) {
        let seconds = length.as_secs_f64();
        self.run(&format!(
            "CREATE FUNCTION {{}}.hold_up() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END';
             CREATE TRIGGER hold_up BEFORE INSERT ON {{}}.documents FOR EACH ROW
             WHEN (NEW.name LIKE 'lock/%'::bytea) EXECUTE FUNCTION {{}}.hold_up()"
        ))
        .await;
    }
}

#[async_trait]
impl HoldsUp for Maria {
    async fn hold_up(&self, length: Duration) {
        let seconds = length.as_secs_f64();
        self.run(&format!(
            "CREATE TRIGGER `{{}}_hold_up` BEFORE INSERT ON `{{}}_documents` FOR EACH ROW
             BEGIN IF NEW.name LIKE 'lock/%' THEN DO sleep({seconds}); END IF; END"
        ))
        .await;
    }
}

pub(super) fn lock() -> Name {
    lock_of(b"key")
}

pub(super) fn lock_of(key: &[u8]) -> Name {
    let key = LockKey::new(&Namespace::default(), key, SlotCount::default());
    Name::Lock(key.unwrap())
}

pub(super) fn commit(
    checks: Vec<(Name, Expected)>,
    writes: &[(Name, Expected)],
    version: u64,
) -> Commit {
    let write = |(name, expected): &(Name, Expected)| Write {
        name: name.clone(),
        expected: *expected,
        content: format!("{version}"),
        ends_ms: None,
    };
    Commit {
        checks,
        writes: writes.iter().map(write).collect(),
        version,
        tokens: TokenChange::None,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    }
}

/// Otherwise it would be done after the answer, by rules that do not hold any more.
pub(crate) async fn a_change_of_the_head_waits_for_commits_that_depend_on_it(
    fixture: &dyn HoldsUp,
) {
    a_change_waits_for_a_commit_that_checks(Name::Head, fixture).await;
}

/// Otherwise a commit would be done though what it checked is no more.
pub(crate) async fn a_change_of_a_document_waits_for_commits_that_check_it(fixture: &dyn HoldsUp) {
    a_change_waits_for_a_commit_that_checks(lock_of(b"checked"), fixture).await;
}

async fn a_change_waits_for_a_commit_that_checks(name: Name, fixture: &dyn HoldsUp) {
    let store = fixture.store();
    let mut one = store.open(None).await.unwrap();
    let mut other = store.open(None).await.unwrap();
    let made = commit(Vec::new(), &[(name.clone(), Expected::Absent)], 1);
    assert_eq!(other.commit(&made).await.unwrap(), Committed::Done);
    fixture.hold_up(HELD_UP).await;
    let grant = commit(
        vec![(name.clone(), Expected::Version(1))],
        &[(lock(), Expected::Absent)],
        2,
    );
    let begun = Instant::now();
    let changing = async {
        sleep(LATER).await;
        let change = commit(Vec::new(), &[(name, Expected::Version(1))], 3);
        let changed = other.commit(&change).await.unwrap();
        (changed, begun.elapsed())
    };
    let (granted, (changed, after)) = tokio::join!(one.commit(&grant), changing);
    assert_eq!(
        (granted.unwrap(), changed),
        (Committed::Done, Committed::Done)
    );
    assert!(after >= HELD_UP, "it was changed under the commit");
}

/// A session is ended only when no request of it can take effect any more.
pub(crate) async fn a_commit_on_its_way_is_over_before_its_session_is_ended(fixture: &dyn HoldsUp) {
    let store = fixture.store();
    let mut former = store.open(None).await.unwrap();
    fixture.hold_up(HELD_UP).await;
    let grant = commit(Vec::new(), &[(lock(), Expected::Absent)], 1);
    let ended = Some((former.life().clone(), former.id()));
    let (_, mut session) = tokio::join!(former.commit(&grant), async {
        sleep(LATER).await;
        let mut session = store.open(ended).await.unwrap();
        let before = session.read(&[lock()], None).await.unwrap().documents;
        sleep(2 * HELD_UP).await;
        let after = session.read(&[lock()], None).await.unwrap().documents;
        assert_eq!(before, after, "it took effect later");
        session
    });
    session.read(&[], None).await.unwrap();
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_does_not_wait_on() {
    the_server_gives_up_a_commit_that_waits_too_long(&Postgres::bare().await).await;
}

/// Otherwise statements pile up behind one that is held up.
pub(crate) async fn the_server_gives_up_a_commit_that_waits_too_long(fixture: &Postgres) {
    let mut options = fixture.options.clone();
    options.response_timeout = HELD_UP;
    let store = postgres_store(options);
    let mut session = store.open(None).await.unwrap();
    let (holder, observer) = (fixture.raw().await, fixture.raw().await);
    let schema = fixture.options.prefix.as_str();
    let hold = format!("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('{schema}', 0))");
    holder.batch_execute(&hold).await.unwrap();
    let change = commit(Vec::new(), &[(lock(), Expected::Absent)], 1);
    let given_up = session.commit(&change).await;
    assert!(
        matches!(given_up, Err(ShardError::NoReply { .. })),
        "{given_up:?}"
    );
    drop(session);
    let name = format!("ringfence {schema}");
    let waiting =
        "SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let end = timeout(4 * HELD_UP, async {
        while !observer.query(waiting, &[&name]).await.unwrap().is_empty() {
            sleep(LATER / 10).await;
        }
    });
    end.await.expect("it waits no longer");
}

macro_rules! held_up {
    ($make:expr) => {
        #[tokio::test]
        async fn the_head_changes_behind_commits_that_depend_on_it() {
            super::a_change_of_the_head_waits_for_commits_that_depend_on_it(&$make.await).await;
        }

        #[tokio::test]
        async fn a_document_changes_behind_commits_that_check_it() {
            super::a_change_of_a_document_waits_for_commits_that_check_it(&$make.await).await;
        }

        #[tokio::test]
        async fn a_session_ends_behind_its_commits() {
            super::a_commit_on_its_way_is_over_before_its_session_is_ended(&$make.await).await;
        }
    };
}

mod mariadb {
    held_up!(crate::mariadb_fixture::Maria::bare());
}

mod postgres {
    held_up!(crate::postgres_fixture::Postgres::bare());
}
