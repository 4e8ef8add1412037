//! Commits that are held up in the middle.

use std::{cell::Cell, time::Duration};

use async_trait::async_trait;
use mysql_async::prelude::Queryable as _;
use ringfence_conformance::store::Fixture;
use ringfence_coordinator::{
    ids::ClientId,
    name::{LockKey, Namespace},
    shard::{
        ShardError,
        docs::{Commit, Committed, Expected, Name, TokenChange, Write},
        postgres::postgres_store,
    },
};
use ringfence_ring::SlotCount;
use ringfence_test_support::eventually;
use tokio::time::timeout;

use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

/// A server whose commits can be held up.
#[async_trait]
pub(crate) trait HoldsUp: Fixture {
    /// Has the server hold up each commit that makes the document of a lock, until the returned value is dropped.
    async fn hold_up(&self) -> Box<dyn Send>;

    /// How many commits and sessions wait for a lock of the server. Those that are held up do so.
    async fn waiting(&self) -> i64;
}

#[async_trait]
impl HoldsUp for Postgres {
    async fn hold_up(&self) -> Box<dyn Send> {
        self.run(
            "CREATE FUNCTION {}.hold_up() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_advisory_xact_lock_shared(hashtextextended(''{} held'', 0)); RETURN NEW; END';
             CREATE TRIGGER hold_up BEFORE INSERT ON {}.documents FOR EACH ROW
             WHEN (NEW.name LIKE 'lock/%'::bytea) EXECUTE FUNCTION {}.hold_up()",
        )
        .await;
        let (holder, schema) = (self.raw().await, self.options.prefix.as_str());
        let hold = format!("SELECT pg_advisory_lock(hashtextextended('{schema} held', 0))");
        holder.batch_execute(&hold).await.unwrap();
        Box::new(holder)
    }

    async fn waiting(&self) -> i64 {
        let name = format!("ringfence {}", self.options.prefix);
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE application_name = $1 AND wait_event_type = 'Lock'";
        let raw = self.raw().await;
        raw.query_one(waiting, &[&name]).await.unwrap().get(0)
    }
}

#[async_trait]
impl HoldsUp for Maria {
    async fn hold_up(&self) -> Box<dyn Send> {
        self.run(
            "CREATE TRIGGER `{}_hold_up` BEFORE INSERT ON `{}_documents` FOR EACH ROW
             BEGIN IF NEW.name LIKE 'lock/%' THEN
               DO get_lock('{}_held', 120); DO release_lock('{}_held');
             END IF; END",
        )
        .await;
        let mut holder = self.server.connect().await;
        let hold = format!("DO get_lock('{}_held', 0)", self.options.prefix);
        holder.query_drop(hold).await.unwrap();
        Box::new(holder)
    }

    async fn waiting(&self) -> i64 {
        let prefix = self.options.prefix.as_str();
        let mut raw = self.server.connect().await;
        let held_up = format!(
            "SELECT count(*) FROM information_schema.processlist
             WHERE state = 'User lock' AND info LIKE '%{prefix}\\_held%'"
        );
        let held_up: i64 = raw.query_first(held_up).await.unwrap().unwrap();
        // The table of transactions is as old as its first reader in a row of quick ones.
        let status = "SHOW ENGINE INNODB STATUS";
        let status: Option<(String, String, String)> = raw.query_first(status).await.unwrap();
        let (_, _, status) = status.unwrap();
        let ours = format!("`{prefix}_");
        let waits = |its: &&str| its.contains("LOCK WAIT") && its.contains(&ours);
        held_up + status.split("---TRANSACTION").filter(waits).count() as i64
    }
}

/// Sends `second` once the server holds `first` up, and lets both go on once `second` waits too. Either may be done at once
/// instead. Returns whether `second` was done before `first` could go on.
pub(super) async fn behind<T, U>(
    fixture: &dyn HoldsUp,
    first: impl Future<Output = T>,
    second: impl Future<Output = U>,
) -> (T, U, bool) {
    let held = fixture.hold_up().await;
    let [first_done, second_done] = [const { Cell::new(false) }; 2];
    let first = async {
        let done = first.await;
        first_done.set(true);
        done
    };
    let second = async {
        let is_held_up = async || first_done.get() || fixture.waiting().await == 1;
        eventually("the first one is held up", is_held_up).await;
        let done = second.await;
        second_done.set(true);
        done
    };
    let let_go = async {
        let waits = async || fixture.waiting().await == 2 - i64::from(first_done.get());
        let is_over = async || second_done.get() || waits().await;
        eventually("the second one waits", is_over).await;
        drop(held);
        second_done.get()
    };
    tokio::join!(first, second, let_go)
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
        not_before_ms: 0,
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
    assert!(other.commit(&made).await.unwrap().is_done());
    let grant = commit(
        vec![(name.clone(), Expected::Version(1))],
        &[(lock(), Expected::Absent)],
        2,
    );
    let change = commit(Vec::new(), &[(name, Expected::Version(1))], 3);
    let both = behind(fixture, one.commit(&grant), other.commit(&change)).await;
    let (granted, changed, overtook) = both;
    assert!(granted.unwrap().is_done());
    assert!(changed.unwrap().is_done());
    assert!(!overtook, "it was changed under the commit");
}

