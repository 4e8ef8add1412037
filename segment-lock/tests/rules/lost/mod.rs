//! Segments that are lost with their storage: said, done without, and replaced; nothing in them comes back.

mod loans;
mod planned;
mod transfers;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use ringfence_segment_lock::{
    Account, Counter, CounterError, Effect, Inspection, Manifest, Manifests, Segments, Storage,
    StorageError, VersionedManifest,
    memory::Memory,
    segment::{
        Accept, CreditId, Find, FinishTransfer, GiveCredit, Inspect, Land, Lend, Outcome, ReadCopy,
        Refusal, Replace,
    },
};

use super::*;

/// When the replacements are made, in ms: later than every request of before.
const LATER: u64 = NOW + 1000;

/// An account of two segments, of which one is about to be lost.
#[derive(Debug)]
struct Scene {
    memory: Arc<Memory>,
    clock: Arc<AtomicU64>,
    storage: Storage,
    counter: Counter,
}

impl Scene {
    /// 100 in the first segment, 10 in the second.
    async fn new(durability: Durability) -> Self {
        let clock = Arc::new(AtomicU64::new(NOW));
        let told = Arc::clone(&clock);
        let memory = Arc::new(Memory::new(Box::new(move || told.load(Ordering::Relaxed))));
        let storage = Storage::new(Arc::clone(&memory), 1);
        let terms = Terms {
            ids_max: 1000,
            durability,
            ..TERMS
        };
        let counter = Counter::create(storage.clone(), account("a"), terms, 2);
        let counter = counter.await.unwrap();
        for (index, money) in [(0, 100), (1, 10)] {
            let id = home(index, NOW, "in");
            counter.deposit(&id, amount(money)).await.unwrap();
        }
        Self {
            memory,
            clock,
            storage,
            counter,
        }
    }

    /// The storage of a segment comes back with nothing; later.
    fn lose(&self, index: u32) {
        self.memory
            .with_segments(|segments| segments.remove(&at("a", index)))
            .unwrap();
        self.clock.store(LATER, Ordering::Relaxed);
    }

