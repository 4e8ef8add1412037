//! Two shards, a key that goes from one to the other, and the steps of its move, one by one.

use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_chaos::mover::{join, mover};
use ringfence_client::{BootClock, Clock as _, LockKey, Namespace, Weight};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    mover::{Observer, Pace, Phase},
    name::KeyPrefix,
    shard::{MigrationLink, Mode, Step},
    topology::{
        Change, Dial as _, Migration, Round, Swap, Topology, TopologyStore as _,
        redis::RedisTopology, shard_id,
    },
};
use tokio::sync::oneshot;

use super::stage::Stage;

/// More than ever move.
const ALL_AT_ONCE: usize = 16_384;

/// As fast as can be: before any lock is renewed.
const AT_ONCE: Pace = Pace {
    slots_in_flight: ALL_AT_ONCE,
    pause: Duration::ZERO,
};

/// A ring of two shards.
pub(crate) struct Ring {
    pub(crate) store: Arc<RedisTopology>,
    /// It goes from the first shard to the second when that gets [more weight](Self::to_the_second), and
    /// back when it has [less again](Self::to_the_first).
    pub(crate) key: String,
}

impl Ring {
    /// The ring of `stage`, with its topology founded.
    pub(crate) async fn of(stage: &Stage) -> Self {
        let store = join(&stage.urls(), &KeyPrefix::default()).await.unwrap();
        let record = store.load().await.unwrap();
        let there = planned(&record.begin(weigh(2), BootClock.unix()).unwrap());
        let back = arrived(&there).begin(weigh(1), BootClock.unix());
        let back = planned(&back.unwrap());
        let goes = |key: &String| {
            let slot = lock_key(key, &record).slot();
            there.migration_of(slot).is_some() && back.migration_of(slot).is_some()
        };
        let mut keys = (0..10_000).map(|number| format!("key/{number}"));
        let key = keys.find(goes).expect("some go back");
        Self { store, key }
    }

    /// Begins a resize.
    pub(crate) async fn to_the_second(&self) {
        self.change(|record| record.begin(weigh(2), BootClock.unix()).unwrap())
            .await;
    }

    /// Begins a resize.
    pub(crate) async fn to_the_first(&self) {
        self.change(|record| record.begin(weigh(1), BootClock.unix()).unwrap())
            .await;
    }

    /// The moves of the resize are in the record.
    pub(crate) async fn plan(&self) {
        self.change(planned).await;
    }

    /// The resize is turned back.
    pub(crate) async fn turn_back(&self) {
        self.change(|record| record.abort(BootClock.unix()).unwrap())
            .await;
    }

    /// The key's move.
    pub(crate) async fn migration(&self) -> Migration {
        let record = self.store.load().await.unwrap();
        let slot = lock_key(&self.key, &record).slot();
        record.migration_of(slot).unwrap().clone()
    }

    /// The former shard grants no more.
    pub(crate) async fn seal(&self) -> Token {
        let Migration { epoch, from, .. } = self.migration().await;
        let place = usize::from(from.0 == shard_id(1));
        self.step(place, epoch, Mode::Sealed, Token::default())
            .await
    }

    /// The next shard takes the slot in.
    pub(crate) async fn import(&self, last: Token) {
        let Migration { epoch, to, .. } = self.migration().await;
        let place = usize::from(to.0 == shard_id(1));
        let above = last.max(Token::new(epoch, 0));
        self.step(place, epoch, Mode::Import, above).await;
    }

    /// The shard in `place` is asked for a change of the key's slot. Answers its last token.
    pub(crate) async fn step(&self, place: usize, epoch: Epoch, mode: Mode, above: Token) -> Token {
        let record = self.store.load().await.unwrap();
        let step = Step {
            incarnation: record.incarnation,
            copy: (record.version, record.encode()),
            map: MapVersion::UNKNOWN,
            epoch,
            mode,
            slots: vec![lock_key(&self.key, &record).slot()],
            above,
        };
        let mut link = self.link(place).await;
        link.step(&step).await.unwrap().last_token
    }

    /// Whether the shard in `place` has a record of the key.
    pub(crate) async fn has_it(&self, place: usize) -> bool {
        let record = self.store.load().await.unwrap();
        let key = lock_key(&self.key, &record);
        let found = self.link(place).await.inspect(&key).await;
        found.unwrap().holder.is_some()
    }

    /// A mover, on a thread of its own, that is held up in `phase`.
    pub(crate) fn held_up_at(&self, phase: Phase) -> HeldUp {
        let (reached, at) = oneshot::channel();
        let (go_on, wait) = mpsc::channel();
        let held_up = Mutex::new(Some((reached, wait)));
        let observer = Observer::new(move |told| {
            let held_up = (told == phase).then(|| held_up.lock().take()).flatten();
            if let Some((reached, wait)) = held_up {
                // A receiver that has gone does not matter.
                let _ = reached.send(());
                let _ = wait.recv();
            }
        });
        let urls: Vec<_> = self.members();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let store = join(&urls, &KeyPrefix::default()).await.unwrap();
                mover(store, AT_ONCE, observer).run().await.unwrap();
            });
        });
        HeldUp {
            at: Some(at),
            go_on,
            thread,
        }
    }

    fn members(&self) -> Vec<String> {
        let record = self.store.view();
        let addresses = record.shards.values().map(|entry| entry.address.clone());
        addresses.collect()
    }

    async fn link(&self, place: usize) -> Box<dyn MigrationLink> {
        let record = self.store.load().await.unwrap();
        let id = shard_id(place);
        let shard = self.store.dial(&id, record.shard(&id).unwrap()).unwrap();
        shard.connect_migration(None).await.unwrap()
    }

    async fn change(&self, change: impl FnOnce(&Topology) -> Topology) {
        let record = self.store.load().await.unwrap();
        let next = change(&record);
        let swapped = self.store.swap(record.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swap::Done), "{swapped:?}");
    }
}

/// A mover that is held up.
pub(crate) struct HeldUp {
    at: Option<oneshot::Receiver<()>>,
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl HeldUp {
    /// Waits until it is held up.
    pub(crate) async fn is_there(&mut self) {
        let at = self.at.take().expect("once");
        at.await.expect("it gets there");
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        // It may have come to its end.
        let _ = self.go_on.send(());
    }

    /// Whether it has come to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

/// The second shard gets a weight.
fn weigh(weight: u32) -> Change {
    Change {
        weigh: [(shard_id(1), Weight::new(weight).unwrap())].into(),
        ..Change::default()
    }
}

fn planned(begun: &Topology) -> Topology {
    let round = Round {
        slots_in_flight: ALL_AT_ONCE,
        ..Round::default()
    };
    begun.turn(&round, BootClock.unix()).unwrap().unwrap()
}

fn arrived(planned: &Topology) -> Topology {
    let finished = planned.migrations.iter();
    let finished = finished.map(|migration| (migration.epoch, migration.slots.clone()));
    let round = Round {
        finished: finished.collect(),
        slots_in_flight: ALL_AT_ONCE,
        ..Round::default()
    };
    planned.turn(&round, BootClock.unix()).unwrap().unwrap()
}

fn lock_key(key: &str, record: &Topology) -> LockKey {
    let slots = record.table.slots();
    LockKey::new(&Namespace::default(), key.as_bytes(), slots).unwrap()
}
