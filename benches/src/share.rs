use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Half a processor, for processes to share: a control group of Linux, which only root may make.
///
/// With half a processor for each shard, a machine of few cores shows what more shards bring: shards are the scarce resource, and
/// not the client.
#[derive(Debug)]
pub(crate) struct HalfShare(PathBuf);

/// Where the groups for processors are, by version 2 and by version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"];

/// Half of this may be used, then nothing until the next begins, in µs: short, so that nobody waits long.
const PERIOD_US: u32 = 4_000;

impl HalfShare {
    /// One that nobody uses yet. `name`: unlike others on this machine.
    ///
    /// # Errors
    ///
    /// There are no such groups here, or the system refuses.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for root in ROOTS {
            let group = Path::new(root).join(name);
            match fs::create_dir(&group).and_then(|()| Self(group).limited()) {
                Ok(group) => return Ok(group),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// `process` has no more than its part of this from now on.
    ///
    /// # Errors
    ///
    /// The process is gone, or the system refuses.
    pub(crate) fn admit(&self, process: u32) -> io::Result<()> {
        self.write("cgroup.procs", process)
    }

    /// Dropped, and so removed, if it cannot be.
    fn limited(self) -> io::Result<Self> {
        let half = PERIOD_US / 2;
        if self.0.join("cpu.max").exists() {
            self.write("cpu.max", format!("{half} {PERIOD_US}"))?;
        } else {
            self.write("cpu.cfs_period_us", PERIOD_US)?;
            self.write("cpu.cfs_quota_us", half)?;
        }
        Ok(self)
    }

    /// The file must be there: not every directory is a control group.
    fn write(&self, file: &str, value: impl ToString) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).open(self.0.join(file))?;
        io::Write::write_all(&mut file, value.to_string().as_bytes())
    }
}

impl Drop for HalfShare {
    fn drop(&mut self) {
        // Of a process that still runs it stays.
        let _ = fs::remove_dir(&self.0);
    }
}
