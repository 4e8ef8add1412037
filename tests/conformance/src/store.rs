//! The requirements on every [`Store`]. One function per property; run them all with
//! [`store_conformance!`](crate::store_conformance).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Token},
    limits::COUNTER_MAX,
    name::{LockKey, Namespace},
    shard::{
        ShardError,
        docs::{
            Commit, Committed, Document, Draw, Expected, Name, Session, Store, TokenChange,
            WATCHERS, Write,
        },
    },
};
use ringfence_ring::SlotCount;
use tokio::time::timeout;

/// The limit of every wait in these tests.
const SOON: Duration = Duration::from_secs(10);

/// Sessions that compete, and how often they do.
const RACERS: u64 = 6;
const ROUNDS: u64 = 40;

/// A store to be tested: empty. One value serves one test and shares nothing with any other.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Begins another life. Connections may go on, and the documents may stay.
    async fn begin_life(&self);
}

/// Creates one test per property. The argument is a future of a [`Fixture`](crate::store::Fixture), which lives as long
/// as its test.
#[macro_export]
macro_rules! store_conformance {
    ($make:expr) => {
        $crate::store_conformance!(@each $make;
            a_commit_is_seen_by_every_later_read,
            a_commit_is_refused_whole_if_a_document_is_not_as_expected,
            a_session_that_another_one_ended_commits_nothing,
            in_another_life_nothing_is_committed,
            in_another_life_nothing_is_read,
            a_commit_that_comes_too_late_does_nothing,
            a_commit_under_a_clock_that_went_back_does_nothing,
            of_commits_at_once_on_one_document_one_is_done,
            of_commits_at_once_that_make_one_document_one_is_done,
            no_two_draws_take_one_token,
            a_draw_by_another_head_takes_nothing,
            a_draw_beyond_the_last_counter_takes_nothing,
            a_commit_raises_the_last_token_and_lowers_it_only_if_told,
            messages_arrive_in_order_and_equal_ones_too,
            messages_to_watchers_arrive_at_each_of_them,
            a_page_has_the_locks_that_say_something,
        );
    };
    (@each $make:expr; $($property:ident),+ $(,)?) => {$(
        #[tokio::test]
        async fn $property() {
            let fixture = $make.await;
            $crate::store::$property(&fixture).await;
        }
    )+};
}

/// An answered commit is there.
pub async fn a_commit_is_seen_by_every_later_read(fixture: &dyn Fixture) {
    let [mut one, mut other] = [open(fixture).await, open(fixture).await];
    for version in 1..=3 {
        let expected = match version {
            1 => Expected::Absent,
            _ => Expected::Version(version - 1),
        };
        let text = format!("text {version}");
        done(&mut *one, &writing(version, &[(key(1), expected, &text)])).await;
        let document = Document {
            version,
            content: text,
        };
        for session in [&mut one, &mut other] {
            assert_eq!(
                documents(&mut **session, &[key(1)]).await,
                [Some(document.clone())]
            );
        }
    }
}

/// Nothing of it is done, whichever document it was.
pub async fn a_commit_is_refused_whole_if_a_document_is_not_as_expected(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let there = [
        (key(1), Expected::Absent, "there"),
        (Name::Head, Expected::Absent, "head"),
    ];
    done(&mut *session, &writing(1, &there)).await;
    let wrong = [
        (key(1), Expected::Absent),
        (key(1), Expected::Version(2)),
        (key(2), Expected::Version(1)),
        (Name::Head, Expected::Version(2)),
    ];
    for (name, expected) in wrong {
        let fine = (key(3), Expected::Absent, "new");
        let mut checking = writing(9, std::slice::from_ref(&fine));
        checking.checks = vec![(name.clone(), expected)];
        let written = writing(9, &[fine, (name.clone(), expected, "other")]);
        for commit in [checking, written] {
            let refused = session.commit(&commit).await.expect("answer");
            let stale = vec![name.clone()];
            assert_eq!(refused, Committed::Refused { stale }, "{commit:?}");
        }
    }
    let left = documents(&mut *session, &[key(1), key(2), key(3)]).await;
    assert_eq!(left[0].as_ref().expect("it is there").content, "there");
    assert_eq!(left[1..], [None, None]);
}

