//! Writes down what one process does, so that not even SIGKILL takes a line back.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use ringfence_client::{BootClock, Clock};

use super::{Deed, Event};

/// One process' part of a history. Every event is one `write` of one line, made before what follows
/// it is done.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    run: String,
    seed: u64,
    process: u32,
    ops: AtomicU64,
}

impl Recorder {
    /// A recorder for `process`, with a new file in `dir`.
    ///
    /// # Errors
    ///
    /// The file cannot be made; or is there already, so that the number was used before.
    pub fn create(dir: &Path, run: &str, seed: u64, process: u32) -> io::Result<Self> {
        let path = dir.join(format!("{process:05}.jsonl"));
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        Ok(Self {
            file,
            run: run.to_owned(),
            seed,
            process,
            ops: AtomicU64::new(1),
        })
    }

    /// A number for an operation, not used before.
    pub fn next_op(&self) -> u64 {
        self.ops.fetch_add(1, Relaxed)
    }

    /// Now, on the clock of all histories.
    pub fn now(&self) -> u64 {
        BootClock.now().as_nanos()
    }

    /// Records that `deed` happened now.
    ///
    /// # Panics
    ///
    /// If it cannot be written: a history with holes proves nothing.
    pub fn record(&self, deed: Deed) {
        self.record_at(self.now(), deed);
    }

    /// Records that `deed` happened at `t_ns`.
    ///
    /// # Panics
    ///
    /// As [`record`](Self::record).
    pub fn record_at(&self, t_ns: u64, deed: Deed) {
        let event = Event {
            run: self.run.clone(),
            seed: self.seed,
            process: self.process,
            t_ns,
            deed,
        };
        let mut line = serde_json::to_vec(&event).expect("an event has only texts and numbers");
        line.push(b'\n');
        (&self.file)
            .write_all(&line)
            .expect("histories need a directory that can be written to");
    }
}
