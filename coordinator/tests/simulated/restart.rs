//! The queue obeys grace: it may vanish, and grants nothing that waiting would not.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_coordinator::{
    clock::Clock,
    engine::AcquireError,
    ids::Incarnation,
    topology::{Constants, Copies, Swap, Topology, TopologyError, TopologyStore, Version},
};
use tokio::time::{Instant, sleep, timeout};

use super::{AT_ONCE, Crew, LEASE, MILLISECOND, SECOND, acquire, holder, try_acquire, waiting};

#[tokio::test(start_paused = true)]
async fn nobody_in_a_queue_is_granted_in_grace_and_all_are_after_it() {
    for keep_records in [false, true] {
        let mut crew = Crew::new().await;
        let one = crew.process().await;
        let guard = acquire(&one).await;
        let mut waiters = Vec::new();
        for _ in 0..3 {
            let process = crew.process().await;
            waiters.push(waiting(&process).await);
        }
        crew.faults().restart(keep_records);
        let restarted = Instant::now();
        sleep(SECOND).await;
        let mut token = guard.token();
        guard.release().await;
        let grace = crew.topology.constants.grace();
        while restarted.elapsed() < grace - SECOND {
            sleep(SECOND).await;
            assert!(!waiters.iter().any(|waiter| waiter.is_finished()));
        }
        while !waiters.is_empty() {
            let some_turn = timeout(5 * SECOND, async {
                loop {
                    match waiters.iter().position(|waiter| waiter.is_finished()) {
                        Some(at) => return at,
                        None => sleep(MILLISECOND).await,
                    }
                }
            });
            let at = some_turn.await.expect("somebody's turn");
            // The first requester begins a new queue after the old one vanished.
            assert!(at == 0 || !keep_records, "in order");
            let next = waiters.remove(at).await.unwrap();
            assert!(next.token() > token, "{keep_records}");
            token = next.token();
            next.release().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_keeps_its_lock_and_a_waiter_its_turn_through_a_restart() {
    for keep_records in [false, true] {
        let mut crew = Crew::new().await;
        let [one, two] = crew.processes().await;
        let guard = acquire(&one).await;
        let waiter = waiting(&two).await;
        crew.faults().restart(keep_records);
        sleep(2 * LEASE).await;
        assert!(guard.is_held() && !waiter.is_finished());
        guard.release().await;
        drop(timeout(AT_ONCE, waiter).await.expect("its turn").unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_of_grace_and_a_request_that_asks_once_is_refused() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    acquire(&one).await.release().await;
    crew.faults().restart(false);
    let _waiter = waiting(&two).await;
    sleep(SECOND).await;
    let refused = try_acquire(&two).await;
    assert!(
        matches!(refused, Err(AcquireError::Grace { .. })),
        "{refused:?}"
    );
    sleep(MILLISECOND).await;
}

/// Another server has its place, and it can still be reached over connections that were there before.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_replaced_is_asked_nothing_more() {
    let mut crew = Crew::new().await;
    let one = crew.process().await;
    let guard = acquire(&one).await;
    let (former, present) = (crew.shard.clone(), crew.another_server());
    one.wire.lead_to(present.clone());
    crew.lives_at(&present).await;
    sleep(2 * LEASE).await;
    assert!(guard.is_held(), "put back at the other one");
    assert_eq!(
        holder(&present).await.map(|holder| holder.token),
        Some(guard.token())
    );
    assert!(holder(&former).await.is_none(), "not renewed there");
    let token = guard.token();
    guard.release().await;
    let next = acquire(&one).await;
    assert!(next.token() > token);
    assert!(holder(&present).await.is_some() && holder(&former).await.is_none());
}

/// A way to the topology's store on which nothing is said unasked, and answers are late. A member is silent.
#[derive(Debug)]
struct Late(Arc<dyn TopologyStore>);

#[async_trait]
impl TopologyStore for Late {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        sleep(SECOND / 2).await;
        self.0.load().await
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        self.0.swap(expected, next).await
    }

    async fn watch(&self, _: Version) -> Result<Arc<Topology>, TopologyError> {
        pending().await
    }

    async fn copies(&self) -> Copies {
        pending().await
    }

    fn outrun(&self, incarnation: Incarnation) {
        self.0.outrun(incarnation);
    }
}

/// Its address leads to it again, after it led to another one. It was not restarted, and is armed as before.
#[tokio::test(start_paused = true)]
async fn a_process_that_missed_a_replacement_asks_nothing_of_the_server_that_was_replaced() {
    let mut crew = Crew::new().await;
    let store = crew.store.clone();
    crew.store = Arc::new(Late(store.clone()));
    let one = crew.process().await;
    let before = acquire(&one).await;
    let token = before.token();
    before.release().await;

    crew.store = store;
    crew.lives_at(&crew.another_server()).await;
    crew.faults().hang_up();
    let since = Instant::now();
    while since.elapsed() < 5 * SECOND {
        assert!(
            try_acquire(&one).await.is_err(),
            "granted by its former state"
        );
        sleep(MILLISECOND).await;
    }
    assert!(acquire(&one).await.token().epoch() > token.epoch());
}

/// A store that answers no more, and what a process has instead.
#[derive(Debug)]
struct Silent {
    store: Arc<dyn TopologyStore>,
    is_silent: AtomicBool,
    copies: Mutex<Copies>,
}

#[async_trait]
impl TopologyStore for Silent {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        match self.is_silent.load(Relaxed) {
            false => self.store.load().await,
            true => Err(TopologyError::Unreachable {
                address: "memory".into(),
                reason: "silent".into(),
            }),
        }
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        self.load().await?;
        self.store.swap(expected, next).await
    }

    async fn watch(&self, _: Version) -> Result<Arc<Topology>, TopologyError> {
        pending().await
    }

    async fn copies(&self) -> Copies {
        self.copies.lock().unwrap().clone()
    }

    fn outrun(&self, incarnation: Incarnation) {
        self.store.outrun(incarnation);
    }
}

/// A process that missed a replacement is connected to the former server again, and cannot read the record. Returns after
/// how long it was granted a lock by that server, within two times the grace. `copies` are what it finds instead, of the records
/// before and after.
async fn granted_by_a_former_server(
    copies: impl Fn([Arc<Topology>; 2], &Crew) -> Copies,
) -> Option<Duration> {
    let mut crew = Crew::new().await;
    let store = crew.store.clone();
    let silent = Arc::new(Silent {
        store: store.clone(),
        is_silent: AtomicBool::new(false),
        copies: Mutex::default(),
    });
    crew.store = silent.clone();
    let one = crew.process().await;
    acquire(&one).await.release().await;

    crew.store = store.clone();
    silent.is_silent.store(true, Relaxed);
    let before = store.load().await.unwrap();
    crew.lives_at(&crew.another_server()).await;
    let records = [before, store.load().await.unwrap()];
    *silent.copies.lock().unwrap() = copies(records, &crew);
    crew.faults().hang_up();
    let since = Instant::now();
    while since.elapsed() < 2 * crew.topology.constants.grace() {
        if try_acquire(&one).await.is_ok() {
            return Some(since.elapsed());
        }
        sleep(MILLISECOND).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_process_that_cannot_read_the_record_waits_for_the_end_of_all_leases_or_goes_by_copies() {
    let grace = Constants::default().grace();
    let without = granted_by_a_former_server(|_, _| Copies::default()).await;
    let without = without.expect("at last: locks do not wait for the record for ever");
    assert!(without >= grace, "{without:?}");

    let newer = |[_, after]: [Arc<Topology>; 2], _: &Crew| Copies {
        newest: Some(after),
        of_all_at: None,
    };
    assert_eq!(granted_by_a_former_server(newer).await, None);

    // None has a newer one.
    let of_all = |_: [Arc<Topology>; 2], crew: &Crew| Copies {
        newest: None,
        of_all_at: Some(crew.clock.now() + SECOND),
    };
    let granted = granted_by_a_former_server(of_all).await;
    assert!(granted.is_some_and(|after| after < SECOND), "{granted:?}");
}
