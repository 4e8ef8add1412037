//! Callers that stop half way, just where it matters.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_segment_lock::{
    At, Counter, CounterError, Effect, Manifest, Manifests, Segments, Storage, StorageError,
    VersionedManifest,
    memory::Memory,
    segment::{Collect, Freeze, Purge, Refusal, Thaw},
};
use tokio::time::timeout;

use super::*;

/// Never applies one kind of request: whoever sends it is as good as crashed.
pub(super) struct CrashesAt {
    pub(super) memory: Arc<Memory>,
    pub(super) at: fn(&Request) -> bool,
}

fn crashed() -> StorageError {
    StorageError {
        effect: Effect::Unknown,
        is_retryable: true,
        source: Arc::from(Box::<dyn std::error::Error + Send + Sync>::from("crashed")),
    }
}

impl fmt::Debug for CrashesAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashesAt").finish_non_exhaustive()
    }
}

#[async_trait]
impl Segments for CrashesAt {
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
        match (self.at)(&request) {
            true => Err(crashed()),
            false => self.memory.call(at, request).await,
        }
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let mut answers = Vec::new();
        for (at, request) in requests {
            answers.push(self.call(&at, request).await);
        }
        answers
    }
}

/// A memory, its clock in ms, and a storage of it.
pub(super) fn memory() -> (Arc<Memory>, Arc<AtomicU64>, Storage) {
    let clock = Arc::new(AtomicU64::new(NOW));
    let told = Arc::clone(&clock);
    let memory = Arc::new(Memory::new(Box::new(move || told.load(Ordering::Relaxed))));
    let storage = Storage::new(Arc::clone(&memory), 1);
    (memory, clock, storage)
}

async fn counter(storage: &Storage, name: &str) -> Counter {
    Counter::create(storage.clone(), account(name), TERMS, 1)
        .await
        .unwrap()
}

pub(super) async fn available(counter: &Counter) -> i128 {
    counter.exact_balance().await.unwrap().available
}

async fn transfer_that_crashes_at(
    memory: &Arc<Memory>,
    at: fn(&Request) -> bool,
    b: &Counter,
) -> CounterError {
    let segments = Arc::new(CrashesAt {
        memory: Arc::clone(memory),
        at,
    });
    let crashing = Storage::of(segments, Arc::clone(memory) as Arc<dyn Manifests>, 2);
    let [from, to] = [account("a"), b.account().clone()];
    let [from, to] = [from, to].map(|account| Counter::open(crashing.clone(), account));
    from.transfer(&id(NOW, "over"), amount(7), &to)
        .await
        .unwrap_err()
}

pub(super) async fn purge(memory: &Memory, counter: &Counter) {
    let at = at(counter.account().as_str(), 0);
    memory.call(&at, Purge.into()).await.unwrap().unwrap();
}

/// Freezes the only segment, or ends that; in the name of somebody else.
async fn freeze(memory: &Memory, frozen: bool) {
    let at = at("a", 0);
    let caller = Caller {
        process: 9,
        call: 1,
    };
    let freeze = Freeze {
        caller,
        for_ms: 1000,
    };
    let request = match frozen {
        true => Collect {
            generation: 9,
            freeze: Some(freeze),
        }
        .into(),
        false => Request::from(Thaw { caller }),
    };
    memory.call(&at, request).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_frozen_account_is_waited_for_and_not_for_ever() {
    let (memory, _clock, storage) = memory();
    let a = counter(&storage, "a").await;
    let (patient, tired) = (id(NOW, "patient"), id(NOW, "tired"));
    freeze(&memory, true).await;
    let thaw = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        freeze(&memory, false).await;
    };
    let (deposited, ()) = tokio::join!(a.deposit(&patient, amount(1)), thaw);
    deposited.unwrap();

    // Whoever froze it is gone, and its clock stands still.
    freeze(&memory, true).await;
    let refused = timeout(Duration::from_secs(10), a.deposit(&tired, amount(1))).await;
    let refused = refused.expect("it gives up");
    let contended = matches!(refused, Err(CounterError::Contended { .. }));
    assert!(contended, "{refused:?}");
    freeze(&memory, false).await;
    assert_eq!(available(&a).await, 1);
}

