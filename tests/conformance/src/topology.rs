//! The requirements on every [`TopologyStore`]. One function per property; run them all with
//! [`topology_conformance!`](crate::topology_conformance).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::time::timeout;

use ringfence_coordinator::{
    ids::{ClientId, Incarnation},
    topology::{Swap, Topology, TopologyError, TopologyStore},
};

/// The limit of every wait in these tests.
const SOON: Duration = Duration::from_secs(10);

/// The number of competing swaps.
const RACERS: u64 = 8;

/// A store to be tested. One value serves one test and shares nothing with any other.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The record in force, as it was founded.
    fn founded(&self) -> Arc<Topology>;

    /// Opens the store, as a separate process would.
    async fn open(&self) -> Arc<dyn TopologyStore>;
}

/// Creates one test per property. The argument is a future of a
/// [`Fixture`](crate::topology::Fixture), which lives as long as its test.
///
/// # Examples
///
/// ```ignore
/// ringfence_conformance::topology_conformance!(async { MyFixture::new().await });
/// ```
#[macro_export]
macro_rules! topology_conformance {
    ($make:expr) => {
        $crate::topology_conformance!(@each $make;
            a_load_finds_the_founded_record,
            a_swap_that_is_done_is_seen_by_all,
            a_swap_on_an_old_version_finds_the_record_and_changes_nothing,
            a_swap_repeated_after_it_was_done_finds_its_own_record,
            of_concurrent_swaps_one_is_done,
            a_record_of_an_older_incarnation_is_refused,
            a_later_incarnation_comes_after_every_version,
            a_watch_wakes_with_the_newer_record,
            a_watch_answers_at_once_with_a_newer_record,
            a_watch_does_not_wake_for_a_known_record,
        );
    };
    (@each $make:expr; $($property:ident),+ $(,)?) => {$(
        #[tokio::test]
        async fn $property() {
            let fixture = $make.await;
            $crate::topology::$property(&fixture).await;
        }
    )+};
}

/// The founding took effect.
pub async fn a_load_finds_the_founded_record(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    assert_eq!(load(&*store).await, *fixture.founded());
}

/// A swap takes effect, here and for every other process.
pub async fn a_swap_that_is_done_is_seen_by_all(fixture: &dyn Fixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (founded, next) = (fixture.founded(), successor(&fixture.founded(), 1));
    load(&*other).await;
    assert_done(&store.swap(founded.version(), &next).await);
    assert_eq!(load(&*store).await, next);
    assert_eq!(load(&*other).await, next);
}

/// Compare, then swap.
pub async fn a_swap_on_an_old_version_finds_the_record_and_changes_nothing(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let founded = fixture.founded();
    let second = successor(&founded, 1);
    assert_done(&store.swap(founded.version(), &second).await);
    let swap = store.swap(founded.version(), &successor(&founded, 2)).await;
    assert_newer(&swap, &second);
    assert_eq!(load(&*store).await, second);
}

/// A swap without an answer may be repeated: the answer shows that it was done.
pub async fn a_swap_repeated_after_it_was_done_finds_its_own_record(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let (founded, next) = (fixture.founded(), successor(&fixture.founded(), 1));
    assert_done(&store.swap(founded.version(), &next).await);
    assert_newer(&store.swap(founded.version(), &next).await, &next);
}

/// Two swaps never both succeed against the same record.
pub async fn of_concurrent_swaps_one_is_done(fixture: &dyn Fixture) {
    let founded = fixture.founded();
    let racers = (1..=RACERS).map(async |racer| {
        let store = fixture.open().await;
        let next = successor(&founded, racer);
        (store.swap(founded.version(), &next).await, next)
    });
    let raced = join_all(racers).await;
    let done =
        |(swap, _): &&(Result<Swap, TopologyError>, Topology)| matches!(swap, Ok(Swap::Done));
    let won: Vec<_> = raced.iter().filter(done).map(|(_, next)| next).collect();
    let [won] = won[..] else {
        panic!("one is done: {raced:?}")
    };
    for (swap, _) in raced.iter().filter(|raced| !done(raced)) {
        assert_newer(swap, won);
    }
    assert_eq!(load(&*fixture.open().await).await, *won);
}

/// A process that was overtaken by a recovery comes too late, with any version.
pub async fn a_record_of_an_older_incarnation_is_refused(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let founded = fixture.founded();
    let recovered = incarnated(&founded, 1);
    assert_done(&store.swap(founded.version(), &recovered).await);

    let mut older = successor(&founded, 1);
    older.version = recovered.version + 5;
    assert_newer(&store.swap(founded.version(), &older).await, &recovered);
    let refused = store.swap(recovered.version(), &older).await;
    assert!(
        matches!(refused, Err(TopologyError::Malformed(_))),
        "{refused:?}"
    );
    assert_eq!(load(&*store).await, recovered);
}

/// Records are ordered by their incarnations first.
pub async fn a_later_incarnation_comes_after_every_version(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut far = successor(&fixture.founded(), 1);
    far.version += 100;
    assert_done(&store.swap(fixture.founded().version(), &far).await);
    let mut recovered = incarnated(&far, 1);
    recovered.version = 1;
    assert_done(&store.swap(far.version(), &recovered).await);
    assert_eq!(load(&*store).await, recovered);
}

/// Engines learn of changes.
pub async fn a_watch_wakes_with_the_newer_record(fixture: &dyn Fixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (founded, next) = (fixture.founded(), successor(&fixture.founded(), 1));
    let change = async {
        tokio::task::yield_now().await;
        assert_done(&other.swap(founded.version(), &next).await);
    };
    let (woken, ()) = tokio::join!(timeout(SOON, store.watch(founded.version())), change);
    assert_eq!(*woken.expect("it wakes").expect("answer"), next);
}

/// No change is missed between two watches.
pub async fn a_watch_answers_at_once_with_a_newer_record(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let (founded, next) = (fixture.founded(), successor(&fixture.founded(), 1));
    assert_done(&store.swap(founded.version(), &next).await);
    let woken = timeout(SOON, store.watch(founded.version())).await;
    assert_eq!(*woken.expect("it answers").expect("answer"), next);
}

/// A watch is not a busy loop.
pub async fn a_watch_does_not_wake_for_a_known_record(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let known = load(&*store).await.version();
    let woken = timeout(Duration::from_millis(100), store.watch(known)).await;
    assert!(woken.is_err(), "{woken:?}");
}

async fn load(store: &dyn TopologyStore) -> Topology {
    Topology::clone(&*store.load().await.expect("answer"))
}

/// A record that may follow `topology`, and differs for each `which`.
fn successor(topology: &Topology, which: u64) -> Topology {
    let mut next = topology.clone();
    next.version += 1;
    next.last_epoch.0 += which;
    next
}

/// A record with which a recovery may replace `topology`.
fn incarnated(topology: &Topology, which: u64) -> Topology {
    let Incarnation { number, .. } = topology.incarnation;
    let incarnation = Incarnation {
        number: number + 1,
        engine: ClientId(1),
    };
    Topology {
        incarnation,
        ..successor(topology, which)
    }
}

fn assert_done(swap: &Result<Swap, TopologyError>) {
    assert!(matches!(swap, Ok(Swap::Done)), "{swap:?}");
}

fn assert_newer(swap: &Result<Swap, TopologyError>, expected: &Topology) {
    assert!(
        matches!(swap, Ok(Swap::Newer(newer)) if **newer == *expected),
        "{swap:?}"
    );
}
