//! Processes and files that tests left behind.
//!
//! Every process that the gate starts, and that these start in turn, has the gate's mark in its environment. It makes its
//! temporary files in the gate's directory, which goes with them: a browser that is killed cannot remove its own. The data of
//! databases is in memory. A port is open only as long as its process lives.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// The environment variable whose value is the gate's mark.
pub(crate) const MARK: &str = "RINGFENCE_GATE";
/// Where tests keep the data of databases, in directories whose names begin so.
const MEMORY: (&str, &str) = ("/dev/shm", "ringfence-");
/// The time that servers have to end after their tests.
const END_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// The directories in memory that are there now.
pub(crate) fn in_memory() -> HashSet<PathBuf> {
    let (memory, prefix) = MEMORY;
    let entries = fs::read_dir(memory).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    ours.map(|entry| entry.path()).collect()
}

/// Kills the processes and removes the files that are left, but for those that were there `before`, and describes each.
pub(crate) async fn clear(mark: &str, tmp: &TempDir, before: &HashSet<PathBuf>) -> Vec<String> {
    let mut left = Vec::new();
    for (process, command) in still_running(mark).await {
        left.push(format!("process {process}: {command}"));
        // It may have ended just now.
        let _ = kill(process, Signal::SIGKILL);
    }
    left.extend(in_memory().difference(before).map(|path| remove(path)));
    let entries = fs::read_dir(tmp.path()).into_iter().flatten().flatten();
    for entry in entries {
        remove(&entry.path());
    }
    left
}

/// Processes with the mark that do not end in time.
async fn still_running(mark: &str) -> Vec<(Pid, String)> {
    let deadline = Instant::now() + END_WITHIN;
    loop {
        let found = marked(mark);
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        sleep(POLL).await;
    }
}

fn marked(mark: &str) -> Vec<(Pid, String)> {
    let mark = format!("{MARK}={mark}");
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| own != id.unsigned_abs())
        .filter_map(|id| {
            let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables
                .any(|variable| variable == mark.as_bytes())
                .then_some(())?;
            let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            // A zombie has no command line, and no files or ports either.
            (!command.is_empty()).then(|| (Pid::from_raw(id), command))
        })
        .collect()
}

/// Removes a file or a directory, and describes it.
fn remove(path: &Path) -> String {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Ok(()) => format!("in memory: {}", path.display()),
        Err(error) => format!("{} cannot be removed: {error}", path.display()),
    }
}
