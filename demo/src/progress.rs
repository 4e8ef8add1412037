//! The progress line at a terminal. Without a terminal only a wait is reported.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ringfence_client::{Clock, Progress as Moved, ShardId};

use crate::table::grouped;

/// Pause between two looks at the counters.
const TICK: Duration = Duration::from_millis(100);

/// A line at the bottom of the terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    counted_down: Cell<bool>,
}

impl Progress {
    /// A line for a run of `length`.
    pub(super) fn new(length: Duration) -> Self {
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(length.as_millis() as u64), target);
        let style = ProgressStyle::with_template("{bar:24} {prefix}{msg}")
            .expect("a template of known parts");
        bar.set_style(style.progress_chars("=> "));
        Self {
            bar,
            counted_down: Cell::new(false),
        }
    }

    /// Reports that `shard` grants nothing for `left`. Without a terminal, once.
    pub(super) fn count_down(&self, shard: &ShardId, left: Duration) {
        let seconds = left.as_millis().div_ceil(1000);
        let message = format!("shard {shard} is recovering or new: new locks in {seconds} s");
        if self.bar.is_hidden() && !self.counted_down.replace(true) {
            eprintln!("{message}");
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Shows the counts of the run.
    pub(super) fn say(&self, phase: &str) {
        self.bar.set_prefix(format!("{phase}: "));
    }

    /// Shows the progress of a resize.
    pub(super) fn moved(&self, moved: &Moved) {
        let Moved {
            slots_moved,
            slots_to_move,
            waiting_for,
            ..
        } = moved;
        let (moved, all) = (
            grouped((*slots_moved).into()),
            grouped((*slots_to_move).into()),
        );
        let waits = waiting_for
            .as_ref()
            .map(|what| format!(" (waits for {what})"));
        let waits = waits.unwrap_or_default();
        self.bar
            .set_prefix(format!("{moved} of {all} slots moved{waits}: "));
    }

    /// Shows `count` and the time since now, again and again.
    pub(super) async fn follow(&self, clock: &dyn Clock, count: &AtomicU64) {
        let start = clock.now();
        loop {
            let (elapsed, count) = (clock.now().since(start), count.load(Relaxed));
            let per_second = count as f64 / elapsed.as_secs_f64().max(0.001);
            self.bar.set_position(elapsed.as_millis() as u64);
            let (count, per_second) = (grouped(count), grouped(per_second as u64));
            self.bar
                .set_message(format!("{count} deductions, {per_second} a second"));
            tokio::time::sleep(TICK).await;
        }
    }

    /// Removes the line.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
