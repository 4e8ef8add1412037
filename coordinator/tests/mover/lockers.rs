//! Processes that take locks, hold them and give them back, and a book in which they all write.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_coordinator::{
    clock::Clock,
    engine::{Acquire, Engine, Guard, Parts, Sharing, Wait},
    ids::{ClientId, Token},
    name::{Label, Namespace},
    random::Random,
    topology::{Dial, TopologyStore},
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::stage::FOR_EVER;

/// Keys that are held throughout.
const HELD: usize = 48;
/// Keys that processes take from each other.
const WANTED: usize = 24;
/// Processes that do.
const PROCESSES: u128 = 3;

/// Where locks are taken.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) store: Arc<dyn TopologyStore>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long a lock is held that others want, at most.
    pub(crate) hold: Duration,
}

/// The holder of each key, and its last token.
#[derive(Debug, Default)]
struct Book(Mutex<BTreeMap<String, (Option<u128>, Token)>>);

impl Book {
    fn enter(&self, key: &str, process: u128, token: Token) {
        let mut book = self.0.lock();
        let (holder, last) = book.entry(key.into()).or_default();
        assert_eq!(*holder, None, "{key} has two holders");
        assert!(token > *last, "{key}: {token} after {last}");
        (*holder, *last) = (Some(process), token);
    }

    fn leave(&self, key: &str) {
        self.0.lock().get_mut(key).unwrap().0 = None;
    }

    fn grants(&self) -> usize {
        self.0.lock().len()
    }
}

/// Processes at work.
pub(crate) struct Lockers {
    namespace: Namespace,
    held: Vec<Guard>,
    tasks: JoinSet<u64>,
    stop: Arc<AtomicBool>,
    book: Arc<Book>,
    engines: Vec<Engine>,
}

impl Lockers {
    /// Starts processes: each key of some is held by one throughout, others are taken in turn.
    pub(crate) async fn start(ring: &Ring) -> Self {
        Self::start_in(ring, Namespace::default()).await
    }

    /// The same, with keys of `namespace`.
    pub(crate) async fn start_in(ring: &Ring, namespace: Namespace) -> Self {
        let mut engines = Vec::new();
        for process in 1..=PROCESSES {
            engines.push(engine(ring, process).await);
        }
        let book = Arc::new(Book::default());
        let mut held = Vec::new();
        for (nth, key) in Self::held_keys().enumerate() {
            let guard = acquire_in(&engines[nth % engines.len()], &namespace, &key).await;
            book.enter(&key, 0, guard.token());
            held.push(guard);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for (process, engine) in (1..).zip(&engines) {
            for nth in 0..WANTED {
                let worker = Worker {
                    namespace: namespace.clone(),
                    key: format!("wanted/{nth}"),
                    process,
                    engine: engine.clone(),
                    hold_ms: ring.hold.as_millis() as u64,
                    book: book.clone(),
                    stop: stop.clone(),
                    random: Random::seeded(process as u64 * 1000 + nth as u64),
                };
                tasks.spawn(worker.run());
            }
        }
        Self {
            namespace,
            held,
            tasks,
            stop,
            book,
            engines,
        }
    }

    /// The keys that are held throughout.
    pub(crate) fn held_keys() -> impl Iterator<Item = String> {
        (0..HELD).map(|nth| format!("held/{nth}"))
    }

    /// No lock is lost that is held throughout.
    pub(crate) fn are_held(&self) {
        for guard in &self.held {
            assert!(guard.is_held(), "a lock was lost");
        }
    }

    /// Stops. No lock was lost, no key had two holders, and every waiter got its lock.
    pub(crate) async fn stop(mut self) {
        self.are_held();
        self.stop.store(true, Relaxed);
        while let Some(turns) = timeout(FOR_EVER, self.tasks.join_next())
            .await
            .expect("an end")
        {
            assert!(turns.unwrap() > 0, "never had its turn");
        }
        assert_eq!(self.book.grants(), HELD + WANTED);
        for guard in self.held {
            guard.release().await;
        }
        // Nothing is left over: every carried lock can be acquired at once, at its present shard.
        for (nth, key) in Self::held_keys().enumerate() {
            let engine = &self.engines[(nth + 1) % self.engines.len()];
            let acquire = acquire_in(engine, &self.namespace, &key);
            let guard = timeout(Duration::from_secs(60), acquire).await;
            self.book.leave(&key);
            self.book.enter(&key, 1, guard.expect("it is free").token());
        }
    }
}

/// Takes one key, again and again.
struct Worker {
    namespace: Namespace,
    key: String,
    process: u128,
    engine: Engine,
    hold_ms: u64,
    book: Arc<Book>,
    stop: Arc<AtomicBool>,
    random: Random,
}

impl Worker {
    /// Until it is told to stop; answers how many times it had the key.
    async fn run(self) -> u64 {
        let mut turns = 0;
        while !self.stop.load(Relaxed) || turns == 0 {
            let guard = acquire_in(&self.engine, &self.namespace, &self.key).await;
            self.book.enter(&self.key, self.process, guard.token());
            sleep(Duration::from_millis(self.random.below(self.hold_ms))).await;
            assert!(guard.is_held(), "{} was lost", self.key);
            self.book.leave(&self.key);
            guard.release().await;
            turns += 1;
            sleep(Duration::from_millis(self.random.below(self.hold_ms / 6))).await;
        }
        turns
    }
}

/// One more process.
pub(crate) async fn engine(ring: &Ring, process: u128) -> Engine {
    Engine::start(Parts {
        clock: ring.clock.clone(),
        random: Arc::new(Random::seeded(process as u64)),
        client: ClientId(process),
        label: Label::new(&format!("process {process}")),
        topology: ring.store.load().await.unwrap(),
        store: ring.store.clone(),
        dial: ring.dial.clone(),
        sharing: Sharing::default(),
        servers_are_new: true,
        shared: false,
        coordinators: None,
    })
    .await
}

/// The lock called `key`, however long it takes.
pub(crate) async fn acquire(engine: &Engine, key: &str) -> Guard {
    acquire_in(engine, &Namespace::default(), key).await
}

/// The same of `namespace`.
async fn acquire_in(engine: &Engine, namespace: &Namespace, key: &str) -> Guard {
    let ask = Acquire {
        namespace,
        key: key.as_bytes(),
        lease: None,
        hold_for: None,
        wait: Wait::Forever,
        preferred: false,
        tokens: 1,
        owner: None,
        label: None,
        observer: None,
    };
    let granted = timeout(FOR_EVER, engine.acquire(ask)).await;
    granted.expect("a turn").unwrap()
}