/// A request that was on its way takes no effect later.
pub async fn a_session_that_another_one_ended_commits_nothing(fixture: &dyn Fixture) {
    let mut former = open(fixture).await;
    let ended = Some((former.life().clone(), former.id()));
    let mut session = fixture.store().open(ended).await.expect("answer");
    let late = writing(1, &[(key(1), Expected::Any, "late")]);
    let refused = former.commit(&late).await;
    assert!(
        matches!(refused, Err(ShardError::NoReply { .. })),
        "{refused:?}"
    );
    assert_eq!(documents(&mut *session, &[key(1)]).await, [None]);
    // The others go on.
    done(
        &mut *session,
        &writing(2, &[(key(1), Expected::Absent, "new")]),
    )
    .await;
}

/// The former life's documents say nothing any more.
pub async fn in_another_life_nothing_is_committed(fixture: &dyn Fixture) {
    let mut former = open(fixture).await;
    assert_eq!(documents(&mut *former, &[key(1)]).await, [None]);
    fixture.begin_life().await;
    let late = writing(1, &[(key(1), Expected::Any, "late")]);
    assert!(former.commit(&late).await.is_err());
    let mut session = open(fixture).await;
    assert_ne!(session.life(), former.life());
    assert_eq!(documents(&mut *session, &[key(1)]).await, [None]);
}

/// Nor is it told about.
pub async fn in_another_life_nothing_is_read(fixture: &dyn Fixture) {
    let mut former = open(fixture).await;
    fixture.begin_life().await;
    let refused = former.read(&[key(1)], None).await;
    assert!(refused.is_err(), "{refused:?}");
    let refused = former.page(None, 1).await;
    assert!(refused.is_err(), "{refused:?}");
}

/// The answer that it stands for holds no longer.
pub async fn a_commit_that_comes_too_late_does_nothing(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let now_ms = session.read(&[], None).await.expect("answer").now_ms;
    let mut commit = writing(1, &[(key(1), Expected::Absent, "late")]);
    commit.not_after_ms = now_ms - 1;
    let refused = session.commit(&commit).await.expect("answer");
    assert!(matches!(refused, Committed::Refused { .. }), "{refused:?}");
    assert_eq!(documents(&mut *session, &[key(1)]).await, [None]);
}

/// It depends on a later time.
pub async fn a_commit_under_a_clock_that_went_back_does_nothing(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let found = session.read(&[], None).await.expect("answer");
    let mut commit = writing(1, &[(key(1), Expected::Absent, "early")]);
    commit.not_before_ms = found.now_ms + 60_000;
    commit.not_after_ms = found.now_ms + 120_000;
    let refused = session.commit(&commit).await.expect("answer");
    assert!(matches!(refused, Committed::Refused { .. }), "{refused:?}");
    assert_eq!(documents(&mut *session, &[key(1)]).await, [None]);
}

/// Two that replace one version.
pub async fn of_commits_at_once_on_one_document_one_is_done(fixture: &dyn Fixture) {
    let mut sessions = Vec::new();
    for _ in 0..RACERS {
        sessions.push(open(fixture).await);
    }
    let made = writing(1, &[(key(1), Expected::Absent, "made")]);
    done(&mut *sessions[0], &made).await;
    let mut version = 1;
    for round in 0..ROUNDS {
        let expected = Expected::Version(version);
        version = one_done(&mut sessions, round, (key(1), expected)).await;
    }
}

/// Two that find nothing.
pub async fn of_commits_at_once_that_make_one_document_one_is_done(fixture: &dyn Fixture) {
    let mut sessions = Vec::new();
    for _ in 0..RACERS {
        sessions.push(open(fixture).await);
    }
    for round in 0..ROUNDS {
        one_done(&mut sessions, round, (key(round), Expected::Absent)).await;
    }
}

