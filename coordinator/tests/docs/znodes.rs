//! What a store on ZooKeeper needs beside versions of znodes.

use std::{sync::Arc, time::Duration};

use ringfence_conformance::shard::Fixture as _;
use ringfence_coordinator::{
    name::{LockKey, Namespace},
    random::Random,
    shard::{
        ShardError,
        docs::{Commit, Committed, Expected, FORGET_AFTER, Name, Session, TokenChange, Write},
    },
    zookeeper::{ZookeeperOptions, zookeeper_store},
};
use ringfence_ring::SlotCount;
use tokio::time::timeout;

use crate::{
    lossy::{Answers, Lossy},
    zookeeper_fixture::{OnZookeeper, shared},
};

/// The limit of every wait.
const SOON: Duration = Duration::from_secs(120);

/// A session looks for old documents after so many new ones.
const MADE: usize = 512;

async fn open(options: &ZookeeperOptions) -> Box<dyn Session> {
    let random = Arc::new(Random::from_os());
    let store = zookeeper_store(options.clone(), random);
    store.open(None).await.unwrap()
}

fn lock(number: usize) -> Name {
    let (namespace, key) = (Namespace::default(), format!("key/{number}"));
    let key = LockKey::new(&namespace, key.as_bytes(), SlotCount::default());
    Name::Lock(key.unwrap())
}

fn write(name: &Name, expected: Expected, text: &str) -> Write {
    Write {
        name: name.clone(),
        expected,
        content: text.into(),
        ends_ms: None,
    }
}

fn commit(version: u64, writes: Vec<Write>) -> Commit {
    Commit {
        checks: Vec::new(),
        writes,
        version,
        tokens: TokenChange::None,
        not_before_ms: 0,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    }
}

/// A session has read a document that ended long ago. It is deleted, and another one is made, whose znode has the same version.
#[tokio::test]
async fn a_document_that_was_deleted_and_made_again_is_another_one() {
    let fixture = OnZookeeper::bare().await;
    let mut maker = open(&fixture.options).await;
    let now_ms = maker.read(&[], None).await.unwrap().now_ms;
    // The first sweep looks at a part of the directories.
    let in_first = |name: &Name| matches!(name, Name::Lock(key) if key.slot().index() % 1024 < 128);
    let name = (0..).map(lock).find(in_first).unwrap();
    let mut ended = commit(1, vec![write(&name, Expected::Absent, "old")]);
    ended.writes[0].ends_ms = Some(now_ms);
    assert!(maker.commit(&ended).await.unwrap().is_done());
    fixture.elapse(FORGET_AFTER + Duration::from_secs(1)).await;

    let mut late = open(&fixture.options).await;
    let read = late.read(std::slice::from_ref(&name), None).await.unwrap();
    assert_eq!(read.documents[0].as_ref().unwrap().version, 1);

    let others = (1_000_000..).map(lock).take(MADE);
    let others = others.map(|name| write(&name, Expected::Absent, "text"));
    let others = commit(2, others.collect());
    assert!(maker.commit(&others).await.unwrap().is_done());
    let new = commit(3, vec![write(&name, Expected::Absent, "new")]);
    assert!(maker.commit(&new).await.unwrap().is_done());

    let over = commit(4, vec![write(&name, Expected::Version(1), "over")]);
    let stale = vec![name.clone()];
    assert_eq!(
        late.commit(&over).await.unwrap(),
        Committed::Refused { stale }
    );
    let left = late.read(&[name], None).await.unwrap();
    assert_eq!(left.documents[0].as_ref().unwrap().content, "new");
}

/// The session has seen a clock by which it would be in time.
#[tokio::test]
async fn a_commit_is_in_time_by_the_clock_of_that_time() {
    let fixture = OnZookeeper::bare().await;
    let mut session = open(&fixture.options).await;
    let now_ms = session.read(&[], None).await.unwrap().now_ms;
    fixture.elapse(Duration::from_secs(10)).await;
    let mut late = commit(1, vec![write(&lock(1), Expected::Absent, "late")]);
    late.not_after_ms = now_ms + 5_000;
    let refused = session.commit(&late).await.unwrap();
    assert_eq!(refused, Committed::Refused { stale: Vec::new() });
}

/// The connection ends before the answer: the same request, on another one, finds what the first has done.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_done_once() {
    let fixture = OnZookeeper::bare().await;
    let mut direct = open(&fixture.options).await;
    let lossy = Lossy::to(shared().await.port()).await;
    let url = format!("zookeeper://127.0.0.1:{}", lossy.port);
    let mut session = open(&ZookeeperOptions {
        address: url.parse().unwrap(),
        ..fixture.options.clone()
    })
    .await;
    session.read(&[Name::Head], None).await.unwrap();
    lossy.answers.send_replace(Answers::Held);
    let lose = async {
        let mut found = async || direct.read(&[Name::Head], None).await.unwrap().documents;
        while found().await[0].is_none() {
            tokio::task::yield_now().await;
        }
        lossy.answers.send_replace(Answers::Lost);
    };
    let commit = commit(7, vec![write(&Name::Head, Expected::Absent, "head")]);
    let both = async { tokio::join!(session.commit(&commit), lose) };
    let (done, ()) = timeout(SOON, both).await.expect("in time");
    assert!(done.unwrap().is_done());
}

/// ZooKeeper would end the connection of one who asks for more than 1 MB.
#[tokio::test]
async fn a_request_that_zookeeper_would_not_take_is_not_sent() {
    let fixture = OnZookeeper::bare().await;
    let mut session = open(&fixture.options).await;
    let half = "x".repeat(600_000);
    let writes = [1, 2].map(|number| write(&lock(number), Expected::Absent, &half));
    // One by one they fit.
    let taken_apart = Committed::Refused { stale: Vec::new() };
    let both = commit(1, writes.to_vec());
    assert_eq!(session.commit(&both).await.unwrap(), taken_apart);
    for one in writes {
        let done = session.commit(&commit(2, vec![one])).await;
        assert!(done.unwrap().is_done());
    }
    let whole = commit(3, vec![write(&lock(3), Expected::Absent, &half.repeat(2))]);
    let refused = session.commit(&whole).await;
    assert!(
        matches!(refused, Err(ShardError::Unusable { .. })),
        "{refused:?}"
    );
}

/// The znodes that a user makes are for that user.
#[tokio::test]
async fn without_the_login_of_the_user_who_made_the_znodes_nothing_is_read() {
    let fixture = OnZookeeper::bare().await;
    let with = |login: &str| ZookeeperOptions {
        address: fixture
            .options
            .address
            .as_str()
            .replace("://", &format!("://{login}"))
            .parse()
            .unwrap(),
        ..fixture.options.clone()
    };
    let mut session = open(&with("coin:s3cret@")).await;
    let made = commit(1, vec![write(&Name::Head, Expected::Absent, "head")]);
    assert!(session.commit(&made).await.unwrap().is_done());
    for login in ["", "coin:other@"] {
        let random = Arc::new(Random::from_os());
        let refused = zookeeper_store(with(login), random).open(None).await;
        let error = refused.expect_err("no rights").to_string();
        assert!(error.contains("the user needs all rights"), "{error}");
    }
    let mut again = open(&with("coin:s3cret@")).await;
    let found = again.read(&[Name::Head], None).await.unwrap();
    assert!(found.documents[0].is_some());
}
