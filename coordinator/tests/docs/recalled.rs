//! Locks that a connection wrote: it changes them without a read.

use std::sync::Arc;

use tokio::runtime::Builder;

use super::races::{LONG, acquire, arm, incarnation, key, nonce, request};
use crate::{docs_fixture::Docs, etcd_fixture::OnEtcd, zookeeper_fixture::OnZookeeper};
use ringfence_conformance::shard::Fixture as _;
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::Label,
    random::Random,
    shard::{
        LockLane, LockLink, Mode, Op, Reply, Shard, Step,
        docs::{
            COMMIT_WITHIN, Commit, Committed, Draw, Expected, FORGET_AFTER, Name, Store,
            TokenChange, Write,
        },
    },
};

const SEEDS: u64 = 200;
const STEPS: u64 = 120;

async fn take(link: &mut dyn LockLink, client: u64) -> Option<Token> {
    take_of(link, 0, client).await
}

async fn give_back(link: &mut dyn LockLink, client: u64) {
    give_back_of(link, 0, client).await;
}

async fn take_of(link: &mut dyn LockLink, which: usize, client: u64) -> Option<Token> {
    let asked = [request(&key(which), acquire(nonce(client, 1), LONG, false))];
    match link.call(&asked).await.unwrap().replies[0] {
        Reply::Granted { token, .. } => Some(token),
        Reply::Held { .. } => None,
        ref other => panic!("{other:?}"),
    }
}

async fn give_back_of(link: &mut dyn LockLink, which: usize, client: u64) {
    let nonce = nonce(client, 1);
    let asked = [request(&key(which), Op::Release { nonce })];
    assert_eq!(
        link.call(&asked).await.unwrap().replies,
        [Reply::Released { held: true }]
    );
}

async fn connect(shard: &dyn Shard) -> Box<dyn LockLink> {
    shard.connect_locks(LockLane::Work, None).await.unwrap()
}

#[tokio::test]
async fn a_lock_that_a_connection_wrote_is_not_read_again() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    let mut link = connect(&*docs.shard()).await;
    take(&mut *link, 1).await.expect("it is free");
    let reads = docs.reads();
    for _ in 0..3 {
        give_back(&mut *link, 1).await;
        take(&mut *link, 1).await.expect("it is free");
    }
    assert_eq!(docs.reads(), reads);
}

/// A lock that a connection knows nothing of, and that has no document.
#[tokio::test]
async fn a_new_lock_is_not_read() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    let mut link = connect(&*docs.shard()).await;
    take_of(&mut *link, 0, 1).await.expect("it is free");
    let reads = docs.reads();
    for which in 1..4 {
        take_of(&mut *link, which, 1).await.expect("it is free");
    }
    assert_eq!(docs.reads(), reads);
}

/// A lock that others use, too, is read, until nobody else used it.
#[tokio::test]
async fn a_lock_that_others_wrote_is_read_until_they_leave_it() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    let mut one = connect(&*docs.shard()).await;
    let mut other = connect(&*docs.shard()).await;
    let used = async |link: &mut dyn LockLink, client: u64| {
        let reads = docs.reads();
        take(link, client).await.expect("it is free");
        give_back(link, client).await;
        docs.reads() - reads
    };
    used(&mut *one, 1).await;
    used(&mut *other, 2).await;
    assert_eq!(used(&mut *one, 1).await, 1, "it is not as it was");
    assert_eq!(used(&mut *one, 1).await, 1, "others may use it");
    used(&mut *one, 1).await;
    assert_eq!(used(&mut *one, 1).await, 0, "nobody else did");
}

/// Three connections take, release and confirm three locks, whose documents are forgotten in between, and which other shards grant.
#[test]
fn tokens_of_a_lock_rise_whoever_drew_them() {
    for seed in 0..SEEDS {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let docs = Docs::new().await;
            arm(&*docs.shard(), docs.topology()).await;
            Run::new(&docs, seed).await.go(&docs).await;
        });
    }
}