#[tokio::test]
async fn a_transfer_is_finished_by_any_caller_however_late() {
    let crashes: [fn(&Request) -> bool; 3] = [
        |request| matches!(request, Request::Credit(_)),
        |request| matches!(request, Request::FinishTransfer(_)),
        |request| matches!(request, Request::Forget(_) | Request::FinishTransfer(_)),
    ];
    for at in crashes {
        let (memory, clock, storage) = memory();
        let (a, b) = (counter(&storage, "a").await, counter(&storage, "b").await);
        a.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
        let error = transfer_that_crashes_at(&memory, at, &b).await;
        assert!(
            matches!(error, CounterError::TransferUnfinished { .. }),
            "{error}"
        );
        assert_eq!(
            (error.effect(), error.is_retryable()),
            (Effect::Unknown, true)
        );

        clock.fetch_add(5000, Ordering::Relaxed);
        purge(&memory, &a).await;
        purge(&memory, &b).await;
        let swept = a.sweep().await.unwrap();
        assert_eq!(swept.delivered + swept.returned, 1, "{swept:?}");
        assert_eq!(available(&a).await + available(&b).await, 10);
        b.sweep().await.unwrap();
        a.sweep().await.unwrap();
        let old = a
            .transfer(&id(NOW, "over"), amount(7), &b)
            .await
            .unwrap_err();
        assert!(
            matches!(old, CounterError::Refused(Refusal::TooOld { .. })),
            "{old}"
        );
        assert_eq!(available(&a).await + available(&b).await, 10);
    }
}

#[tokio::test]
async fn a_destination_finishes_what_it_has_been_sent() {
    let (memory, _, storage) = memory();
    let (a, b) = (counter(&storage, "a").await, counter(&storage, "b").await);
    a.deposit(&id(NOW, "in"), amount(10)).await.unwrap();
    transfer_that_crashes_at(
        &memory,
        |request| matches!(request, Request::FinishTransfer(_)),
        &b,
    )
    .await;
    assert_eq!(b.sweep().await.unwrap().delivered, 1);
    assert_eq!((available(&a).await, available(&b).await), (3, 7));
    assert_eq!(a.exact_balance().await.unwrap().held, 0);
}

#[tokio::test]
async fn a_transfer_of_an_id_whose_home_is_elsewhere_is_finished_where_it_is() {
    let (memory, _, storage) = memory();
    let b = counter(&storage, "b").await;
    let a = Counter::create(storage.clone(), account("a"), TERMS, 2)
        .await
        .unwrap();
    let of_segment = |index| {
        let mut names = (0..20).map(|name| name.to_string());
        let here = |name: &String| id(NOW, name).hash(HashKey::default()) % 2 == index;
        names.find(here).unwrap()
    };
    a.deposit(&id(NOW, &of_segment(1)), amount(10))
        .await
        .unwrap();
    // A caller that goes by a layout that the segment forgot.
    let at = at("a", 1);
    let sent = op(&of_segment(0), transfer(7, "b"));
    memory.call(&at, sent.into()).await.unwrap().unwrap();

    let swept = a.sweep().await.unwrap();
    assert_eq!((swept.delivered, swept.errors.len()), (1, 0), "{swept:?}");
    assert_eq!((available(&a).await, available(&b).await), (3, 7));
    assert_eq!(a.exact_balance().await.unwrap().held, 0);
    assert_eq!(a.sweep().await.unwrap().delivered, 0);
}

