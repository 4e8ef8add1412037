//! What all that the gate starts has in common.

use std::{
    cell::Cell,
    collections::HashSet,
    env, fs, io,
    num::NonZero,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread::available_parallelism,
    time::{Duration, UNIX_EPOCH},
};

use nix::sys::statvfs::statvfs;
use tempfile::TempDir;
use tokio::process::Command;

use crate::leftovers::{self, MARK};

/// Where the gate runs, and with which settings.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    /// The temporary files of all tests.
    pub(crate) tmp: TempDir,
    /// In the environment of everything that it starts.
    pub(crate) mark: String,
    logs: TempDir,
    /// Directories in memory that others made.
    pub(crate) in_memory: HashSet<PathBuf>,
    /// What random tests begin with.
    pub(crate) seed: Cell<u64>,
    /// Jobs at a time.
    pub(crate) jobs: usize,
    /// Tests at a time, of one binary.
    threads: usize,
}

/// Jobs at a time: no more than there are cores.
const JOBS_MAX: usize = 3;

impl Context {
    /// For the checkout at `root`.
    pub(crate) fn new(root: PathBuf) -> io::Result<Self> {
        let tmp = TempDir::with_prefix("ringfence-gate-")?;
        // Servers that root starts run as other users.
        fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o755))?;
        let now = UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
        let cores = available_parallelism().map_or(1, NonZero::get);
        let asked = env::var("RUST_TEST_THREADS").ok();
        Ok(Self {
            root,
            tmp,
            mark: format!("{}-{}", std::process::id(), now.as_millis()),
            seed: Cell::new(now.as_micros() as u64 % 1_000_000_000),
            // More would have each take longer: what they wait for has limits of a second.
            jobs: cores.min(JOBS_MAX),
            threads: asked
                .and_then(|asked| asked.parse().ok())
                .unwrap_or(2 * cores),
            logs: TempDir::with_prefix("ringfence-gate-logs-")?,
            in_memory: leftovers::in_memory(),
        })
    }

    /// A file for the output of what is called `name`.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs.path().join(name)
    }

    /// The bytes that are free where it builds.
    pub(crate) fn free_disk(&self) -> io::Result<u64> {
        let disk = statvfs(&self.root)?;
        Ok(disk.blocks_available() * disk.fragment_size())
    }

    /// A command in the checkout.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(&self.root)
            .env(MARK, &self.mark)
            .env("TMPDIR", self.tmp.path())
            .env("RUST_TEST_THREADS", self.threads.to_string());
        command
    }
}
