//! Shards, a slot of a key that goes from one to another, and the steps of its move, one by one.

use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_chaos::{
    ledger,
    mover::{join, mover},
};
use ringfence_client::{BootClock, Clock as _, LockKey, Replicas, ShardId, Weight};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    mover::{Observer, Pace, Phase},
    name::KeyPrefix,
    shard::{List, Mode, Shard, Step},
    topology::{
        Change, Dial as _, Migration, Round, Swap, Topology, TopologyStore as _,
        server::ServerTopology, shard_id,
    },
};
use ringfence_ring::Slot;
use tokio::sync::oneshot;

use super::stage::Stage;

/// More than ever move.
const ALL_AT_ONCE: usize = 16_384;

/// As fast as can be: before any lock is renewed.
const AT_ONCE: Pace = Pace {
    slots_in_flight: ALL_AT_ONCE,
    pause: Duration::ZERO,
};

/// A ring of two shards or more.
pub(crate) struct Ring {
    pub(crate) store: Arc<ServerTopology>,
    pub(crate) key: String,
    /// The slot of the key, or of one of its replicas.
    slot: Slot,
}

impl Ring {
    /// The ring of `stage`, with its topology founded. Its key goes from the first shard to the second when that gets
    /// [more weight](Self::to_the_second), and back when it has [less again](Self::to_the_first).
    pub(crate) async fn of(stage: &Stage) -> Self {
        let goes = |record: &Topology, slots: &[Slot]| {
            let there = planned(&record.begin(weigh(2), BootClock.unix()).unwrap());
            let back = arrived(&there).begin(weigh(1), BootClock.unix());
            let back = planned(&back.unwrap());
            let goes = |slot: &Slot| {
                there.migration_of(*slot).is_some() && back.migration_of(*slot).is_some()
            };
            slots.iter().copied().find(goes)
        };
        Self::with(stage, "key", goes).await
    }

    /// The same, with a key of which one replica goes to the second shard when that gets more weight.
    pub(crate) async fn of_replicas(stage: &Stage) -> Self {
        let goes = |record: &Topology, slots: &[Slot]| {
            let there = planned(&record.begin(weigh(2), BootClock.unix()).unwrap());
            let goes = |slot: &Slot| there.migration_of(*slot).is_some();
            slots.iter().copied().find(goes)
        };
        Self::with(stage, ledger::NAMESPACE, goes).await
    }

    /// The same, with the first replica of a key, which the first shard has.
    pub(crate) async fn of_first_replica(stage: &Stage) -> Self {
        let first = |record: &Topology, slots: &[Slot]| {
            let slot = slots[0];
            (*record.table.owner(slot) == shard_id(0)).then_some(slot)
        };
        Self::with(stage, ledger::NAMESPACE, first).await
    }

    /// `which` of the slots of some key of `place` it is about.
    async fn with(
        stage: &Stage,
        place: &str,
        which: impl Fn(&Topology, &[Slot]) -> Option<Slot>,
    ) -> Self {
        let store = join(&stage.urls(), &KeyPrefix::default()).await.unwrap();
        let record = store.load().await.unwrap();
        let of_key = |key: String| {
            let slot = which(&record, &slots(&key, &record))?;
            Some((key, slot))
        };
        let mut keys = (0..10_000).map(|number| format!("{place}/{number}"));
        let (key, slot) = keys.find_map(of_key).expect("some do");
        Self { store, key, slot }
    }

    /// The place of the shard that has the slot.
    pub(crate) async fn place(&self) -> usize {
        place(self.store.load().await.unwrap().table.owner(self.slot))
    }

