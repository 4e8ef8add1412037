//! Whole histories: processes that take one, any or all, resize, give up half way and lose what they hold. As long as
//! somebody has all, nobody has any, and there are no others.

use std::{cell::RefCell, sync::Arc};

use futures_util::future::join_all;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use ringfence_segment_lock::{Manifests, VersionedManifest, lock::Split};
use tokio::task::yield_now;

use super::{Lock, World, locks::Grant};

const SEEDS: u64 = 400;
const CALLS: usize = 12;
const PROCESSES: u64 = 4;

/// The present holders, and how often all sub-locks had one holder.
#[derive(Default)]
struct Audit {
    single: Vec<Arc<Grant>>,
    all: Vec<Vec<Arc<Grant>>>,
    had_all: usize,
}

impl Audit {
    /// Looks at everybody, with so many sub-locks made.
    fn check(&mut self, made: u32, seed: u64) {
        self.single.retain(|grant| grant.is_held());
        self.all
            .retain(|all| all.iter().all(|grant| grant.is_held()));
        let Some(all) = self.all.first() else { return };
        assert_eq!(self.all.len(), 1, "seed {seed}: two have all");
        assert_eq!(self.single.len(), 0, "seed {seed}: one beside all");
        assert_eq!(all.len(), made as usize, "seed {seed}: others beside all");
    }
}

struct Run {
    world: World,
    audit: RefCell<Audit>,
    seed: u64,
}

impl Run {
    async fn check(&self) {
        let name = self.world.process(0).name().clone();
        let split = Manifests::read(&*self.world.memory, &name).await;
        let split: VersionedManifest<Split> = split.unwrap().unwrap();
        self.audit
            .borrow_mut()
            .check(split.manifest.made(), self.seed);
    }

    async fn turns(&self, count: u32) {
        for _ in 0..count {
            yield_now().await;
            self.check().await;
        }
    }

    async fn single(&self, lock: &Lock, turns: u32, segment: Option<u32>) {
        let taken = match segment {
            Some(segment) => lock.at(segment).acquire().await,
            None => lock.any().acquire().await,
        };
        let Ok(guard) = taken else { return };
        self.audit.borrow_mut().single.push(guard.grant.clone());
        self.check().await;
        self.turns(turns).await;
    }

    async fn all(&self, lock: &Lock, turns: u32) {
        let Ok(all) = lock.all().acquire().await else {
            return;
        };
        let grants = all.segments().iter().map(|guard| guard.grant.clone());
        let grants = grants.collect();
        self.audit.borrow_mut().all.push(grants);
        self.audit.borrow_mut().had_all += 1;
        self.check().await;
        self.turns(turns).await;
    }

    async fn call(&self, lock: &Lock, random: &mut StdRng) {
        let turns = random.random_range(0..8);
        match random.random_range(0..10) {
            0..3 => self.single(lock, turns, None).await,
            3..5 => {
                let segment = random.random_range(0..6);
                self.single(lock, turns, Some(segment)).await;
            }
            5..8 => self.all(lock, turns).await,
            _ => {
                let segments = random.random_range(1..7);
                let _ = lock.resize(segments).run().await;
            }
        }
    }

    /// One process: calls, of which it gives some up.
    async fn process(&self, mut random: StdRng) {
        let (lock, gate) = self.world.gated();
        for _ in 0..CALLS {
            // It is paused on its way to the record now and then.
            if random.random_bool(0.4) {
                gate.swaps.close_after(random.random_range(0..2));
                gate.reads.close_after(random.random_range(0..3));
            }
            let (pause, patience) = (random.random_range(0..40), random.random_range(40..400));
            let opens = async {
                self.turns(pause).await;
                gate.swaps.open();
                gate.reads.open();
                self.turns(patience).await;
            };
            tokio::select! {
                () = self.call(&lock, &mut random) => {}
                () = opens => {}
            }
            gate.swaps.open();
            gate.reads.open();
        }
    }

    /// Somebody's lease ends now and then.
    async fn expiries(&self, mut random: StdRng) {
        for _ in 0..60 {
            self.turns(random.random_range(1..12)).await;
            let segment = random.random_range(0..4_u32).saturating_sub(1);
            self.world.locks.expire(segment);
        }
    }
}

#[tokio::test]
async fn as_long_as_somebody_has_all_there_are_no_others() {
    let mut had_all = 0;
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let run = Run {
            world: World::of(random.random_range(1..4)).await,
            audit: RefCell::default(),
            seed,
        };
        let mut fork = || StdRng::seed_from_u64(random.next_u64());
        let processes = join_all((0..PROCESSES).map(|_| run.process(fork())));
        let processes = std::pin::pin!(processes);
        tokio::join!(processes, run.expiries(fork()));
        assert_eq!(run.world.locks.held(), 0, "seed {seed}");
        had_all += run.audit.borrow().had_all;
    }
    assert!(had_all as u64 > 2 * SEEDS, "{had_all}");
}
