//! A server's wall clock that steps when a test moves it.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::PathBuf,
    process::{self, Command},
    sync::LazyLock,
    time::UNIX_EPOCH,
};

use ringfence_coordinator::spawn::RedisServerBuilder;
use tempfile::TempDir;

/// Compiled once per process. The file has no name any more, so nothing of it is left behind.
static SHIM: LazyLock<File> = LazyLock::new(|| {
    let dir = TempDir::with_prefix("ringfence-clock-").unwrap();
    let [source, library] = ["shim.c", "shim.so"].map(|name| dir.path().join(name));
    fs::write(&source, include_str!("wall_clock.c")).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]);
    let compiled = compile.arg(&library).arg(&source).status();
    let compiled = compiled.expect("missing: cc, a C compiler (Debian: apt-get install gcc)");
    assert!(compiled.success(), "cc: {compiled}");
    File::open(library).unwrap()
});

/// One server's wall clock: as the machine's at first.
#[derive(Debug)]
pub struct WallClock {
    dir: TempDir,
    file: File,
    /// Microseconds; 0: it runs.
    stopped_at: i64,
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new(0)
    }
}

impl WallClock {
    /// A clock that stands still but when a test moves it.
    pub fn stopped() -> Self {
        Self::new(UNIX_EPOCH.elapsed().unwrap().as_micros() as i64)
    }

    fn new(stopped_at: i64) -> Self {
        let dir = TempDir::with_prefix("ringfence-clock-").unwrap();
        let file = File::create(dir.path().join("clock")).unwrap();
        let stands = i64::from(stopped_at > 0).to_ne_bytes();
        file.write_all_at(&stands, 8).unwrap();
        let clock = Self {
            dir,
            file,
            stopped_at,
        };
        clock.set_millis(0);
        clock
    }

    /// Makes the server use this clock.
    #[must_use]
    pub fn set_up(&self, builder: RedisServerBuilder) -> RedisServerBuilder {
        let shim = format!("/proc/{}/fd/{}", process::id(), SHIM.as_raw_fd());
        let clock: PathBuf = self.dir.path().join("clock");
        builder
            .env("LD_PRELOAD", shim)
            .env("RINGFENCE_CLOCK", clock)
            // It waits by the machine's clock until a time of this one: behind it, it would not wait at all.
            .set("jemalloc-bg-thread", "no")
    }

    /// Sets the clock `millis` ahead of the machine's clock, or of the time at which it was stopped.
    pub fn set_millis(&self, millis: i64) {
        let micros = (self.stopped_at + millis * 1000).to_ne_bytes();
        self.file.write_all_at(&micros, 0).unwrap();
    }
}