    /// The places of the shards of the key's other two replicas.
    pub(crate) async fn others(&self) -> [usize; 2] {
        let record = self.store.load().await.unwrap();
        let mut all = slots(&self.key, &record);
        all.retain(|slot| *slot != self.slot);
        [all[0], all[1]].map(|slot| place(record.table.owner(slot)))
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

    /// The shard in `place` is declared dead.
    pub(crate) async fn remove_by_force(&self, place: usize) {
        let id = shard_id(place);
        self.change(|record| record.decommission(&id, BootClock.unix()).unwrap())
            .await;
    }

    /// The shard in `place` makes tokens of a fresh epoch from now on.
    pub(crate) async fn raise(&self, place: usize) {
        self.change(|record| {
            let mut next = record.clone();
            (next.version, next.last_epoch.0) = (next.version + 1, next.last_epoch.0 + 1);
            next
        })
        .await;
        let record = self.store.load().await.unwrap();
        let mut link = self.shard(place).await.connect_control(None).await.unwrap();
        let raise = link.raise(record.incarnation, record.last_epoch);
        raise.await.unwrap();
    }

    /// The slot's move.
    pub(crate) async fn migration(&self) -> Migration {
        let record = self.store.load().await.unwrap();
        record.migration_of(self.slot).unwrap().clone()
    }

    /// The former shard grants no more.
    pub(crate) async fn seal(&self) -> Token {
        let Migration { epoch, from, .. } = self.migration().await;
        self.step(place(&from.0), epoch, Mode::Sealed, Token::default())
            .await
    }

    /// The next shard takes the slot in.
    pub(crate) async fn import(&self, last: Token) {
        let Migration { epoch, to, .. } = self.migration().await;
        let above = last.max(Token::new(epoch, 0));
        self.step(place(&to.0), epoch, Mode::Import, above).await;
    }

    /// The next shard grants as any.
    pub(crate) async fn open(&self, last: Token) {
        let Migration { epoch, to, .. } = self.migration().await;
        self.step(place(&to.0), epoch, Mode::Open, last).await;
    }

    /// The shard in `place` is asked for a change of the slot. Answers its last token.
    pub(crate) async fn step(&self, place: usize, epoch: Epoch, mode: Mode, above: Token) -> Token {
        let record = self.store.load().await.unwrap();
        let step = Step {
            incarnation: record.incarnation,
            copy: (record.version, record.encode()),
            map: MapVersion::UNKNOWN,
            epoch,
            mode,
            slots: vec![self.slot],
            above,
        };
        let shard = self.shard(place).await;
        let mut link = shard.connect_control(None).await.unwrap();
        link.step(&step).await.unwrap().last_token
    }

    /// Whether the shard in `place` has a record of the key.
    pub(crate) async fn has_it(&self, place: usize) -> bool {
        // It may have to be armed yet.
        let Ok(mut link) = self.shard(place).await.connect_control(None).await else {
            return false;
        };
        let Ok(listed) = link.list(&List::default()).await else {
            return false;
        };
        assert!(listed.next.is_none(), "no more than fit on a page");
        let mut locks = listed.locks.iter();
        locks.any(|lock| lock.key.key() == self.key.as_bytes())
    }

    /// A mover, on a thread of its own.
    pub(crate) fn mover(&self) -> HeldUp {
        let mover = self.held_up_at(Phase::Planned);
        mover.go_on();
        mover
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

    async fn shard(&self, place: usize) -> Arc<dyn Shard> {
        let record = self.store.load().await.unwrap();
        let id = shard_id(place);
        self.store.dial(&id, record.shard(&id).unwrap()).unwrap()
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

/// The slots of `key`, one per replica.
fn slots(key: &str, record: &Topology) -> Vec<Slot> {
    let slots = record.table.slots();
    let first = LockKey::new(&ledger::namespace_of(key), key.as_bytes(), slots);
    let replicas = match ledger::has(key) {
        true => Replicas::Three,
        false => Replicas::One,
    };
    let all = slots.replicas(first.expect("a valid name").slot(), replicas);
    all.collect()
}

fn place(shard: &ShardId) -> usize {
    let mut places = 0..;
    places
        .find(|place| shard_id(*place) == *shard)
        .expect("one of ours")
}
