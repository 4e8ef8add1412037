//! A report for people.

use std::fmt::{Display, Formatter, Result};

use super::{Audit, Named, Percentiles, Report};
use crate::table::{Table, grouped, percent, wrapped};

/// Most violations that are listed.
const SHOWN_MAX: usize = 10;

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "{}\n", self.setting())?;
        writeln!(out, "{}\n", self.counts())?;
        writeln!(out, "{}", self.times())?;
        match &self.resizing {
            Some(resizing) => writeln!(out, "{resizing}")?,
            None => writeln!(out, "{}", self.loads())?,
        }
        match self.two_holders() {
            0 => {}
            refused => writeln!(
                out,
                "locks: FAILED, {refused} tokens fell, though no lock was lost"
            )?,
        }
        write!(out, "{}", self.audit)
    }
}

impl Report {
    fn setting(&self) -> String {
        let setting = &self.setting;
        let how = if setting.locked {
            "under locks"
        } else {
            "WITHOUT LOCKS ON THEM"
        };
        let what = format!(
            "{} workers took coins from {} accounts (Zipf {}) {how}",
            grouped(setting.workers.into()),
            grouped(setting.accounts.into()),
            setting.skew,
        );
        let mut text = format!(
            "{}\n{}",
            wrapped(&what, 0),
            place_line(&setting.place, setting.time, setting.seed)
        );
        if !setting.locked {
            let instead = "Instead, each worker locked a key of its own: the same steps at the same pace, but two \
                           workers can take from one account at once.";
            text += &format!("\n{}", wrapped(instead, 0));
        }
        text
    }

    fn counts(&self) -> String {
        let early = match self.stopped_early {
            true => ", as many as the audit can hold: the run ended early",
            false => "",
        };
        let deductions = format!(
            "{} deductions in {:.1} s: {} per second{early}",
            grouped(self.deductions),
            self.seconds,
            grouped(self.per_second as u64),
        );
        let rest = format!(
            "{} found no coins, {} were fenced off, {} locks were lost",
            grouped(self.refused_empty),
            grouped(self.fenced),
            grouped(self.locks_lost)
        );
        format!("{}\n{}", wrapped(&deductions, 0), wrapped(&rest, 0))
    }

    fn times(&self) -> Table {
        let mut table = Table::new(&["", "p50", "p99", "p99.9"]);
        for (name, times) in [
            ("wait for a lock", &self.wait_us),
            ("hold it", &self.hold_us),
        ] {
            let Percentiles { p50, p99, p999 } = times;
            table.row([name.into(), time(*p50), time(*p99), time(*p999)]);
        }
        table
    }

    fn loads(&self) -> Table {
        let mut table = Table::new(&["shard", "deductions", "load", "fair share"]);
        for load in &self.shards {
            let (share, fair_share) = (percent(load.share), percent(load.fair_share));
            table.row([load.id.clone(), grouped(load.deductions), share, fair_share]);
        }
        table
    }
}

impl Display for Audit {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if self.ok {
            return writeln!(out, "audit: every coin is accounted for");
        }
        let total = self.violations_total;
        let failed = format!(
            "audit: FAILED, balances are off by {} coins, {} violations",
            grouped(self.coins_off),
            grouped(total as u64)
        );
        writeln!(out, "{}", wrapped(&failed, 2))?;
        for Named { message, .. } in self.violations.iter().take(SHOWN_MAX) {
            writeln!(out, "{}", wrapped(&format!("- {message}"), 2))?;
        }
        match total.saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => writeln!(out, "- and {} more", grouped(more as u64)),
        }
    }
}

/// The location and clock of a run, and how to repeat it.
pub(crate) fn place_line(place: &str, time: &str, seed: u64) -> String {
    wrapped(&format!("{place}; time: {time}; seed {seed}"), 0)
}

/// A time in a suitable unit.
pub(super) fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}