/// A run of random steps.
struct Run {
    random: Random,
    links: Vec<Box<dyn LockLink>>,
    locks: [Lock; 3],
    epoch: u64,
    steps: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Lock {
    last: Token,
    holder: Option<u64>,
}

impl Run {
    async fn new(docs: &Docs, seed: u64) -> Self {
        let shard = docs.shard();
        let mut links = Vec::new();
        for _ in 0..3 {
            links.push(connect(&*shard).await);
        }
        Self {
            random: Random::seeded(seed),
            links,
            locks: [Lock::default(); 3],
            epoch: 5,
            steps: vec![format!("seed {seed}")],
        }
    }

    async fn go(mut self, docs: &Docs) {
        for step in 1..=STEPS {
            let (link, which) = (self.random.below(3) as usize, self.random.below(3) as usize);
            let holder = self.locks[which].holder;
            let did = match (self.random.below(40), holder) {
                (0, _) => {
                    docs.elapse(FORGET_AFTER + LONG).await;
                    self.locks.iter_mut().for_each(|lock| lock.holder = None);
                    "all ends".into()
                }
                (1, _) => {
                    docs.elapse(COMMIT_WITHIN).await;
                    "time goes on".into()
                }
                (2..6, None) => self.leave_and_come_back(docs, which).await,
                (_, Some(holder)) => {
                    give_back_of(&mut *self.links[link], which, holder).await;
                    self.locks[which].holder = None;
                    format!("{link} releases {which}")
                }
                (6..11, None) => self.confirm(link, which, step).await,
                (_, None) => {
                    let token = take_of(&mut *self.links[link], which, step).await;
                    self.has(which, step, token.expect("it is free"));
                    format!("{link} takes {which}")
                }
            };
            self.steps.push(did);
        }
    }

    /// Writes a holder whose token is another shard's.
    async fn confirm(&mut self, link: usize, which: usize, step: u64) -> String {
        let greatest = self
            .locks
            .iter()
            .map(|lock| lock.last)
            .max()
            .unwrap_or_default();
        let token = Token::from_number(greatest.get() + self.random.below(3_000) + 1);
        let confirm = Op::Confirm {
            nonce: nonce(step, 1),
            label: Label::new("holder"),
            token,
            tokens: 1,
            lease: LONG,
            install: true,
        };
        let asked = [request(&key(which), confirm)];
        let answers = self.links[link].call(&asked).await.unwrap();
        assert!(
            matches!(answers.replies[..], [Reply::Renewed { .. }]),
            "{:?} {:?}",
            answers.replies,
            self.steps
        );
        // It may have been granted at this shard, too.
        if token > self.locks[which].last {
            self.has(which, step, token);
        } else {
            self.locks[which].holder = Some(step);
        }
        format!("{link} confirms {which}")
    }

    /// The lock is granted and released at another shard.
    async fn leave_and_come_back(&mut self, docs: &Docs, which: usize) -> String {
        let mut control = docs.shard().connect_control(None).await.unwrap();
        let mut step = |mode, above| {
            self.epoch += 1;
            Step {
                incarnation: incarnation(),
                copy: (2, "record".into()),
                map: MapVersion::UNKNOWN,
                epoch: Epoch(self.epoch),
                mode,
                slots: vec![key(which).slot()],
                above,
            }
        };
        let seal = step(Mode::Sealed, Token::default());
        let last = control.step(&seal).await.unwrap().last_token;
        let there = Token::from_number(last.get() + 1);
        let open = step(Mode::Open, there);
        assert_eq!(control.step(&open).await.unwrap().refused, []);
        self.locks[which].last = there;
        format!("{which} leaves and comes back")
    }