/// Draws from several sessions.
pub async fn no_two_draws_take_one_token(fixture: &dyn Fixture) {
    let mut sessions = Vec::new();
    for _ in 0..RACERS {
        sessions.push(open(fixture).await);
    }
    let first = Token::new(Epoch(5), 0);
    done(&mut *sessions[0], &exactly(first)).await;
    let draws = sessions.iter_mut().map(async |session| {
        let mut taken = Vec::new();
        for _ in 0..ROUNDS {
            let found = session.read(&[], Some(draw(3))).await.expect("answer");
            assert_eq!(found.drawn, 3);
            taken.extend((1..=3).map(|more| found.last.get() + more));
        }
        taken
    });
    let mut taken = join_all(draws).await.concat();
    taken.sort_unstable();
    let all = (first.get() + 1..).take((RACERS * ROUNDS * 3) as usize);
    assert_eq!(taken, all.collect::<Vec<_>>());
}

/// The rules that asked for the tokens do not hold.
pub async fn a_draw_by_another_head_takes_nothing(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let first = Token::new(Epoch(5), 0);
    let mut commit = exactly(first);
    commit.writes = writing(1, &[(Name::Head, Expected::Absent, "head")]).writes;
    done(&mut *session, &commit).await;
    let by = |head| Draw { head, tokens: 3 };
    for other in [Expected::Absent, Expected::Version(2)] {
        let found = session.read(&[], Some(by(other))).await.expect("answer");
        assert!(found.head_is_stale);
        assert_eq!((found.drawn, found.last), (0, first));
    }
    let found = session.read(&[], Some(by(Expected::Version(1)))).await;
    let found = found.expect("answer");
    assert_eq!((found.drawn, found.head_is_stale), (3, false));
}

/// The epoch is raised first.
pub async fn a_draw_beyond_the_last_counter_takes_nothing(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let last = Token::new(Epoch(5), COUNTER_MAX - 2);
    done(&mut *session, &exactly(last)).await;
    for (tokens, drawn) in [(3, 0), (2, 2), (1, 0)] {
        let found = session.read(&[], Some(draw(tokens))).await;
        assert_eq!(found.expect("answer").drawn, drawn);
    }
}

/// Tokens rise; a new life begins with its own.
pub async fn a_commit_raises_the_last_token_and_lowers_it_only_if_told(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let token = |counter| Token::new(Epoch(5), counter);
    for (change, last) in [
        (TokenChange::Exactly(token(7)), token(7)),
        (TokenChange::AtLeast(token(9)), token(9)),
        (TokenChange::AtLeast(token(8)), token(9)),
        (TokenChange::None, token(9)),
        (TokenChange::Exactly(token(1)), token(1)),
    ] {
        let commit = Commit {
            tokens: change,
            ..writing(1, &[])
        };
        done(&mut *session, &commit).await;
        let found = session.read(&[], None).await.expect("answer");
        assert_eq!(found.last, last, "{change:?}");
    }
}

/// A message of its own for each.
pub async fn messages_arrive_in_order_and_equal_ones_too(fixture: &dyn Fixture) {
    let (client, other) = (ClientId(7), ClientId(8));
    let mut inbox = fixture.store().listen(client).await.expect("answer");
    let mut session = open(fixture).await;
    assert_eq!(inbox.life(), session.life());
    let mut commit = writing(1, &[(key(1), Expected::Absent, "new")]);
    let messages = [
        (client, "a b"),
        (other, "x"),
        (client, "a b"),
        (client, "c"),
    ];
    commit.messages = messages.map(|(to, text)| (to, text.to_owned())).into();
    done(&mut *session, &commit).await;
    // One that is refused says nothing.
    let refused = session.commit(&commit).await.expect("answer");
    assert!(matches!(refused, Committed::Refused { .. }));
    let last = Commit {
        messages: vec![(client, "last".into())],
        ..writing(2, &[])
    };
    done(&mut *session, &last).await;
    for expected in ["a b", "a b", "c", "last"] {
        let message = timeout(SOON, inbox.next()).await.expect("it comes");
        assert_eq!(message.expect("it is there"), expected);
    }
}

