//! First come, first served: among the tasks of a process at every hand-over, and among processes but for so
//! many hand-offs as each may make while others wait.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_client::{Client, Token};
use ringfence_test_support::{Servers, eventually};
use tokio::{
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};

use super::{
    DEADLINE, SECOND,
    queue::{KEY, queue},
};

const PROCESSES: usize = 3;
const TASKS: usize = 20;
/// How often each task has the lock before all may stop.
const TIMES: usize = 4;
const HOLD: Duration = Duration::from_millis(1);

/// One acquisition: process, task, and how often that task had the lock before.
type Attempt = (usize, usize, usize);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// It is about to ask.
    Asks(Attempt),
    /// It was told why it waits: it has its place.
    Waits(Attempt),
    Granted(Attempt, Token),
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    fn put(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// How often each task had the lock.
    fn counts(&self) -> BTreeMap<(usize, usize), usize> {
        let mut counts = BTreeMap::new();
        for ((process, task, _), _) in grants(&self.events()) {
            *counts.entry((process, task)).or_default() += 1;
        }
        counts
    }

    fn all_had_it(&self, times: usize) -> bool {
        let counts = self.counts();
        counts.len() == PROCESSES * TASKS && counts.values().all(|count| *count >= times)
    }
}

/// Takes the lock again and again, until it is dropped.
async fn wants_it(client: Client, log: Log, in_use: Arc<AtomicBool>, process: usize, task: usize) {
    for time in 0.. {
        let attempt = (process, task, time);
        let (waits, told) = (log.clone(), AtomicBool::new(false));
        log.put(Event::Asks(attempt));
        let lock = client.lock(KEY).on_wait(move |_| {
            if !told.swap(true, SeqCst) {
                waits.put(Event::Waits(attempt));
            }
        });
        let guard = lock.acquire().await.unwrap();
        assert!(!in_use.swap(true, SeqCst), "two holders");
        log.put(Event::Granted(attempt, guard.token()));
        sleep(HOLD).await;
        in_use.store(false, SeqCst);
        drop(guard);
        yield_now().await;
    }
}

/// Has every task of every process, handing on `max` times, wait behind a lock that is held; then lets it go, and
/// looks on until every task had it so many times.
async fn everybody_wants_it(max: u32) -> Vec<Event> {
    let servers = Servers::spawn(1).await;
    let gate = servers.client().await;
    let held = gate.lock(KEY).acquire().await.unwrap();
    let (log, in_use, mut tasks) = (Log::default(), Arc::default(), JoinSet::new());
    for process in 0..PROCESSES {
        let client = servers.builder().handoff(max, 1000 * SECOND);
        let client = client.build().await.unwrap();
        for task in 0..TASKS {
            let (client, log, in_use) = (client.clone(), log.clone(), Arc::clone(&in_use));
            tasks.spawn(wants_it(client, log, in_use, process, task));
        }
        let is_last = async || queue(&gate).await.len() == process + 1;
        eventually("it has its place", is_last).await;
    }
    held.release().await;
    let all = timeout(DEADLINE, async {
        while !log.all_had_it(TIMES) {
            assert!(tasks.try_join_next().is_none(), "a task failed");
            sleep(5 * HOLD).await;
        }
    });
    let starved = all.await.is_err();
    assert!(!starved, "starved: {:?}", log.counts());
    tasks.shutdown().await;
    log.events()
}

fn grants(events: &[Event]) -> impl Iterator<Item = (Attempt, Token)> {
    events.iter().filter_map(|event| match event {
        Event::Granted(attempt, token) => Some((*attempt, *token)),
        Event::Asks(_) | Event::Waits(_) => None,
    })
}

/// The processes that had it, and how many grants in a row.
fn runs(events: &[Event]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for ((process, ..), _) in grants(events) {
        match runs.last_mut() {
            Some((last, length)) if *last == process => *length += 1,
            _ => runs.push((process, 1)),
        }
    }
    runs
}