    fn has(&mut self, which: usize, step: u64, token: Token) {
        let lock = &mut self.locks[which];
        let steps = &self.steps;
        assert!(token > lock.last, "{token} after {}: {steps:?}", lock.last);
        (lock.last, lock.holder) = (token, Some(step));
    }
}

/// Two connections draw tokens ahead, for a lock each.
#[tokio::test]
async fn no_token_is_granted_twice() {
    let docs = Docs::new().await;
    docs.slow_down().await;
    arm(&*docs.shard(), docs.topology()).await;
    let shard = docs.shard();
    let tokens = async |which: usize| {
        let (mut link, mut tokens) = (connect(&*shard).await, Vec::new());
        for _ in 0..20 {
            let token = take_of(&mut *link, which, which as u64).await;
            tokens.push(token.expect("it is free"));
            give_back_of(&mut *link, which, which as u64).await;
        }
        tokens
    };
    let (mut all, others) = tokio::join!(tokens(1), tokens(2));
    all.extend(others);
    all.sort_unstable();
    assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
}

/// What a connection wrote is no proof of what is there.
async fn others_are_seen(one: &dyn Shard, other: &dyn Shard) {
    let (mut one, mut other) = (connect(one).await, connect(other).await);
    let mut last = Token::default();
    let mut rises = |token: Option<Token>| {
        let token = token.expect("it is free");
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    for _ in 0..3 {
        for _ in 0..3 {
            rises(take(&mut *one, 1).await);
            give_back(&mut *one, 1).await;
        }
        rises(take(&mut *other, 2).await);
        assert_eq!(take(&mut *one, 1).await, None);
        give_back(&mut *other, 2).await;
    }
}

#[tokio::test]
async fn others_are_seen_on_documents() {
    let docs = Docs::new().await;
    arm(&*docs.shard(), docs.topology()).await;
    others_are_seen(&*docs.shard(), &*docs.shard()).await;
}

#[tokio::test]
async fn others_are_seen_on_etcd() {
    let etcd = OnEtcd::new().await;
    arm(&*etcd.shard(), etcd.topology()).await;
    others_are_seen(&*etcd.process(), &*etcd.process()).await;
}

#[tokio::test]
async fn others_are_seen_on_zookeeper() {
    let zookeeper = OnZookeeper::new().await;
    arm(&*zookeeper.shard(), zookeeper.topology()).await;
    others_are_seen(&*zookeeper.process(), &*zookeeper.process()).await;
}

/// Tokens that others drew since the read are not granted again.
async fn a_commit_draws_no_token_twice(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let (first, more) = (Token::new(Epoch(5), 0), 3);
    let token = |count| Token::new(Epoch(5), count);
    let draw = Draw {
        head: Expected::Absent,
        tokens: more,
    };
    let commit = |version, tokens| Commit {
        checks: Vec::new(),
        writes: Vec::new(),
        version,
        tokens,
        not_before_ms: 0,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    };
    let mut one = one.open(None).await.unwrap();
    let mut other = other.open(None).await.unwrap();
    let begin = commit(1, TokenChange::Exactly(first));
    assert!(one.commit(&begin).await.unwrap().is_done());
    let last = one.read(&[], None).await.unwrap().last;
    assert_eq!(last, first);
    let next = |version, after: Token| Commit {
        writes: vec![Write {
            name: Name::Slots(7),
            expected: Expected::Any,
            content: "new".into(),
            ends_ms: None,
        }],
        ..commit(
            version,
            TokenChange::Next {
                after,
                last: token(after.counter() + 1),
            },
        )
    };
    other.read(&[], Some(draw)).await.unwrap();
    let refused = one.commit(&next(2, last)).await.unwrap();
    assert_eq!(refused, Committed::Refused { stale: Vec::new() });
    let found = one.read(&[Name::Slots(7)], None).await.unwrap();
    assert_eq!(
        (&found.documents[..], found.last),
        (&[None][..], token(more))
    );
    let done = one.commit(&next(3, found.last)).await.unwrap();
    assert!(done.is_done());
    let found = other.read(&[], None).await.unwrap();
    assert_eq!(found.last, token(more + 1));
}

#[tokio::test]
async fn a_commit_on_etcd_draws_no_token_twice() {
    use ringfence_conformance::store::Fixture as _;
    let etcd = OnEtcd::bare().await;
    a_commit_draws_no_token_twice(etcd.store(), etcd.store()).await;
}

#[tokio::test]
async fn a_commit_on_zookeeper_draws_no_token_twice() {
    use ringfence_conformance::store::Fixture as _;
    let zookeeper = OnZookeeper::bare().await;
    a_commit_draws_no_token_twice(zookeeper.store(), zookeeper.store()).await;
}
