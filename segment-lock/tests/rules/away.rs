//! A change of the number of segments while the storage of the new ones is away: the others serve.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use ringfence_segment_lock::{
    At, Counter, CounterError, Effect, Manifest, Manifests, Segments, Storage, StorageError,
    VersionedManifest, memory::Memory,
};

use super::*;

/// When the plans of these tests begin, in ms.
const FROM: u64 = NOW + 10;

/// The storage of segments from number `away` on gives no answer.
#[derive(Debug)]
struct Partly {
    memory: Arc<Memory>,
    away: AtomicU32,
}

#[async_trait]
impl Segments for Partly {
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.memory.place(account, taken, more).await
    }

    fn new_account(&self) -> NewAccount {
        NewAccount::default()
    }

    fn now_ms(&self) -> u64 {
        self.memory.now_ms()
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        if at.index < self.away.load(Ordering::Relaxed) {
            return self.memory.call(at, request).await;
        }
        Err(StorageError {
            effect: Effect::None,
            is_retryable: true,
            source: Arc::from(Box::<dyn std::error::Error + Send + Sync>::from("away")),
        })
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let mut answers = Vec::new();
        for (at, request) in requests {
            answers.push(self.call(&at, request).await);
        }
        answers
    }
}

/// An account of two segments, with 100 in the first, whose other segments' storage is away.
struct Scene {
    partly: Arc<Partly>,
    storage: Storage,
}

impl Scene {
    async fn new() -> Self {
        let partly = Arc::new(Partly {
            memory: Arc::new(Memory::new(Box::new(|| NOW))),
            away: AtomicU32::new(2),
        });
        let segments = Arc::clone(&partly) as Arc<dyn Segments>;
        let manifests = Arc::clone(&partly.memory) as Arc<dyn Manifests>;
        let storage = Storage::of(segments, manifests, 1);
        let terms = Terms {
            ids_max: 1000,
            ..TERMS
        };
        let a = Counter::create(storage.clone(), account("a"), terms, 2);
        let a = a.await.unwrap();
        a.deposit(&home(0, NOW), amount(100)).await.unwrap();
        Self { partly, storage }
    }

    /// The account, as another process finds it.
    fn found(&self) -> Counter {
        Counter::open(self.storage.clone(), account("a"))
    }

    async fn read(&self) -> VersionedManifest {
        let read = self.partly.memory.read(&account("a")).await;
        read.unwrap().unwrap()
    }

    /// Plans four segments, as a process does that ends then.
    async fn planned(&self) -> Manifest {
        let VersionedManifest {
            version, manifest, ..
        } = self.read().await;
        let planned = manifest.plan(4, FROM, |_, more| vec![0; more as usize]);
        let planned = planned.unwrap();
        let a = account("a");
        let swapped = self.partly.memory.swap(&a, version, planned).await;
        assert!(swapped.unwrap());
        self.read().await.manifest
    }

    async fn homes(&self) -> Vec<u32> {
        let manifest = self.read().await.manifest;
        let layouts = manifest.layouts().iter();
        layouts.map(|layout| layout.segments).collect()
    }
}

/// A request of that time with that home, by two segments and by four.
fn home(index: u64, time_ms: u64) -> RequestId {
    let mut ids = (0..).map(|name| id(time_ms, &format!("request {name}")));
    ids.find(|id| id.hash(HashKey::default()) % 4 == index)
        .unwrap()
}

fn is_away<T: std::fmt::Debug>(outcome: Result<T, CounterError>) -> bool {
    matches!(outcome, Err(CounterError::Storage(_)))
}

#[tokio::test]
async fn nothing_is_planned_while_a_new_segment_cannot_be_made() {
    let scene = Scene::new().await;
    assert!(is_away(scene.found().resegment(4).await));
    assert_eq!(scene.read().await.manifest.planned(), None);
    scene.partly.away.store(9, Ordering::Relaxed);
    scene.found().resegment(4).await.unwrap();
    assert_eq!(scene.homes().await, [2, 4]);
}

#[tokio::test]
async fn a_plan_that_cannot_be_finished_keeps_nobody_from_serving() {
    let scene = Scene::new().await;
    scene.planned().await;
    let a = scene.found();
    a.deduct(&home(0, NOW + 1), amount(30)).await.unwrap();
    // It borrows.
    a.deduct(&home(1, NOW + 1), amount(30)).await.unwrap();
    assert_eq!(a.balance().await.unwrap().available, 40);
    assert_eq!(scene.found().exact_balance().await.unwrap().available, 40);
    assert_eq!(scene.found().read_manifest().await.unwrap().segments(), 2);
    assert_eq!(scene.found().inspect().await.unwrap().views.len(), 2);
    let mut swept = scene.found().sweep().await.unwrap();
    assert!(is_away(Err::<(), _>(swept.errors.remove(0))));
    assert!(swept.errors.is_empty(), "{swept:?}");
    scene.found().accept().await.unwrap();
}

#[tokio::test]
async fn a_plan_that_cannot_be_finished_is_replaced_by_another() {
    let scene = Scene::new().await;
    scene.planned().await;
    assert!(is_away(scene.found().resegment(4).await));
    assert!(is_away(scene.found().resegment(3).await));
    scene.found().resegment(2).await.unwrap();
    assert_eq!(scene.homes().await, [2, 2]);
    assert_eq!(scene.read().await.manifest.placed(), 2);
    assert_eq!(scene.found().exact_balance().await.unwrap().available, 100);
    scene.partly.away.store(9, Ordering::Relaxed);
    scene.found().resegment(4).await.unwrap();
    assert_eq!(scene.homes().await, [2, 2, 4]);
}

#[tokio::test]
async fn a_plan_that_a_segment_is_prepared_for_is_committed_without_the_new_ones() {
    let scene = Scene::new().await;
    let manifest = scene.planned().await;
    let prepare = Prepare {
        generation: 2,
        base: 1,
        from_ms: FROM,
        closed: false,
        mark_ms: 0,
        manifest: manifest.encode_copy().into(),
    };
    let terms = manifest.terms();
    let create = Create {
        prepare: prepare.clone(),
        terms,
        credit: 0,
        planned_ms: NOW,
    };
    let requests = [
        (2, Request::from(create.clone())),
        (3, create.into()),
        (0, prepare.into()),
    ];
    for (index, request) in requests {
        let at = at("a", index);
        let prepared = scene.partly.memory.call(&at, request).await;
        assert_eq!(prepared.unwrap(), Ok(Reply::Prepared));
    }
    // Its home is prepared, and was by both layouts.
    let new = home(0, FROM);
    scene.found().deduct(&new, amount(30)).await.unwrap();
    assert_eq!(scene.homes().await, [2, 4]);
}
