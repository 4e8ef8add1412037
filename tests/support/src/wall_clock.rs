//! A server's wall clock that steps when a test moves it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
    process::Command,
    sync::LazyLock,
};

use ringfence_coordinator::spawn::RedisServerBuilder;
use tempfile::TempDir;

const SHIM: &str = include_str!("wall_clock.c");

/// Compiled once per process.
static COMPILED: LazyLock<Vec<u8>> = LazyLock::new(compiled);

/// The difference between one server's wall clock and the machine's: 0 at first.
#[derive(Debug)]
pub struct WallClock {
    dir: TempDir,
    ahead: File,
}

impl Default for WallClock {
    fn default() -> Self {
        let dir = TempDir::with_prefix("ringfence-clock-").unwrap();
        let ahead = File::create(dir.path().join("ahead")).unwrap();
        let clock = Self { dir, ahead };
        clock.set_millis(0);
        fs::write(clock.path("shim.so"), &*COMPILED).unwrap();
        clock
    }
}

fn compiled() -> Vec<u8> {
    let dir = TempDir::with_prefix("ringfence-clock-").unwrap();
    let [source, shim] = ["shim.c", "shim.so"].map(|name| dir.path().join(name));
    fs::write(&source, SHIM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]);
    let compiled = compile.arg(&shim).arg(source).status();
    let compiled = compiled.expect("missing: cc, a C compiler (Debian: apt-get install gcc)");
    assert!(compiled.success(), "cc: {compiled}");
    fs::read(shim).unwrap()
}

impl WallClock {
    /// Makes the server use this clock.
    #[must_use]
    pub fn set_up(&self, builder: RedisServerBuilder) -> RedisServerBuilder {
        let [shim, ahead] = ["shim.so", "ahead"].map(|name| self.path(name));
        builder
            .env("LD_PRELOAD", shim)
            .env("RINGFENCE_CLOCK", ahead)
    }

    /// Sets the clock `millis` ahead of the machine's clock.
    pub fn set_millis(&self, millis: i64) {
        let micros = (millis * 1000).to_ne_bytes();
        self.ahead.write_all_at(&micros, 0).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