/// Otherwise it would be done by what it found before it waited.
pub(crate) async fn a_commit_behind_a_change_of_what_it_checks_is_refused(fixture: &dyn HoldsUp) {
    let store = fixture.store();
    let mut one = store.open(None).await.unwrap();
    let mut other = store.open(None).await.unwrap();
    let checked = lock_of(b"checked");
    let made = commit(Vec::new(), &[(checked.clone(), Expected::Absent)], 1);
    assert!(other.commit(&made).await.unwrap().is_done());
    let writes = [
        (checked.clone(), Expected::Version(1)),
        (lock_of(b"new"), Expected::Absent),
    ];
    let change = commit(Vec::new(), &writes, 2);
    let checks = vec![(checked.clone(), Expected::Version(1))];
    let grant = commit(checks, &[(lock(), Expected::Absent)], 3);
    let both = behind(fixture, one.commit(&change), other.commit(&grant)).await;
    let (changed, granted, overtook) = both;
    let stale = vec![checked];
    assert!(changed.unwrap().is_done());
    assert_eq!(granted.unwrap(), Committed::Refused { stale });
    assert!(!overtook, "it did not wait for the change");
}

/// A session is ended only when no request of it can take effect any more.
pub(crate) async fn a_commit_on_its_way_is_over_before_its_session_is_ended(fixture: &dyn HoldsUp) {
    let store = fixture.store();
    let mut former = store.open(None).await.unwrap();
    let grant = commit(Vec::new(), &[(lock(), Expected::Absent)], 1);
    let ended = Some((former.life().clone(), former.id()));
    let (_, opened, overtook) = behind(fixture, former.commit(&grant), store.open(ended)).await;
    opened.unwrap().read(&[], None).await.unwrap();
    assert!(!overtook, "it took effect later");
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_does_not_wait_on() {
    the_server_gives_up_a_commit_that_waits_too_long(&Postgres::bare().await).await;
}

/// Otherwise statements pile up behind one that is held up.
pub(crate) async fn the_server_gives_up_a_commit_that_waits_too_long(fixture: &Postgres) {
    let mut options = fixture.options.clone();
    options.response_timeout = Duration::from_millis(600);
    let store = postgres_store(options);
    let mut session = store.open(None).await.unwrap();
    let _held = fixture.hold_up().await;
    let change = commit(Vec::new(), &[(lock(), Expected::Absent)], 1);
    let given_up = session.commit(&change).await;
    assert!(
        matches!(given_up, Err(ShardError::NoReply { .. })),
        "{given_up:?}"
    );
    drop(session);
    eventually("it waits no longer", async || fixture.waiting().await == 0).await;
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
        async fn a_commit_is_refused_behind_a_change_of_what_it_checks() {
            super::a_commit_behind_a_change_of_what_it_checks_is_refused(&$make.await).await;
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

/// Inboxes share a connection, and one of them is not polled while its look is under way.
#[tokio::test]
async fn an_inbox_that_nobody_polls_keeps_no_message_from_another() {
    let fixture = Maria::bare().await;
    let store = fixture.store();
    let mut idle = store.listen(ClientId(1)).await.unwrap();
    let mut other = store.listen(ClientId(2)).await.unwrap();
    let mut holder = fixture.server.connect().await;
    let lock = format!("LOCK TABLES `{}_messages` WRITE", fixture.options.prefix);
    holder.query_drop(lock).await.unwrap();
    let unanswered = timeout(Duration::from_millis(200), idle.next()).await;
    unanswered.unwrap_err();
    holder.query_drop("UNLOCK TABLES").await.unwrap();
    let mut session = store.open(None).await.unwrap();
    let sending = Commit {
        messages: vec![(ClientId(2), "one".into())],
        ..commit(Vec::new(), &[], 1)
    };
    let sent = session.commit(&sending).await.unwrap();
    assert!(sent.is_done());
    let message = timeout(Duration::from_secs(60), other.next()).await;
    assert_eq!(message.expect("it comes").unwrap(), "one");
}
