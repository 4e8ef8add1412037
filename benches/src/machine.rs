use std::{fmt, fs, process::Command, thread, time::Duration};

use serde::Serialize;

/// Where a bench ran, and what of: a number without these means nothing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Processors.
    pub(crate) cores: usize,
    /// Their model.
    pub(crate) cpu: String,
    /// The source's git revision; `+` if the working tree differed from it.
    pub(crate) revision: String,
}

impl Machine {
    /// This machine, and the revision of the directory the bench was started in.
    pub(crate) fn here() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let revision = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "none".into());
        let changed = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
        Self {
            cores: thread::available_parallelism().map_or(0, usize::from),
            cpu: model.map_or_else(|| "unknown".into(), |(_, model)| model.to_owned()),
            revision: if changed {
                format!("{revision}+")
            } else {
                revision
            },
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cores,
            cpu,
            revision,
        } = self;
        write!(formatter, "{cores} cores, {cpu}, revision {revision}")
    }
}

/// Processor time that this machine has spent on anything since it started, in steps of 10 ms.
/// What a hypervisor took away counts as well.
pub(crate) fn busy_time() -> Duration {
    /// A tick of `/proc/stat`, on every architecture that Rust runs on.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let ticks: Vec<u32> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    let busy = ticks
        .iter()
        .take(8)
        .enumerate()
        .filter(|(column, _)| ![3, 4].contains(column));
    TICK * busy.map(|(_, ticks)| ticks).sum::<u32>()
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
