//! Tasks of two processes on one key, with their steps in any order.
//!
//! If every message arrives, no time passes and no request is repeated: every task gets its turn by
//! answers and messages alone.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool,
            Ordering::{Acquire as Load, Release as Store},
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
    shard::{LockLane, Op},
    sync::explore,
};

const ORDERS: usize = 300;

/// The protected resource.
#[derive(Default)]
pub(super) struct Resource(pub(super) Mutex<Use>);

#[derive(Default)]
pub(super) struct Use {
    pub(super) by: usize,
    pub(super) token: u64,
    pub(super) readers: usize,
    /// The greatest token of a reader.
    pub(super) newest_reader: u64,
    owner: Option<usize>,
}

impl Resource {
    /// It is used by no other task at the same time, except the same `owner`, which enters with the
    /// same token.
    pub(super) fn use_under(&self, guard: &Guard, owner: Option<usize>) {
        {
            let mut used = self.0.lock().unwrap();
            let token = guard.token().get();
            let enters = owner.is_some() && used.owner == owner && used.token == token;
            assert!(used.by == 0 || enters, "two holders");
            assert!(used.readers == 0, "a holder beside readers");
            let greatest = used.token.max(used.newest_reader);
            assert!(greatest < token || enters, "a token not greater");
            (used.token, used.owner) = (token, owner);
            used.by += 1;
        }
        thread::yield_now();
        assert!(guard.is_held(), "lost");
        self.0.lock().unwrap().by -= 1;
    }
}

/// Two owners per process.
pub(super) type Owners = [Owner; 2];

pub(super) type Does = fn(&Task, &Owners);

/// A task of a process.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) engine: Engine,
    pub(super) resource: Arc<Resource>,
}

impl Task {
    pub(super) fn ask<'a>(
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
            preferred: false,
            tokens: 1,
            owner,
            label: None,
            observer: None,
        }
    }

    /// Waits as long as necessary, and releases in one of two ways.
    fn waits(&self) {
        let namespace = namespace();
        let ask = self.ask(Wait::Forever, None, &namespace);
        let guard = block_on(self.engine.acquire(ask)).unwrap();
        self.resource.use_under(&guard, None);
        if thread_rng().gen_bool(0.5) {
            let _ = block_on(guard.release());
        }
    }

    /// Requests the lock, and leaves at some time, with any result. Then again.
    fn goes_away(&self) {
        let namespace = namespace();
        for _ in 0..3 {
            let ask = self.ask(Wait::Forever, None, &namespace);
            let mut asking = Box::pin(self.engine.acquire(ask));
            for _ in 0..thread_rng().gen_range(0..40) {
                if let Some(guard) = poll_once(asking.as_mut()) {
                    self.resource.use_under(&guard.unwrap(), None);
                    break;
                }
                thread::yield_now();
            }
        }
    }

    /// Takes the first answer.
    fn asks_once(&self) {
        let namespace = namespace();
        match block_on(self.engine.acquire(self.ask(Wait::No, None, &namespace))) {
            Ok(guard) => self.resource.use_under(&guard, None),
            Err(error) => assert!(matches!(error, AcquireError::Held { .. }), "{error}"),
        }
    }

    /// Enters its owner's lock, or waits for its own turn. Then again.
    fn enters(&self, owners: &Owners, which: usize) {
        let namespace = namespace();
        for _ in 0..2 {
            let ask = self.ask(Wait::Forever, Some(&owners[which]), &namespace);
            let guard = block_on(self.engine.acquire(ask)).unwrap();
            self.resource.use_under(&guard, Some(which));
        }
    }
}

pub(super) fn namespace() -> Namespace {
    Namespace::new("test").unwrap()
}

pub(super) fn sharing(max: u32, linger: Option<Duration>) -> Sharing {
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
        let owners = Owners::default();
        for does in tasks.iter().copied() {
            let (task, owners) = (task.clone(), owners.clone());
            running.push(thread::spawn(move || does(&task, &owners)));
        }
        serving.push(serve(&done, None, move || work.step()));
        let clock = (hears < 1.0).then(|| world.clock.clone());
        serving.push(serve(&done, clock, move || others.step()));
        engines.push(engine);
    }
    running.into_iter().for_each(|task| task.join().unwrap());
    // A record kept for the next waiter goes back.
    engines.iter().for_each(|engine| engine.0.queues.close());
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

