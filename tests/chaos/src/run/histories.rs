//! Where a run's histories are: kept if that was asked for, or if something is wrong.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use tempfile::TempDir;

/// Where histories are to be.
#[derive(Args, Clone, Debug)]
pub struct HistoriesArgs {
    /// Keeps the histories in this directory, which must not be there yet.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Keeps the histories of a run that fails in a new directory below this one, instead of the system's for temporary
    /// files.
    #[arg(long, conflicts_with = "keep")]
    keep_failed: Option<PathBuf>,
}

/// The directory of a run.
#[derive(Debug)]
pub(crate) enum Histories {
    Kept(PathBuf),
    /// Removed unless the run fails.
    Temporary(TempDir),
}

impl Histories {
    /// A new directory.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(crate) fn create(args: &HistoriesArgs) -> io::Result<Self> {
        const PREFIX: &str = "ringfence-chaos-";
        if let Some(dir) = &args.keep {
            fs::create_dir(dir)?;
            return Ok(Self::Kept(dir.clone()));
        }
        let temporary = match &args.keep_failed {
            Some(dir) => {
                fs::create_dir_all(dir)?;
                TempDir::with_prefix_in(PREFIX, dir)
            }
            None => TempDir::with_prefix(PREFIX),
        };
        temporary.map(Self::Temporary)
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Kept(dir) => dir,
            Self::Temporary(dir) => dir.path(),
        }
    }

    /// Where they are from now on, if they are kept.
    pub(crate) fn end(self, failed: bool) -> Option<PathBuf> {
        match self {
            Self::Kept(dir) => Some(dir),
            Self::Temporary(dir) => failed.then(|| dir.keep()),
        }
    }

    /// The error of a run that failed, and where the histories are.
    pub(crate) fn failed(self, error: io::Error) -> io::Error {
        let kept = self.end(true).unwrap_or_default();
        io::Error::other(format!("{error}\nhistories: {}", kept.display()))
    }
}