    /// Requests of now are not too old any more.
    fn skew_passes(&self) {
        self.clock.fetch_add(TERMS.skew_ms + 1, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    async fn tell(&self, index: u32, request: impl Into<Request>) -> Answer {
        let at = at("a", index);
        self.memory.call(&at, request.into()).await.unwrap()
    }

    fn segment(&self, index: u32) -> Segment {
        self.memory
            .with_segments(|segments| segments[&at("a", index)].clone())
    }

    async fn available(&self) -> i128 {
        self.counter.exact_balance().await.unwrap().available
    }
}

/// A request of that time whose home is that of two segments.
fn home(index: u64, time_ms: u64, name: &str) -> RequestId {
    let mut ids = (0..).map(|number| id(time_ms, &format!("{name} {number}")));
    ids.find(|id| id.hash(HashKey::default()) % 2 == index)
        .unwrap()
}

/// Which segments the error says are lost, and what was in each.
#[track_caller]
fn lost_in<T: std::fmt::Debug>(outcome: Result<T, CounterError>) -> Vec<(u32, Option<i64>)> {
    match outcome.unwrap_err() {
        CounterError::Lost { segments, .. } => {
            let lost = segments.0.iter();
            lost.map(|lost| (lost.index, lost.last_seen.map(|seen| seen.owned)))
                .collect()
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_says_which_segments_are_lost_and_what_was_in_them() {
    let scene = Scene::new(Durability::Memory).await;
    scene.lose(1);
    let a = &scene.counter;
    let request = home(1, LATER, "new");
    assert_eq!(lost_in(a.deposit(&request, amount(1)).await), [(1, None)]);

    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    a.sweep().await.unwrap();
    scene.lose(1);
    let said = [(1, Some(10))];
    assert_eq!(lost_in(a.deposit(&request, amount(1)).await), said);
    assert_eq!(lost_in(a.confirm(&request).await), said);
    assert_eq!(lost_in(a.close().await), said);
    let again = Counter::create(scene.storage.clone(), account("a"), terms_of(a).await, 2);
    assert_eq!(lost_in(again.await), said);
    let swept = a.sweep().await.unwrap();
    assert_eq!(lost_in(Err::<(), _>(swept.errors[0].clone())), said);
    let Inspection { views, lost, .. } = a.inspect().await.unwrap();
    assert_eq!(views.keys().copied().collect::<Vec<_>>(), [0]);
    assert_eq!(lost.0[0].last_seen.unwrap().at_ms, NOW);
    let error = a.deduct(&request, amount(1)).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("segment 1 (10 in it at"), "{told}");
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(error.effect_of_call(), Effect::None);
}

async fn terms_of(counter: &Counter) -> Terms {
    counter.read_manifest().await.unwrap().terms()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_planned_that_a_lost_segment_could_not_be_prepared_for() {
    let scene = Scene::new(Durability::Memory).await;
    scene.lose(1);
    assert_eq!(lost_in(scene.counter.resegment(3).await), [(1, None)]);
    // The account is not left with a plan that nobody can finish.
    let other = Counter::open(scene.storage.clone(), account("a"));
    assert_eq!(other.balance().await.unwrap().available, 100);
    scene.counter.accept().await.unwrap();
    scene.counter.resegment(3).await.unwrap();
    assert_eq!(scene.available().await, 100);
}

#[tokio::test(start_paused = true)]
async fn without_durability_the_others_serve_and_the_whole_is_never_called_short() {
    let scene = Scene::new(Durability::Memory).await;
    scene.lose(0);
    let a = &scene.counter;
    let balance = a.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.lost), (10, 1));
    a.deduct(&home(1, LATER, "some"), amount(4)).await.unwrap();
    let all = home(1, LATER, "all");
    assert_eq!(lost_in(a.deduct(&all, amount(7)).await), [(0, None)]);
    assert_eq!(a.balance().await.unwrap().available, 6);
    a.accept().await.unwrap();
    let short = a.deduct(&all, amount(7)).await;
    assert!(matches!(short, Err(CounterError::Insufficient)));
}

#[tokio::test(start_paused = true)]
async fn the_others_lend_while_one_is_lost() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    a.resegment(3).await.unwrap();
    scene.lose(1);
    let from_ms = a.read_manifest().await.unwrap().layouts()[1].from_ms;
    scene.clock.store(from_ms, Ordering::Relaxed);
    let mut ids = (0..).map(|number| id(from_ms, &number.to_string()));
    let third = ids.find(|id| id.hash(HashKey::default()) % 3 == 2).unwrap();
    a.deduct(&third, amount(60)).await.unwrap();
    assert_eq!(a.balance().await.unwrap().available, 40);
}

#[tokio::test(start_paused = true)]
async fn with_durability_no_money_moves_between_segments_before_the_loss_is_accepted() {
    let scene = Scene::new(Durability::Disk).await;
    scene.lose(0);
    let a = &scene.counter;
    // Its home has the money, and needs no other.
    a.deduct(&home(1, LATER, "some"), amount(4)).await.unwrap();
    let more = a.deduct(&home(1, LATER, "more"), amount(7)).await;
    assert_eq!(lost_in(more), [(0, None)]);
    assert_eq!(lost_in(a.balance().await), [(0, None)]);
    assert_eq!(lost_in(a.exact_balance().await), [(0, None)]);
    a.accept().await.unwrap();
    let balance = a.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.losses), (6, 1));
}