/// Those to one client go to its one listener.
pub async fn messages_to_watchers_arrive_at_each_of_them(fixture: &dyn Fixture) {
    let store = fixture.store();
    let mut session = open(fixture).await;
    let announcing = |version, text: &str| Commit {
        messages: vec![(WATCHERS, text.to_owned())],
        ..writing(version, &[])
    };
    done(&mut *session, &announcing(1, "before")).await;
    let mut watchers = Vec::new();
    for _ in 0..3 {
        watchers.push(store.listen(WATCHERS).await.expect("answer"));
    }
    for (version, text) in [(2, "one"), (3, "two")] {
        done(&mut *session, &announcing(version, text)).await;
        for watcher in &mut watchers {
            let message = timeout(SOON, watcher.next()).await.expect("it comes");
            assert_eq!(message.expect("it is there"), text);
        }
    }
}

/// Page by page, each once.
pub async fn a_page_has_the_locks_that_say_something(fixture: &dyn Fixture) {
    let mut session = open(fixture).await;
    let names: Vec<Name> = (0..5).map(key).collect();
    for (at, name) in names.iter().enumerate() {
        let text = if at == 3 { "" } else { "text" };
        let commit = writing(at as u64 + 1, &[(name.clone(), Expected::Absent, text)]);
        done(&mut *session, &commit).await;
    }
    let others = [
        (Name::Head, Expected::Absent, "h"),
        (Name::Slots(0), Expected::Any, "s"),
    ];
    done(&mut *session, &writing(9, &others)).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = session.page(after.as_ref(), 2).await.expect("answer");
        found.extend(
            page.documents
                .iter()
                .map(|(key, _)| Name::Lock(key.clone())),
        );
        after = page.documents.last().map(|(key, _)| key.clone());
        if !page.more {
            break;
        }
    }
    let mut expected = names;
    expected.remove(3);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

async fn open(fixture: &dyn Fixture) -> Box<dyn Session> {
    fixture.store().open(None).await.expect("answer")
}

fn key(number: u64) -> Name {
    let slots = SlotCount::default();
    let key = LockKey::new(
        &Namespace::default(),
        format!("key {number}").as_bytes(),
        slots,
    );
    Name::Lock(key.expect("a key"))
}

fn writing(version: u64, writes: &[(Name, Expected, &str)]) -> Commit {
    let write = |(name, expected, content): &(Name, Expected, &str)| Write {
        name: name.clone(),
        expected: *expected,
        content: (*content).to_owned(),
        ends_ms: None,
    };
    Commit {
        checks: Vec::new(),
        writes: writes.iter().map(write).collect(),
        version,
        tokens: TokenChange::None,
        not_before_ms: 0,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    }
}

fn exactly(last: Token) -> Commit {
    Commit {
        tokens: TokenChange::Exactly(last),
        ..writing(1, &[])
    }
}

/// By no head.
fn draw(tokens: u64) -> Draw {
    Draw {
        head: Expected::Absent,
        tokens,
    }
}

async fn done(session: &mut dyn Session, commit: &Commit) {
    let committed = session.commit(commit).await.expect("answer");
    assert!(committed.is_done(), "{commit:?}");
}

async fn documents(session: &mut dyn Session, names: &[Name]) -> Vec<Option<Document>> {
    let found = session.read(names, None).await;
    found.expect("answer").documents
}

/// All `sessions` write one document at once; returns the version that it has then.
async fn one_done(
    sessions: &mut [Box<dyn Session>],
    round: u64,
    (name, expected): (Name, Expected),
) -> u64 {
    let racers = (0..).zip(sessions.iter_mut());
    let racers = racers.map(async |(racer, session): (u64, &mut Box<dyn Session>)| {
        let version = 100 + round * RACERS + racer;
        let commit = writing(version, &[(name.clone(), expected, "raced")]);
        let committed = session.commit(&commit).await.expect("answer");
        committed.is_done().then_some(version)
    });
    let won: Vec<u64> = join_all(racers).await.into_iter().flatten().collect();
    let [won] = won[..] else {
        panic!("one is done: {won:?}")
    };
    let found = documents(&mut *sessions[0], std::slice::from_ref(&name)).await;
    assert_eq!(found[0].as_ref().map(|found| found.version), Some(won));
    won
}