/// How often each attempt was overtaken, by tasks of its own process and of others: by one that asked when it
/// had its place, and was granted before it.
fn overtakes(events: &[Event]) -> Vec<(Attempt, usize, usize)> {
    let mut asked = BTreeMap::new();
    let mut waiting = BTreeMap::new();
    let mut overtaken = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Asks(attempt) => drop(asked.insert(attempt, at)),
            Event::Waits(attempt) => drop(waiting.insert(attempt, (at, 0, 0))),
            Event::Granted(granted, _) => {
                if let Some((_, own, others)) = waiting.remove(&granted) {
                    overtaken.push((granted, own, others));
                }
                for (attempt, (since, own, others)) in &mut waiting {
                    if asked[&granted] > *since {
                        *(if attempt.0 == granted.0 { own } else { others }) += 1;
                    }
                }
            }
        }
    }
    overtaken
}

/// Every one of `events` is as fair as processes that hand on `max` times promise.
fn assert_fair(events: &[Event], max: usize) {
    let tokens: Vec<_> = grants(events).map(|(_, token)| token).collect();
    assert!(
        tokens.is_sorted_by(|a, b| a < b),
        "each has a token of its own"
    );

    let runs = runs(events);
    assert!(
        runs.iter().all(|(_, length)| *length <= max + 1),
        "{runs:?}"
    );
    // They come in the order in which they queued, and queue again before the next one has its turn.
    let mut in_turn = runs.windows(PROCESSES + 1);
    assert!(in_turn.all(|run| run[0].0 == run[PROCESSES].0), "{runs:?}");
    let first: Vec<_> = runs.iter().map(|run| run.0).take(PROCESSES).collect();
    assert_eq!(first, [0, 1, 2], "{runs:?}");

    // A task with so many before it waits for so many turns of its process, and each other process
    // has one turn before each.
    let turns = TASKS.div_ceil(max + 1);
    let most = turns * (PROCESSES - 1) * (max + 1);
    let overtakes = overtakes(events);
    assert!(overtakes.len() > PROCESSES * TASKS, "they were told");
    for (attempt, own, others) in overtakes {
        assert_eq!(own, 0, "{attempt:?} was overtaken in its process");
        assert!(others <= most, "{attempt:?} was overtaken {others} times");
    }
}

#[tokio::test]
async fn processes_with_many_tasks_take_turns_and_nobody_starves() {
    assert_fair(&everybody_wants_it(4).await, 4);
}

#[tokio::test]
async fn without_hand_off_processes_alternate_at_every_grant() {
    assert_fair(&everybody_wants_it(0).await, 0);
}

/// Its process has few tasks, each of which comes again at once: without a bound they would go on for ever.
#[tokio::test]
async fn the_first_waiter_is_overtaken_by_at_most_the_hand_offs_allowed() {
    const MAX: usize = 4;
    let servers = Servers::spawn(1).await;
    let handing_on = servers.builder().handoff(MAX as u32, 1000 * SECOND);
    let (busy, other) = (handing_on.build().await.unwrap(), servers.client().await);
    let (log, in_use, mut tasks) = (Log::default(), Arc::default(), JoinSet::new());
    for task in 0..2 {
        let (log, in_use) = (log.clone(), Arc::clone(&in_use));
        tasks.spawn(wants_it(busy.clone(), log, in_use, 0, task));
    }
    tasks.spawn(wants_it(other, log.clone(), in_use, 1, 0));
    let often = async || log.counts().get(&(1, 0)).is_some_and(|count| *count > 20);
    eventually("it has its turns", often).await;
    tasks.shutdown().await;

    let events = log.events();
    // Before the first of its turns the holder was told by a message, which takes its time; from then on by each grant.
    let overtakes = overtakes(&events);
    let others: Vec<_> = overtakes
        .iter()
        .filter(|(attempt, ..)| attempt.0 == 1 && attempt.2 > 0)
        .collect();
    assert!(others.len() > 10, "it was told: {others:?}");
    for (attempt, _, overtaken) in others {
        assert!(
            *overtaken <= MAX,
            "{attempt:?} was overtaken {overtaken} times"
        );
    }
}