#[tokio::test(start_paused = true)]
async fn an_accepted_loss_is_counted_and_the_account_is_whole_again() {
    for durability in [Durability::Memory, Durability::Disk] {
        let scene = Scene::new(durability).await;
        let a = &scene.counter;
        let old = home(1, NOW, "before");
        a.deduct(&old, amount(1)).await.unwrap();
        a.sweep().await.unwrap();
        for losses in 1..3 {
            let available = a.exact_balance().await.unwrap().available;
            scene.lose(1);
            let before = a.accept().await.unwrap();
            assert_eq!(before.lost.0[0].index, 1);
            let balance = a.exact_balance().await.unwrap();
            assert_eq!((balance.losses, balance.lost), (losses, 0));
            assert!(balance.available <= available, "{balance:?}");
            // It may have been decided in the lost segment: it was.
            let repeated = a.deduct(&old, amount(1)).await;
            let too_old = matches!(repeated, Err(CounterError::Refused(Refusal::TooOld { .. })));
            assert!(too_old, "{repeated:?}");
            scene.skew_passes();
            let new = home(1, scene.now(), "new");
            a.deposit(&new, amount(5)).await.unwrap();
            // All of it can be taken, wherever it is.
            let all = home(1, scene.now(), "all");
            let all_money = i64::try_from(scene.available().await).unwrap();
            a.deduct(&all, amount(all_money)).await.unwrap();
            assert_eq!(scene.available().await, 0);
            a.deposit(&home(0, scene.now(), "again"), amount(50))
                .await
                .unwrap();
            a.accept().await.unwrap();
            assert_eq!(a.exact_balance().await.unwrap().losses, losses);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_loan_that_the_lost_segment_received_does_not_arrive_again() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    // The second borrows from the first, lands that, and spends it.
    a.deduct(&home(1, NOW, "borrows"), amount(30))
        .await
        .unwrap();
    let lender = scene.memory.with_segments(|s| s[&at("a", 0)].clone());
    let last = lender.out[&1];
    assert!(last.amount > 0);
    scene.lose(1);
    a.accept().await.unwrap();
    assert_eq!(scene.available().await, lender.value.into());
    let late = Land {
        loan: loan(0, last.seq, last.amount),
        caller: OTHER,
    };
    assert_eq!(scene.tell(1, late).await, Ok(Reply::Stale));
    assert_eq!(scene.available().await, lender.value.into());
    // The next one does.
    scene.skew_passes();
    let all = home(1, scene.now(), "all");
    a.deduct(&all, amount(lender.value)).await.unwrap();
    assert_eq!(scene.available().await, 0);
}

#[tokio::test(start_paused = true)]
async fn segments_that_are_lost_together_lend_to_each_other_and_land_nothing_of_before() {
    let scene = Scene::new(Durability::Memory).await;
    let a = &scene.counter;
    a.deduct(&home(1, NOW, "borrows"), amount(30))
        .await
        .unwrap();
    scene.lose(0);
    scene.lose(1);
    assert_eq!(a.accept().await.unwrap().lost.0.len(), 2);
    for seq in 1..3 {
        let lend = Lend {
            to: 1,
            landed: seq,
            want: amount(5),
            caller: OTHER,
        };
        let land = Land {
            loan: loan(0, seq, 20),
            caller: OTHER,
        };
        assert_eq!(scene.tell(0, lend).await, Ok(Reply::Nothing));
        assert_eq!(scene.tell(1, land).await, Ok(Reply::Stale));
    }
    assert_eq!(scene.available().await, 0);
    scene.skew_passes();
    for (from, to) in [(0, 1), (1, 0)] {
        let now = scene.now();
        let id = home(from, now, "in");
        a.deposit(&id, amount(10)).await.unwrap();
        a.deduct(&home(to, now, "out"), amount(10)).await.unwrap();
        assert_eq!(scene.available().await, 0);
        scene.clock.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_whose_manifest_is_lost_with_a_segment_is_found_and_its_loss_is_said() {
    let scene = Scene::new(Durability::Memory).await;
    let terms = terms_of(&scene.counter).await;
    scene.lose(1);
    let storage = scene.without_manifests();
    let created = Counter::create(storage.clone(), account("a"), terms, 2);
    assert_eq!(lost_in(created.await), [(1, None)]);
    let found = Counter::open(storage, account("a"));
    found.accept().await.unwrap();
    let balance = found.exact_balance().await.unwrap();
    assert_eq!((balance.available, balance.losses), (100, 1));
}

/// Manifests that are all lost, and their copies.
#[derive(Debug)]
struct Copied {
    manifests: Memory,
    copies: Arc<Memory>,
}

#[async_trait]
impl Manifests for Copied {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest>, StorageError> {
        if let Some(found) = self.manifests.read(name).await? {
            return Ok(Some(found));
        }
        let copy: Option<VersionedManifest> = self.copies.read(name).await?;
        Ok(copy.map(|copy| VersionedManifest {
            version: 0,
            in_doubt: true,
            ..copy
        }))
    }

    async fn swap(
        &self,
        name: &Account,
        expected: u64,
        manifest: Manifest,
    ) -> Result<bool, StorageError> {
        self.manifests.swap(name, expected, manifest).await
    }
}

impl Scene {
    /// The same segments, beside manifests of which the copies are left.
    fn without_manifests(&self) -> Storage {
        let manifests = Arc::new(Copied {
            manifests: Memory::new(Box::new(|| LATER)),
            copies: Arc::clone(&self.memory),
        });
        Storage::of(Arc::clone(&self.memory) as Arc<dyn Segments>, manifests, 3)
    }
}

/// Somebody who acts before each request of another caller.
#[async_trait]
trait Acts: std::fmt::Debug + Send + Sync + 'static {
    fn scene(&self) -> &Scene;
    async fn acts_before(&self, at: &At, request: &Request);
}

/// The segments of a scene, as that other caller uses them: one request after the other.
#[derive(Debug)]
struct Beside<A>(Arc<A>);

/// The account, as that other caller uses it.
fn beside<A: Acts>(acts: &Arc<A>) -> Counter {
    let segments = Arc::new(Beside(Arc::clone(acts)));
    let manifests = Arc::clone(&acts.scene().memory);
    Counter::open(Storage::of(segments, manifests, 2), account("a"))
}

#[async_trait]
impl<A: Acts> Segments for Beside<A> {
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.0.scene().memory.place(account, taken, more).await
    }

    fn new_account(&self) -> NewAccount {
        NewAccount::default()
    }

    fn now_ms(&self) -> u64 {
        self.0.scene().memory.now_ms()
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        self.0.acts_before(at, &request).await;
        self.0.scene().memory.call(at, request).await
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let mut answers = Vec::new();
        for (at, request) in requests {
            answers.push(self.call(&at, request).await);
        }
        answers
    }
}

fn prepare(generation: u64, from_ms: u64) -> Prepare {
    Prepare {
        generation,
        base: generation,
        from_ms,
        closed: false,
        mark_ms: 0,
        manifest: "newer".into(),
    }
}

#[test]
fn a_replacement_is_in_doubt_until_it_is_accepted_as_it_was_read() {
    let replace = Replace {
        create: Create {
            prepare: prepare(2, 0),
            terms: TERMS,
            credit: 0,
            planned_ms: NOW,
        },
        losses: 2,
        at_ms: NOW,
    };
    let request = Request::from(replace);
    let mut replacement = Segment::made_by(&request, NOW).unwrap();
    assert_eq!(replacement.value, 0);
    let view = replacement.apply(&Inspect.into(), NOW);
    nothing(&mut replacement, request, view);
    let land = |seq| Land {
        loan: loan(3, seq, 1),
        caller: OTHER,
    };
    nothing(&mut replacement, land(9), Err(Refusal::Doubtful));
    let accept = |version| Accept {
        version,
        others: [(3, 5)].into(),
        in_force: prepare(2, 0),
        at_ms: NOW,
    };
    let version = replacement.version;
    for other in [version - 1, version + 1] {
        nothing(&mut replacement, accept(other), Ok(Reply::Stale));
    }
    replacement.apply(&accept(version).into(), NOW).unwrap();
    assert_eq!((replacement.losses, replacement.doubtful), (3, false));
    assert_eq!(replacement.mark_ms, NOW + TERMS.skew_ms);
    nothing(&mut replacement, land(5), Ok(Reply::Stale));
    assert_eq!(replacement.land(&land(6), NOW), Ok(Reply::Landed));
    // What is said of the others later changes nothing.
    let view = replacement.apply(&Inspect.into(), NOW);
    nothing(&mut replacement, accept(version), view);
}

#[test]
fn an_accepted_segment_goes_by_the_layout_in_force_and_its_mark_is_at_now() {
    let accept = Accept {
        version: 0,
        others: [(1, 9)].into(),
        in_force: prepare(2, NOW - 10),
        at_ms: NOW,
    };
    let mut older = segment(10);
    older.doubtful = true;
    older.apply(&accept.clone().into(), NOW).unwrap();
    assert_eq!(
        (older.generation, older.base, older.cut_ms),
        (2, 2, NOW - 10)
    );
    assert_eq!((older.losses, older.doubtful), (1, false));
    assert!(older.inn.is_empty());
    let copied = Reply::Copied {
        manifest: "newer".into(),
        closed: false,
    };
    nothing(&mut older, ReadCopy, Ok(copied));
    // It may have decided that before.
    let mark_ms = NOW + TERMS.skew_ms;
    let decided = Op {
        generation: 2,
        ..op("decided", deduct(1))
    };
    nothing(&mut older, decided, Err(Refusal::TooOld { mark_ms }));
    // By the older layout, it would be at home here.
    let stale = op("stale", deduct(1));
    let layout = Err(Refusal::Layout { generation: 2 });
    nothing(&mut older, stale, layout);

    let mut as_new = segment(10);
    let view = as_new.apply(&Inspect.into(), NOW);
    let accept = Accept {
        version: 7,
        others: [(1, 9)].into(),
        in_force: prepare(1, 0),
        at_ms: NOW,
    };
    nothing(&mut as_new, accept, view);
}