/// Repeats `step` until all is done and nothing is left to do. While a step finds nothing to do,
/// time passes on `clock`.
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
const ENTERS: Does = |task, owners| task.enters(owners, 0);
const ENTERS_FOR_ANOTHER: Does = |task, owners| task.enters(owners, 1);

pub(super) fn explored(sharing: Sharing, hears: f64, tasks: [&'static [Does]; 2]) {
    explore(RandomScheduler::new(ORDERS), move || {
        run(&sharing, hears, tasks)
    });
}

#[test]
fn every_waiter_gets_its_own_turn() {
    explored(
        sharing(1, None),
        1.0,
        [&[WAITS, WAITS, WAITS], &[WAITS, WAITS]],
    );
}

#[test]
fn a_waiter_that_leaves_leaves_nothing_and_blocks_no_other() {
    explored(
        sharing(1, None),
        1.0,
        [&[WAITS, GOES_AWAY, GOES_AWAY], &[GOES_AWAY, WAITS]],
    );
}

#[test]
fn a_request_that_asks_once_is_answered() {
    explored(
        sharing(4, None),
        1.0,
        [&[ASKS_ONCE, WAITS, ASKS_ONCE], &[ASKS_ONCE, GOES_AWAY]],
    );
}

#[test]
fn an_owner_enters_what_it_has_and_nothing_else() {
    explored(
        sharing(4, None),
        1.0,
        [&[ENTERS, ENTERS, ENTERS_FOR_ANOTHER], &[WAITS]],
    );
}

#[test]
fn a_lingering_lock_goes_to_a_waiter_elsewhere() {
    let linger = Some(Duration::from_secs(10));
    explored(
        sharing(4, linger),
        1.0,
        [&[WAITS, GOES_AWAY, WAITS], &[WAITS, WAITS]],
    );
}

#[test]
fn a_waiter_without_notifications_finds_its_turn_by_asking_again() {
    explored(
        sharing(1, None),
        0.0,
        [&[WAITS, WAITS, GOES_AWAY], &[WAITS, WAITS]],
    );
}

/// Its message, and the answer to its repeated request, in either order.
#[test]
fn a_waiter_with_some_notifications_takes_its_turn_once() {
    explored(
        sharing(4, None),
        0.5,
        [&[WAITS, WAITS, GOES_AWAY], &[WAITS, WAITS]],
    );
}

/// At the shard where it is in the end, be that before or after the release: there it would be left for a lease.
#[test]
fn a_release_reaches_a_lock_that_goes_to_another_shard_meanwhile() {
    let raced = |dropped: bool| {
        let (world, namespace) = (World::of(2), namespace());
        let mut one = world.process(1, sharing(0, None));
        let [from, to] = [0, 1].map(|shard| one.engine.0.routing.view().renewers[shard].clone());
        let slots = one.engine.0.routing.slots();
        let key = (0..).map(|nth| LockKey::new(&namespace, format!("{nth}").as_bytes(), slots));
        let key = key.map(Result::unwrap);
        let mut key =
            key.filter(|key| Arc::ptr_eq(&one.engine.0.routing.route(key).renewer, &from));
        let key = key.next().expect("it has half of the slots");
        let ask = Acquire {
            namespace: &namespace,
            key: key.key(),
            lease: None,
            hold_for: None,
            wait: Wait::Forever,
            preferred: false,
            tokens: 1,
            owner: None,
            label: None,
            observer: None,
        };
        let mut asking = Box::pin(one.engine.acquire(ask));
        assert!(poll_once(asking.as_mut()).is_none());
        assert!(one.work.step());
        let guard = poll_once(asking.as_mut()).expect("nobody has it").unwrap();
        let lease = from.kept().pop().expect("it was granted");

        let (goes, next) = (lease.clone(), to.clone());
        let moving = thread::spawn(move || from.rehome(&goes, &next));
        let releasing = thread::spawn(move || match dropped {
            true => drop(guard),
            false => drop(poll_once(Box::pin(guard.release()).as_mut())),
        });
        moving.join().unwrap();
        releasing.join().unwrap();
        let sent = lease.renewer().driver.take(LockLane::Work);
        let is_its = |op: &Op| matches!(op, Op::Release { nonce } if *nonce == lease.nonce);
        let went = lease.is_at(&to);
        assert!(
            sent.iter().any(|(request, _)| is_its(&request.op)),
            "went: {went}, {sent:?}"
        );
    };
    explore(RandomScheduler::new(10 * ORDERS), move || {
        raced(true);
        raced(false);
    });
}