#[tokio::test]
async fn a_plan_that_is_found_too_late_begins_later() {
    let (memory, _, storage) = memory();
    let a = counter(&storage, "a").await;
    let ids = (0..20)
        .map(|name| id(NOW, &name.to_string()))
        .filter(|id| id.hash(HashKey::default()) % 2 == 1);
    let id = ids.into_iter().next().unwrap();
    a.deposit(&id, amount(10)).await.unwrap();

    // Who made the plan crashed, and what it homes elsewhere was decided since.
    let found: VersionedManifest = memory.read(a.account()).await.unwrap().unwrap();
    let planned = found
        .manifest
        .plan(2, NOW - 5, |_, more| vec![0; more as usize])
        .unwrap();
    assert!(
        memory
            .swap(a.account(), found.version, planned)
            .await
            .unwrap()
    );

    let other = Counter::open(storage, account("a"));
    other.read_manifest().await.unwrap();
    other.deposit(&id, amount(10)).await.unwrap();
    assert_eq!(available(&other).await, 10);
    let manifest: Manifest = memory.read(a.account()).await.unwrap().unwrap().manifest;
    let newest = manifest.layouts().last().unwrap();
    assert!(newest.segments == 2 && newest.from_ms > NOW, "{newest:?}");
}

/// Answers the first refusal with "changed", so that the next round freezes; the second never.
#[derive(Debug)]
struct Disturbs {
    memory: Arc<Memory>,
    refusals: AtomicU64,
    fails: bool,
}

#[async_trait]
impl Segments for Disturbs {
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
        if let Request::Refuse(_) = request {
            match self.refusals.fetch_add(1, Ordering::Relaxed) {
                0 => return Ok(Ok(Reply::Changed)),
                _ if self.fails => return Err(crashed()),
                _ => std::future::pending().await,
            }
        }
        self.memory.call(at, request).await
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let mut answers = Vec::new();
        for (at, request) in requests {
            answers.push(self.call(&at, request).await);
        }
        answers
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_or_is_dropped_leaves_nothing_frozen() {
    for fails in [true, false] {
        let (memory, _, storage) = memory();
        Counter::create(storage, account("a"), TERMS, 3)
            .await
            .unwrap();
        let segments = Arc::new(Disturbs {
            memory: Arc::clone(&memory),
            refusals: AtomicU64::new(0),
            fails,
        });
        let disturbed = Storage::of(segments, Arc::clone(&memory) as Arc<dyn Manifests>, 2);
        let counter = Counter::open(disturbed, account("a"));
        let frozen = || {
            let is_frozen = |segment: &Segment| segment.frozen.is_some();
            memory.with_segments(|segments| segments.values().any(is_frozen))
        };
        let id = id(NOW, "short");
        let deduct = counter.deduct(&id, amount(1));
        let ended = timeout(Duration::from_secs(1), async {
            tokio::pin!(deduct);
            tokio::select! {
                ended = &mut deduct => ended.map(drop).map_err(drop),
                () = tokio::time::sleep(Duration::from_millis(100)) => {
                    assert!(frozen(), "it waits for an answer");
                    Ok(())
                }
            }
        });
        assert_eq!(ended.await.unwrap().is_err(), fails);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!frozen());
    }
}

/// A person is needed for the segment, and the plan needs the segment.
#[tokio::test]
async fn a_doubtful_segment_is_shown_and_accepted_though_a_plan_waits_for_it() {
    let (memory, _, storage) = memory();
    let terms = Terms {
        durability: Durability::Disk,
        ..TERMS
    };
    let safe = Counter::create(storage.clone(), account("safe"), terms, 1)
        .await
        .unwrap();
    let manifests: &dyn Manifests = &*memory;
    let found = manifests.read(safe.account()).await.unwrap().unwrap();
    let planned = found
        .manifest
        .plan(2, NOW + 10, |_, more| vec![0; more as usize])
        .unwrap();
    assert!(
        manifests
            .swap(safe.account(), found.version, planned)
            .await
            .unwrap()
    );
    memory.with_segments(|segments| segments.values_mut().for_each(Segment::came_back));

    let refused = safe.balance().await.unwrap_err();
    assert!(
        matches!(refused, CounterError::Refused(Refusal::Doubtful)),
        "{refused:?}"
    );
    let views = safe.inspect().await.unwrap().views;
    assert!(views.len() == 1 && views[&0].doubtful, "{views:?}");
    safe.accept().await.unwrap();
    assert_eq!(available(&safe).await, 0);
    assert_eq!(safe.read_manifest().await.unwrap().segments(), 2);
}
