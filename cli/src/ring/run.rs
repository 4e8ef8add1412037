//! Moves slots in this process: begins the requested change, then runs the mover.

use std::{sync::Arc, time::Duration};

use clap::Args;
use ringfence_client::{BootClock, Clock as _, Topology};
use ringfence_coordinator::{
    ids::ClientId,
    limits::{MOVER_PAUSE, MOVER_PAUSE_MAX, SLOTS_IN_FLIGHT},
    mover::{Mover, Observer, Pace, Parts},
    name::KeyPrefix,
    random::Random,
    shard::ServerOptions,
    topology::{Founder, Goal, Swap, TopologyStore as _, server::ServerTopology},
};
use ringfence_ring::limits::SLOTS_MAX;
use tokio::time::sleep;

use super::{
    RingError,
    change::RequestedChange,
    existing_only, join,
    plan::Planned,
    print,
    progress::{Outcome, Reporter},
};
use crate::{seeds::Seeds, signals::Signals};

/// Most attempts of a swap without an answer. It may have been done.
const SWAPS_MAX: u32 = 10;
/// Pause between two attempts.
const SWAP_AGAIN: Duration = Duration::from_millis(500);

/// The options of a command that begins a resize.
#[derive(Args, Debug)]
pub(super) struct Begin {
    /// Show the resize, as `ringfence ring plan` does, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    how: MoveOptions,
}

/// The options of a command that moves slots.
#[derive(Args, Debug)]
pub(crate) struct MoveOptions {
    /// Maximum number of slots that migrate at a time: higher is faster but adds latency
    #[arg(long, value_name = "N", default_value_t = SLOTS_IN_FLIGHT)]
    #[arg(value_parser = in_flight)]
    slots_in_flight: usize,
    /// Maximum pause between two requests to a shard, in which it serves other clients: shorter is
    /// faster but adds latency
    #[arg(long, value_name = "LENGTH", default_value_t = MOVER_PAUSE.into())]
    #[arg(value_parser = pause)]
    pause: humantime::Duration,
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Begin {
    pub(super) fn how(&self) -> &MoveOptions {
        &self.how
    }

    /// Begins the resize and moves slots; or only shows the plan.
    pub(super) async fn run(
        &self,
        requested: &RequestedChange,
        servers_are_new: bool,
    ) -> Result<(), RingError> {
        let store = self.how.store().await?;
        if self.dry_run {
            let planned = Planned::of(requested, &store).await?;
            return print(&planned, self.how.json);
        }
        let aim = begin(&store, requested).await?;
        self.how.move_slots(store, servers_are_new, aim).await
    }
}

impl MoveOptions {
    pub(super) fn json(&self) -> bool {
        self.json
    }

    /// The topology's store.
    pub(super) async fn store(&self) -> Result<Arc<ServerTopology>, RingError> {
        Ok(join(&self.seeds.servers()?, existing_only()).await?.store)
    }

    /// A mover with these options.
    pub(super) fn mover(&self, store: Arc<ServerTopology>, servers_are_new: bool) -> Mover {
        Mover::new(Parts {
            store: store.clone(),
            dial: store,
            clock: Arc::new(BootClock),
            random: Arc::new(Random::from_os()),
            pace: Pace {
                slots_in_flight: self.slots_in_flight,
                pause: *self.pause,
            },
            servers_are_new,
            observer: Observer::default(),
        })
    }

    /// Moves slots until no resize is under way, or a signal comes. `aim`: the goal of the resize; `None`: any resize
    /// under way.
    pub(super) async fn move_slots(
        &self,
        store: Arc<ServerTopology>,
        servers_are_new: bool,
        aim: Option<Goal>,
    ) -> Result<(), RingError> {
        let mut signals = Signals::listen().map_err(RingError::Signals)?;
        let mover = self.mover(store, servers_are_new);
        let mut reporter = Reporter::new(self.json);
        let resized = tokio::select! {
            resized = mover.run() => resized?,
            signal = signals.next() => return Err(RingError::Interrupted { signal }),
            unshown = reporter.follow(mover.progress()) => return Err(unshown),
        };
        let reached = match aim {
            Some(aim) => aim.after == resized.weights,
            None => resized.reached,
        };
        reporter.end(&Outcome::of(&resized, reached))?;
        match reached {
            true => Ok(()),
            false => Err(RingError::TurnedBack),
        }
    }
}

/// Begins the resize `requested`. Returns its goal, if slots move.
async fn begin(
    store: &ServerTopology,
    requested: &RequestedChange,
) -> Result<Option<Goal>, RingError> {
    let me = ClientId(Random::from_os().id());
    loop {
        let topology = store.load().await?;
        // Every refusal comes before the first change at a server.
        requested.rehearsed(&topology)?;
        requested.check_counters(store).await?;
        let mut founders = Vec::new();
        for (newcomer, id) in requested.add.iter().zip(requested.ids(&topology)) {
            let (address, prefix) = (newcomer.address.clone(), KeyPrefix::default());
            let options = ServerOptions::new(address, me, prefix);
            options.prepare().await.map_err(RingError::Tables)?;
            let founder = store.take_in(options, Some(id), newcomer.weight).await;
            founders.push(Founder {
                zone: newcomer.zone.clone(),
                ..founder.map_err(RingError::Newcomer)?
            });
        }
        let next = topology.begin(requested.change(founders), BootClock.unix())?;
        if swapped(store, &topology, &next).await? {
            return Ok(next.goal);
        }
    }
}

/// Turns the resize under way back. Returns its goal.
pub(super) async fn turn_back(store: &ServerTopology) -> Result<Option<Goal>, RingError> {
    let mut topology = store.load().await?;
    let goal = topology.goal.clone();
    loop {
        let next = topology.abort(BootClock.unix())?;
        if swapped(store, &topology, &next).await? {
            return Ok(next.goal);
        }
        topology = store.load().await?;
        // Another process has turned it back: turning it back again would continue it.
        if topology.goal.is_some() && topology.goal != goal {
            return Ok(topology.goal.clone());
        }
    }
}

/// Swaps `next` in after `topology`. Returns false if another process's record came first.
pub(super) async fn swapped(
    store: &ServerTopology,
    topology: &Topology,
    next: &Topology,
) -> Result<bool, RingError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match store.swap(topology.version(), next).await {
            Ok(Swap::Done) => return Ok(true),
            // Its own record: the first answer was lost.
            Ok(Swap::Newer(newer)) => return Ok(*newer == *next),
            Err(error) if error.is_retryable() && tries < SWAPS_MAX => sleep(SWAP_AGAIN).await,
            Err(error) => return Err(error.into()),
        }
    }
}

fn in_flight(text: &str) -> Result<usize, String> {
    let slots = text.parse().ok();
    let slots = slots.filter(|slots| (1..=SLOTS_MAX as usize).contains(slots));
    slots.ok_or_else(|| format!("must be 1 to {SLOTS_MAX}"))
}

fn pause(text: &str) -> Result<humantime::Duration, String> {
    let pause = humantime::Duration::from(crate::length(text)?);
    match *pause <= MOVER_PAUSE_MAX {
        true => Ok(pause),
        false => Err(format!("must be at most {MOVER_PAUSE_MAX:?}")),
    }
}
