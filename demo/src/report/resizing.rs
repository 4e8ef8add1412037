//! The report of the resizes during the run.

use std::{
    fmt::{Display, Formatter, Result},
    iter,
};

use ringfence_client::{Instant, Pace, ShardId};
use serde::Serialize;

use super::{Percentiles, Run, text::time};
use crate::{
    locks::RENEWED_EVERY,
    phases::Phase,
    resize::Outcome,
    table::{Table, grouped, percent, wrapped},
};

/// The results of the resizes.
#[derive(Debug, Serialize)]
pub(super) struct Resizing {
    /// A shard joined and left; no slot moved unnecessarily, no lock was lost or granted twice, no token fell.
    pub(super) ok: bool,
    /// How much longer the run was than requested, until the resizes were over.
    overtime_seconds: f64,
    /// Locks that were held throughout.
    locks_held: u32,
    /// Those of them that were lost.
    locks_lost: u32,
    /// How often one of them was also granted to another client; `None`: there was no other client.
    granted_twice: Option<u32>,
    /// Deductions refused for their token although their lock was not lost: the token was smaller than one before it.
    tokens_fell: u64,
    phases: Vec<Part>,
    resizes: Vec<Outcome>,
}

/// A part of the run: before, during or after a resize.
#[derive(Debug, Serialize)]
struct Part {
    name: &'static str,
    shards_before: usize,
    shards_after: usize,
    seconds: f64,
    deductions: u64,
    per_second: f64,
    wait_us: Percentiles,
    hold_us: Percentiles,
    /// The part of its deductions at shards that joined during the run, of 1.
    newcomers_share: f64,
}

impl Resizing {
    /// The results of the resizes of `run`, if there were any.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let resizes = run.resizes.as_ref()?;
        let began = run.phases.iter().map(|phase| phase.began);
        let ended = began.skip(1).chain(iter::once(run.ended));
        let newcomer = |id: &&ShardId| !run.fair_shares.contains_key(*id);
        let part = |(phase, ended): (&Phase, Instant)| {
            let Phase {
                name,
                shards,
                began,
                tally,
            } = phase;
            let (seconds, deductions) = (ended.since(*began).as_secs_f64(), tally.deductions());
            let newcomers = tally.by_shard.keys().filter(newcomer);
            Part {
                name,
                shards_before: shards.0,
                shards_after: shards.1,
                seconds,
                deductions,
                per_second: deductions as f64 / seconds,
                wait_us: Percentiles::of(&tally.wait_us),
                hold_us: Percentiles::of(&tally.hold_us),
                newcomers_share: newcomers.fold(0.0, |sum, id| sum + tally.share(id)),
            }
        };
        let tallies = || run.phases.iter().map(|phase| &phase.tally);
        let fenced: u64 = tallies().map(|tally| tally.fenced).sum();
        let lost: u64 = tallies().map(|tally| tally.locks_lost).sum();
        let tokens_fell = fenced.saturating_sub(lost);
        Some(Self {
            ok: resizes.ok() && tokens_fell == 0,
            overtime_seconds: resizes.overtime.as_secs_f64(),
            locks_held: resizes.held,
            locks_lost: resizes.lost,
            granted_twice: resizes.granted_twice,
            tokens_fell,
            phases: run.phases.iter().zip(ended).map(part).collect(),
            resizes: resizes.begun.clone(),
        })
    }

    fn parts(&self) -> Table {
        let mut table = Table::new(&[
            "phase",
            "shards",
            "seconds",
            "deductions",
            "per s",
            "wait p50",
            "p99",
            "new shard",
        ]);
        for part in &self.phases {
            let Percentiles { p50, p99, .. } = part.wait_us;
            table.row([
                part.name.into(),
                arrow(part.shards_before, part.shards_after),
                format!("{:.1}", part.seconds),
                grouped(part.deductions),
                grouped(part.per_second as u64),
                time(p50),
                time(p99),
                percent(part.newcomers_share),
            ]);
        }
        table
    }

    fn moves(&self) -> Table {
        let mut table = Table::new(&["shards", "slots moved", "optimum", "locks carried"]);
        for resize in &self.resizes {
            let shards = arrow(resize.shards_before, resize.shards_after);
            let (moved, optimum) = (resize.slots_moved.into(), resize.optimum.into());
            let carried = grouped(resize.locks_carried);
            table.row([shards, grouped(moved), grouped(optimum), carried]);
        }
        table
    }

    /// The failure, if there is one.
    fn failure(&self) -> Option<String> {
        let failed = self.resizes.iter().find(|resize| !resize.ok());
        if let Some(failed) = failed {
            let shards = arrow(failed.shards_before, failed.shards_after);
            let (moved, optimum) = (failed.slots_moved.into(), failed.optimum.into());
            return Some(match failed.finished {
                true => format!(
                    "{shards}: {} slots moved, not {}",
                    grouped(moved),
                    grouped(optimum)
                ),
                false => format!("{shards}: not finished"),
            });
        }
        if self.locks_lost > 0 {
            let lost = grouped(self.locks_lost.into());
            return Some(format!("{lost} locks held throughout were lost"));
        }
        if let Some(granted @ 1..) = self.granted_twice {
            let granted = grouped(granted.into());
            return Some(format!("{granted} grants of locks that others held"));
        }
        if self.tokens_fell > 0 {
            let fell = grouped(self.tokens_fell);
            return Some(format!("{fell} tokens were smaller than those before them"));
        }
        (!self.ok).then(|| "the run ended before there were two".into())
    }
}

impl Display for Resizing {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "{}", self.parts())?;
        if !self.resizes.is_empty() {
            writeln!(out, "{}", self.moves())?;
        }
        let overtime = self.overtime_seconds;
        if overtime > 0.0 {
            let longer = format!(
                "{overtime:.1} s longer than --for: the run lasts until both resizes are over. A resize moves {} slots at a \
                 time, and waits until the locks in them have moved too: each with its next renewal, every {} s.",
                Pace::default().slots_in_flight,
                RENEWED_EVERY.as_secs()
            );
            writeln!(out, "{}", wrapped(&longer, 0))?;
        }
        if let Some(failure) = self.failure() {
            return writeln!(out, "resizes: FAILED, {failure}");
        }
        let held = grouped(self.locks_held.into());
        let twice = self.granted_twice.map_or("", |_| " or granted twice");
        let held = match self.locks_held {
            0 => String::new(),
            _ => format!("; of {held} locks held throughout, none was lost{twice}"),
        };
        let moved = format!("resizes: only slots moved that had to{held}");
        writeln!(out, "{}", wrapped(&moved, 2))
    }
}

/// The change of a number, as text.
fn arrow(before: usize, after: usize) -> String {
    if before == after {
        before.to_string()
    } else {
        format!("{before} → {after}")
    }
}
