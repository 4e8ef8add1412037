//! Tasks of two processes on one key, in whatever order their steps come.
//!
//! Where everything is heard, no time passes, and nobody asks twice: everybody gets a turn by answers and
//! messages alone.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Acquire as Load, Relaxed, Release as Store},
        },
    },
    time::Duration,
};

use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
    scheduler::RandomScheduler,
    thread,
};

use super::{
    super::super::{Acquire, AcquireError, Engine, Guard, Handoff, Owner, Sharing, Wait},
    process::{HandClock, Process, World, poll_once},
};
use crate::{
    name::{LockKey, Namespace},
    sync::explore,
};

const ORDERS: usize = 300;

/// What the lock protects.
#[derive(Default)]
struct Resource {
    inside: AtomicUsize,
    token: AtomicU64,
}

impl Resource {
    fn use_under(&self, guard: &Guard) {
        assert_eq!(self.inside.fetch_add(1, Relaxed), 0, "two holders");
        let before = self.token.swap(guard.token().get(), Relaxed);
        assert!(before < guard.token().get(), "a token not greater");
        thread::yield_now();
        assert!(guard.is_held(), "lost");
        assert_eq!(self.inside.fetch_sub(1, Relaxed), 1, "two holders");
    }
}

type Does = fn(&Task, &Owner);

/// A task of a process.
#[derive(Clone)]
struct Task {
    engine: Engine,
    resource: Arc<Resource>,
}

impl Task {
    fn ask<'a>(
        &self,
        wait: Wait,
        owner: Option<&'a Owner>,
        namespace: &'a Namespace,
    ) -> Acquire<'a> {
        Acquire {
            namespace,
            key: b"key",
            lease: None,
            hold_for: None,
            wait,
            owner,
            label: None,
            observer: None,
        }
    }

    /// Waits for as long as it takes, and releases in one of two ways.
    fn waits(&self) {
        let namespace = namespace();
        let ask = self.ask(Wait::Forever, None, &namespace);
        let guard = block_on(self.engine.acquire(ask)).unwrap();
        self.resource.use_under(&guard);
        if thread_rng().gen_bool(0.5) {
            let _ = block_on(guard.release());
        }
    }

    /// Asks, and goes away at some time, whatever came of it. And again.
    fn goes_away(&self) {
        let namespace = namespace();
        for _ in 0..3 {
            let ask = self.ask(Wait::Forever, None, &namespace);
            let mut asking = Box::pin(self.engine.acquire(ask));
            for _ in 0..thread_rng().gen_range(0..40) {
                if let Some(guard) = poll_once(asking.as_mut()) {
                    self.resource.use_under(&guard.unwrap());
                    break;
                }
                thread::yield_now();
            }
        }
    }

    /// Takes the first answer there is.
    fn asks_once(&self) {
        let namespace = namespace();
        match block_on(self.engine.acquire(self.ask(Wait::No, None, &namespace))) {
            Ok(guard) => self.resource.use_under(&guard),
            Err(error) => assert!(matches!(error, AcquireError::Held { .. }), "{error}"),
        }
    }

    /// Two of one owner, who may be in at the same time.
    fn enters(&self, owner: &Owner) {
        let namespace = namespace();
        let ask = self.ask(Wait::Forever, Some(owner), &namespace);
        let guard = block_on(self.engine.acquire(ask)).unwrap();
        assert!(guard.is_held());
    }
}

fn namespace() -> Namespace {
    Namespace::new("test").unwrap()
}

fn sharing(max: u32, linger: Option<Duration>) -> Sharing {
    let length = Duration::from_secs(1);
    Sharing {
        handoff: Handoff { max, length },
        linger: linger
            .map(|linger| ("test".into(), linger))
            .into_iter()
            .collect(),
    }
}

