//! `ringfence ring watch`: the progress of a resize by any mover.

use std::time::Duration;

use clap::Args;
use ringfence_client::{BootClock, Clock as _, Instant, Topology, TopologyError};
use ringfence_coordinator::topology::{TopologyStore as _, Weights};
use tokio::time::sleep;

use super::{
    RingError, existing_only, join,
    progress::{Outcome, Reporter, Step},
};
use crate::seeds::Seeds;

/// Pause before a topology store that did not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Show the progress of the resize under way, run by any process
///
/// Prints the moved slots, the migrating slots and the time left on stderr: a bar at a terminal,
/// otherwise at most one line per second. Then prints "done" or "turned back" and the number of
/// moved slots on stdout, and exits. If no resize is under way, waits, and shows every resize that
/// begins, until it is interrupted.
#[derive(Args, Debug)]
pub(crate) struct Watch {
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object per line on stdout instead: "state" is "at_rest" (no resize is under way), "moving",
    /// "done" or "turned_back"
    #[arg(long)]
    json: bool,
}

/// A resize that is being watched.
struct Watched {
    began: Instant,
    first: Step,
    last: Step,
    /// The shards and weights that it leads to, as it was first seen.
    aim: Weights,
}

impl Watch {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        let store = join(&self.seeds.servers()?, existing_only()).await?.store;
        let mut reporter = Reporter::new(self.json);
        let mut topology = store.load().await?;
        let ends_with_it = topology.goal.is_some();
        if !ends_with_it {
            reporter.at_rest(topology.version)?;
        }
        let mut watched: Option<Watched> = None;
        loop {
            if topology.goal.is_some() {
                let mut now = match watched.take() {
                    Some(watched) => watched,
                    None => Watched::begin(&topology)?,
                };
                reporter.tell(now.step(&topology)?)?;
                watched = Some(now);
            } else if let Some(over) = watched.take() {
                reporter.end(&Outcome::seen(&topology, &over.last, &over.aim))?;
                if ends_with_it {
                    return Ok(());
                }
            }
            match store.watch(topology.version()).await {
                Ok(newer) => topology = newer,
                Err(error) if error.is_retryable() => {
                    let last = watched.as_ref().map(|watched| watched.last.clone());
                    reporter.tell(last.unwrap_or_default().waiting_for(&error))?;
                    sleep(ASK_AGAIN).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Watched {
    /// From what `topology` says on.
    fn begin(topology: &Topology) -> Result<Self, TopologyError> {
        let first = Step::of(topology)?;
        Ok(Self {
            began: BootClock.now(),
            last: first.clone(),
            first,
            aim: topology
                .goal
                .clone()
                .map(|goal| goal.after)
                .unwrap_or_default(),
        })
    }

    /// How far it has come, as `topology` says.
    fn step(&mut self, topology: &Topology) -> Result<Step, TopologyError> {
        self.last = Step::of(topology)?;
        self.last.reckon(&self.first, self.began, BootClock.now());
        Ok(self.last.clone())
    }
}
