//! The progress of a resize: a bar at a terminal, otherwise one line per second, or JSON.

use std::{fmt, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ringfence_client::{BootClock, Clock as _, Instant, ShardId, Topology, TopologyError};
use ringfence_coordinator::{
    mover::{Progress, Resized, WaitingFor},
    topology::Weights,
};
use serde::Serialize;
use tokio::{sync::watch, time::sleep};

use super::RingError;
use crate::{say, show, table::grouped};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Pause between two lines of text.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The progress of a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    slots_moved: u32,
    slots_to_move: u32,
    migrating: u32,
    /// Keys that were held when their slots were sealed, and have left since. Only the mover knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    locks_carried: Option<u64>,
    /// Segments of counters, and their accounts' manifests. Only the mover knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters_carried: Option<u64>,
    /// The estimated time left.
    left_ms: Option<u64>,
    /// The shard or store that moves wait for, and the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    /// The shard that it waits for, because it does not answer.
    #[serde(skip)]
    silent: Option<ShardId>,
}

/// The result of a resize.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    slots_moved: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    locks_carried: Option<u64>,
    /// Segments of counters, and their accounts' manifests. Only the mover knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters_carried: Option<u64>,
    version: u64,
    /// Whether the ring has the weights that the resize was begun for.
    #[serde(skip)]
    reached: bool,
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a, T> {
    state: &'static str,
    #[serde(flatten)]
    what: &'a T,
}

/// Reports the progress to the user of this process.
#[derive(Debug)]
pub(super) struct Reporter {
    json: bool,
    /// Hidden where stderr is no terminal.
    bar: ProgressBar,
    last: Option<Step>,
    last_line: Option<Instant>,
}