/// Runs `tasks` in two processes, until all are done and nothing is left to be sent.
fn run(sharing: &Sharing, hears: f64, tasks: [&[Does]; 2]) {
    let world = World::new();
    let resource = Arc::new(Resource::default());
    let done = Arc::new(AtomicBool::new(false));
    let (mut running, mut serving, mut engines) = (Vec::new(), Vec::new(), Vec::new());
    for (client, tasks) in (1..).zip(tasks) {
        let Process {
            engine,
            mut work,
            mut others,
        } = world.process(client, sharing.clone());
        others.hears = hears;
        let task = Task {
            engine: engine.clone(),
            resource: resource.clone(),
        };
        let owner = Owner::new();
        for does in tasks.iter().copied() {
            let (task, owner) = (task.clone(), owner.clone());
            running.push(thread::spawn(move || does(&task, &owner)));
        }
        serving.push(serve(&done, None, move || work.step()));
        let clock = (hears < 1.0).then(|| world.clock.clone());
        serving.push(serve(&done, clock, move || others.step()));
        engines.push(engine);
    }
    running.into_iter().for_each(|task| task.join().unwrap());
    // What is kept for whoever comes next goes back.
    engines.iter().for_each(|engine| engine.0.lines.close());
    done.store(true, Store);
    let mut serving: Vec<_> = serving
        .into_iter()
        .map(|served| served.join().unwrap())
        .collect();
    while serving.iter_mut().any(|step| step()) {}
    for engine in &engines {
        assert_eq!(engine.held(), 0);
    }
    let slots = engines[0].0.routing.slots();
    world.assert_nothing_is_left(&LockKey::new(&namespace(), b"key", slots).unwrap());
}

type Step = Box<dyn FnMut() -> bool + Send>;

/// Goes on with `step` until all is done and there is nothing to do. While there is nothing, time passes on
/// `clock`.
fn serve(
    done: &Arc<AtomicBool>,
    clock: Option<Arc<HandClock>>,
    mut step: impl FnMut() -> bool + Send + 'static,
) -> thread::JoinHandle<Step> {
    let done = done.clone();
    thread::spawn(move || {
        loop {
            let last = done.load(Load);
            if step() {
                continue;
            }
            if last {
                return Box::new(step) as Step;
            }
            if let Some(clock) = &clock {
                clock.pass(Duration::from_millis(50));
            }
            thread::yield_now();
        }
    })
}

const WAITS: Does = |task, _| task.waits();
const GOES_AWAY: Does = |task, _| task.goes_away();
const ASKS_ONCE: Does = |task, _| task.asks_once();
const ENTERS: Does = |task, owner| task.enters(owner);

fn explored(sharing: Sharing, hears: f64, tasks: [&'static [Does]; 2]) {
    explore(RandomScheduler::new(ORDERS), move || {
        run(&sharing, hears, tasks)
    });
}

#[test]
fn whoever_waits_gets_a_turn_of_their_own() {
    explored(
        sharing(1, None),
        1.0,
        [&[WAITS, WAITS, WAITS], &[WAITS, WAITS]],
    );
}

#[test]
fn whoever_goes_away_leaves_nothing_and_keeps_nobody_waiting() {
    explored(
        sharing(1, None),
        1.0,
        [&[WAITS, GOES_AWAY, GOES_AWAY], &[GOES_AWAY, WAITS]],
    );
}

#[test]
fn whoever_asks_once_is_answered() {
    explored(
        sharing(4, None),
        1.0,
        [&[ASKS_ONCE, WAITS, ASKS_ONCE], &[ASKS_ONCE, GOES_AWAY]],
    );
}

#[test]
fn an_owner_enters_with_whoever_it_has_in_the_line() {
    explored(sharing(4, None), 1.0, [&[ENTERS, ENTERS, ENTERS], &[WAITS]]);
}

#[test]
fn what_is_kept_for_whoever_comes_next_goes_to_whoever_waits_elsewhere() {
    let linger = Some(Duration::from_secs(10));
    explored(
        sharing(4, linger),
        1.0,
        [&[WAITS, GOES_AWAY, WAITS], &[WAITS, WAITS]],
    );
}

#[test]
fn whoever_hears_nothing_finds_its_turn_by_asking_again() {
    explored(
        sharing(1, None),
        0.0,
        [&[WAITS, WAITS, GOES_AWAY], &[WAITS, WAITS]],
    );
}

/// Its message, and the answer to what it asked again: in either order.
#[test]
fn whoever_hears_some_of_it_takes_its_turn_once() {
    explored(
        sharing(4, None),
        0.5,
        [&[WAITS, WAITS, GOES_AWAY], &[WAITS, WAITS]],
    );
}
