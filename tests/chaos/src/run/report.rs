//! What a run says when it is over.

use std::{fmt, path::PathBuf, time::Duration};

use crate::checker::{Counts, Violation};

/// Of many violations, as many are told in full.
const TOLD_MAX: usize = 10;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// What its choices were made from.
    pub seed: u64,
    /// How long things were done to it.
    pub length: Duration,
    /// What else was asked for.
    pub flags: &'static str,
    /// What happened.
    pub counts: Counts,
    /// What was wrong.
    pub violations: Vec<Violation>,
    /// Where the histories are, if they were kept.
    pub kept: Option<PathBuf>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.counts.named() {
            writeln!(formatter, "  {count:>7}  {name}")?;
        }
        for (fault, count) in &self.counts.faults {
            writeln!(formatter, "  {count:>7}  {fault}")?;
        }
        for ((fault, phase), count) in &self.counts.amid_resizes {
            writeln!(formatter, "  {count:>7}  {fault}, {phase}")?;
        }
        writeln!(formatter, "  {:>7}  violations", self.violations.len())?;
        for violation in self.violations.iter().take(TOLD_MAX) {
            writeln!(formatter, "\n{violation}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(formatter, "histories: {}", kept.display())?;
        }
        if !self.violations.is_empty() {
            let length = humantime::format_duration(self.length);
            writeln!(
                formatter,
                "again: cargo run -p ringfence-chaos -- run --seed {} --for {length}{}",
                self.seed, self.flags
            )?;
        }
        Ok(())
    }
}