impl Reporter {
    /// In JSON on stdout, or else on stderr.
    pub(super) fn new(json: bool) -> Self {
        let target = match json {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{bar:24} {prefix}\n{wide_msg}");
        let style = style.expect("a template of known parts");
        bar.set_style(style.progress_chars("=> "));
        Self {
            json,
            bar,
            last: None,
            last_line: None,
        }
    }

    /// Reports each state of `progress`, until its sender is gone.
    pub(super) async fn follow(&mut self, progress: watch::Receiver<Progress>) -> RingError {
        loop {
            let step = Step::from(&*progress.borrow());
            if let Err(error) = self.tell(step) {
                return error;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Reports the progress, if it has changed.
    pub(super) fn tell(&mut self, step: Step) -> Result<(), RingError> {
        let known = self.last.as_ref().map(Step::timeless);
        let nothing = step.slots_to_move == 0 && step.waiting_for.is_none();
        if nothing || known == Some(step.timeless()) {
            return Ok(());
        }
        if self.json {
            line("moving", &step)?;
        } else if !self.bar.is_hidden() {
            self.draw(&step);
        } else if !self.say(&step) {
            return Ok(());
        }
        self.last = Some(step);
        Ok(())
    }

    fn draw(&self, step: &Step) {
        self.bar.set_length(step.slots_to_move.into());
        self.bar.set_position(step.slots_moved.into());
        self.bar.set_prefix(step.headline());
        self.bar.set_message(step.details());
    }

    /// Returns whether it was printed: one line at a time is enough.
    fn say(&mut self, step: &Step) -> bool {
        let now = BootClock.now();
        let due = self
            .last_line
            .is_none_or(|last| now.since(last) >= LINE_EVERY);
        if due {
            say(&format!("{}; {}", step.headline(), step.details()));
            self.last_line = Some(now);
        }
        due
    }

    /// Reports the end.
    pub(super) fn end(&mut self, outcome: &Outcome) -> Result<(), RingError> {
        self.bar.finish_and_clear();
        self.last = None;
        match self.json {
            true => line(outcome.state(), outcome),
            false => show(outcome).map_err(RingError::Unshown),
        }
    }

    /// Reports that nothing is known yet.
    pub(super) fn at_rest(&self, version: u64) -> Result<(), RingError> {
        if self.json {
            return line("at_rest", &AtRest { version });
        }
        say("no resize is under way; this shows the next one");
        Ok(())
    }
}

/// No resize is under way.
#[derive(Serialize)]
struct AtRest {
    version: u64,
}

fn line(state: &'static str, what: &impl Serialize) -> Result<(), RingError> {
    let line = serde_json::to_string(&Line { state, what });
    let line = line.expect("numbers and texts") + "\n";
    show(line).map_err(RingError::Unshown)
}

impl From<&Progress> for Step {
    fn from(progress: &Progress) -> Self {
        Self {
            slots_moved: progress.slots_moved,
            slots_to_move: progress.slots_to_move,
            migrating: progress.migrating,
            locks_carried: Some(progress.locks_carried),
            counters_carried: Some(progress.counters_carried),
            left_ms: progress.left.map(|left| left.as_millis() as u64),
            waiting_for: progress.waiting_for.as_ref().map(ToString::to_string),
            silent: match &progress.waiting_for {
                Some(WaitingFor::Shard {
                    id,
                    is_silent: true,
                    ..
                }) => Some(id.clone()),
                _ => None,
            },
        }
    }
}

impl Step {
    /// The progress by the record alone.
    pub(super) fn of(topology: &Topology) -> Result<Self, TopologyError> {
        let preview = topology.preview()?;
        let migrations = topology.migrations.iter();
        Ok(Self {
            slots_moved: preview.slots_in_all.saturating_sub(preview.slots_to_move()),
            slots_to_move: preview.slots_in_all,
            migrating: migrations
                .map(|migration| migration.slots.len() as u32)
                .sum(),
            ..Self::default()
        })
    }

    /// Estimates the time left from the slots moved since `first`, at `began`.
    pub(super) fn reckon(&mut self, first: &Self, began: Instant, now: Instant) {
        let done = self.slots_moved.saturating_sub(first.slots_moved);
        let to_move = self.slots_to_move - self.slots_moved;
        let left = (done > 0).then(|| now.since(began) * to_move / done);
        self.left_ms = left.map(|left| left.as_millis() as u64);
    }

    /// The cause of a wait.
    pub(super) fn waiting_for(mut self, what: &dyn fmt::Display) -> Self {
        self.waiting_for = Some(what.to_string());
        self
    }

    /// The slots moved and the causes of waits, without the time.
    fn timeless(&self) -> Self {
        Self {
            left_ms: None,
            ..self.clone()
        }
    }
}

impl Step {
    /// The most important part.
    fn headline(&self) -> String {
        let (moved, to_move) = (self.slots_moved.into(), self.slots_to_move.into());
        let moved = format!("{} of {} slots moved", grouped(moved), grouped(to_move));
        match self.left_ms.filter(|left| *left > 0) {
            Some(left) => format!("{moved}, {} s left", grouped(left.div_ceil(1000))),
            None => moved,
        }
    }

    /// Further details.
    fn details(&self) -> String {
        let mut details = format!("{} migrating", grouped(self.migrating.into()));
        if let Some(carried) = self.locks_carried {
            details += &format!(", {} locks carried", grouped(carried));
        }
        if let Some(carried) = self.counters_carried.filter(|carried| *carried > 0) {
            details += &format!(", {} segments carried", grouped(carried));
        }
        if let Some(waiting_for) = &self.waiting_for {
            details += &format!("; waiting for {waiting_for}");
        }
        if let Some(id) = &self.silent {
            details += &format!(" (if it never comes back: ringfence ring remove --gone {id})");
        }
        details
    }
}

impl Outcome {
    pub(super) fn of(resized: &Resized, reached: bool) -> Self {
        Self {
            slots_moved: resized.slots_moved,
            locks_carried: Some(resized.locks_carried),
            counters_carried: Some(resized.counters_carried),
            version: resized.version,
            reached,
        }
    }

    /// The result by `topology`: the resize to `aim`, last seen at `last`, is over.
    pub(super) fn seen(topology: &Topology, last: &Step, aim: &Weights) -> Self {
        let reached = topology.weights() == *aim;
        Self {
            slots_moved: if reached {
                last.slots_to_move
            } else {
                last.slots_moved
            },
            locks_carried: None,
            counters_carried: None,
            version: topology.version,
            reached,
        }
    }

    /// For programs.
    fn state(&self) -> &'static str {
        if self.reached { "done" } else { "turned_back" }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.reached { "done" } else { "turned back" };
        let moved = grouped(self.slots_moved.into());
        write!(out, "{state}: {moved} slots moved")?;
        if let Some(carried) = self.locks_carried {
            write!(out, ", {} locks carried", grouped(carried))?;
        }
        if let Some(carried) = self.counters_carried.filter(|carried| *carried > 0) {
            write!(out, ", {} segments carried", grouped(carried))?;
        }
        writeln!(out, "; topology version {}", self.version)
    }
}
