//! The options that every bench has.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::{Failure, report::write_json};

/// How much a bench measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    Quick,
    /// As little as shows that each contender runs.
    Smoke,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Short slices and few rounds: less exact.
    #[arg(long)]
    quick: bool,
    /// Each contender for some milliseconds: shows that the bench works. None of its figures counts.
    #[arg(long, conflicts_with_all = ["quick", "json"])]
    smoke: bool,
    /// Where the report goes: target/bench/BENCH.json if not said, nowhere with --smoke.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Common {
    pub(crate) fn effort(&self) -> Effort {
        match (self.smoke, self.quick) {
            (true, _) => Effort::Smoke,
            (false, true) => Effort::Quick,
            (false, false) => Effort::Full,
        }
    }

    /// Writes the `report` of `bench` to its file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn write(&self, bench: &str, report: &impl Serialize) -> Result<(), Failure> {
        let usual = || Path::new("target/bench").join(format!("{bench}.json"));
        match self.effort() {
            Effort::Smoke => Ok(()),
            Effort::Full | Effort::Quick => Ok(write_json(
                &self.json.clone().unwrap_or_else(usual),
                report,
            )?),
        }
    }
}

/// The values of an option: those of the command line, or the `usual` ones if it has none.
pub(crate) fn given_or<T: Clone>(given: &[T], usual: &[T]) -> Vec<T> {
    if given.is_empty() { usual } else { given }.to_vec()
}
