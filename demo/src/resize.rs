//! Resizes the ring while the workers run: a shard joins, and leaves again.

use std::{sync::Arc, time::Duration};

use ringfence_client::{Pace, Reshape, ReshapeError, Resize, Resized, Topology, TopologyError};
use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::{
    DemoError,
    held::{HELD, Held},
    progress::Progress,
    stage::Stage,
    worker::Shared,
};

/// The part of the run before, between and after the resizes, each.
const QUIET_PART: u32 = 6;

/// The longest such part before and between.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// A resize that takes longer fails. It usually takes seconds.
const RESIZE_WITHIN: Duration = Duration::from_secs(120);

/// The pause between two requests of a resize: a person watches it.
const PAUSE: Duration = Duration::from_millis(4);

/// Pause between two looks at the ring that the workers use.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The place of the resize, and its observer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course<'a> {
    pub(super) stage: &'a Stage,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) progress: &'a Progress,
    /// The requested length of the run.
    pub(super) length: Duration,
}

/// The results of the resizes so far.
#[derive(Debug, Default)]
pub(super) struct Resizes {
    pub(super) begun: Vec<Outcome>,
    /// How much longer the run was than requested, until the resizes were over.
    pub(super) overtime: Duration,
    /// Locks that were held throughout; none if workers do not lock accounts.
    pub(super) held: u32,
    /// Those of them that were lost.
    pub(super) lost: u32,
    /// How often one of them was also granted to another client; `None`: there was no other client.
    pub(super) granted_twice: Option<u32>,
}

/// The result of a resize.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) shards_before: usize,
    pub(super) shards_after: usize,
    pub(super) finished: bool,
    /// The slots moved, by the ring or by the mover's count, the greater one.
    pub(super) slots_moved: u32,
    /// The least number that had to move.
    pub(super) optimum: u32,
    /// Locks that were held when their slots were sealed.
    pub(super) locks_carried: u64,
}

impl Resizes {
    /// Whether a shard joined and left again, no slot moved unnecessarily, and no lock was lost or granted twice.
    pub(super) fn ok(&self) -> bool {
        let moved = self.begun.len() == 2 && self.begun.iter().all(Outcome::ok);
        moved && self.lost == 0 && self.granted_twice.unwrap_or_default() == 0
    }

    /// Has a shard join and leave again, while locks are held that another client requests. The first phase has begun
    /// already.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the results so far here, and the ring as it is.
    pub(super) async fn carry_out(&mut self, course: Course<'_>) -> Result<(), DemoError> {
        let Course { stage, shared, .. } = course;
        if !shared.exclusive {
            return self.there_and_back(course).await;
        }
        let held = Held::acquire(stage, shared).await?;
        let mut granted_twice = None;
        tokio::select! {
            biased;
            over = self.there_and_back(course) => over?,
            () = Held::contest(stage, shared, &mut granted_twice) => {}
        }
        self.granted_twice = granted_twice;
        (self.held, self.lost) = (HELD, held.release().await);
        Ok(())
    }

    /// Two resizes, with a quiet time before, between and after.
    async fn there_and_back(&mut self, course: Course<'_>) -> Result<(), DemoError> {
        let Course { stage, length, .. } = course;
        let start = stage.clock.now();
        let quiet = (length / QUIET_PART).min(QUIET_MAX);
        let few = stage.client().topology();
        let (fewer, more) = (few.shards.len(), few.shards.len() + 1);
        sleep(quiet).await;
        course.begin("growing", (fewer, more));
        let joins = Reshape::new().add_shard(stage.newcomer());
        let Some(many) = self.resize(course, joins).await? else {
            return Ok(());
        };
        course.begin("between", (more, more));
        sleep(quiet).await;

        course.begin("shrinking", (more, fewer));
        let mut newcomers = many
            .shards
            .keys()
            .filter(|&name| !few.shards.contains_key(name));
        let newcomer = newcomers.next().expect("one has joined").0.clone();
        let leaves = Reshape::new().remove_shard(newcomer);
        if self.resize(course, leaves).await?.is_none() {
            return Ok(());
        }
        course.begin("after", (fewer, fewer));
        let so_far = stage.clock.now().since(start);
        let after = length.saturating_sub(so_far).max(quiet);
        self.overtime = (so_far + after).saturating_sub(length);
        sleep(after).await;
        Ok(())
    }

    /// One resize. Returns the topology after it; `None` if it failed.
    async fn resize(
        &mut self,
        course: Course<'_>,
        reshape: Reshape,
    ) -> Result<Option<Arc<Topology>>, ReshapeError> {
        let client = course.stage.client();
        let before = client.topology();
        let pace = Pace {
            pause: PAUSE,
            ..Pace::default()
        };
        let resize = client.ring().reshape(reshape).await?.pace(pace);
        let preview = client.topology().preview()?;
        let stays = preview
            .shards
            .iter()
            .filter(|shard| shard.weight_after.is_some());
        self.begun.push(Outcome {
            shards_before: before.shards.len(),
            shards_after: stays.count(),
            finished: false,
            slots_moved: 0,
            optimum: preview.slots_in_all,
            locks_carried: 0,
        });
        let run = timeout(RESIZE_WITHIN, course.run(&resize));
        let Ok(run) = run.await else {
            return Ok(None);
        };
        let (resized, after) = run?;
        let outcome = self.begun.last_mut().expect("it was just begun");
        outcome.finished = after.goal.is_none();
        outcome.slots_moved = resized.slots_moved.max(changed_hands(&before, &after));
        outcome.locks_carried = resized.locks_carried;
        Ok(Some(after))
    }
}

impl Outcome {
    /// Whether it was completed, and no slot moved unnecessarily.
    pub(super) fn ok(&self) -> bool {
        self.finished && self.slots_moved == self.optimum
    }
}

impl Course<'_> {
    fn begin(&self, phase: &'static str, shards: (usize, usize)) {
        let now = self.stage.clock.now();
        self.shared.phases.begin(phase, shards, now);
        self.progress.say(phase);
    }

    /// Runs a resize, and shows its progress. Returns the topology after it, too.
    async fn run(&self, resize: &Resize) -> Result<(Resized, Arc<Topology>), TopologyError> {
        let mut news = resize.progress();
        let mut run = std::pin::pin!(resize.run());
        let resized = loop {
            tokio::select! {
                biased;
                resized = &mut run => break resized?,
                Ok(()) = news.changed() => self.progress.moved(&news.borrow_and_update()),
            }
        };
        loop {
            let topology = self.stage.client().topology();
            if topology.version >= resized.version {
                return Ok((resized, topology));
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// The number of slots with another owner than before.
fn changed_hands(before: &Topology, after: &Topology) -> u32 {
    let (before, after) = (&before.table, &after.table);
    let slots = before.slots().iter();
    slots
        .filter(|&slot| before.owner(slot) != after.owner(slot))
        .count() as u32
}
