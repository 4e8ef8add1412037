//! A power cut's effect on an append-only file: its end is missing.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use ringfence_coordinator::spawn::RedisServer;

/// The part of a server's append-only file that is on the disk.
#[derive(Debug)]
pub struct OnDisk {
    file: PathBuf,
    length: u64,
}

impl OnDisk {
    /// The bytes that `server` has written so far. It appends, and has not rewritten the file yet.
    pub fn now(server: &RedisServer) -> Self {
        let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        let file = files
            .find(|file| file.to_string_lossy().ends_with(".incr.aof"))
            .expect("the server appends");
        let length = fs::metadata(&file).unwrap().len();
        Self { file, length }
    }

    /// Removes the bytes appended since, except for the first `torn` ones. The server is dead.
    pub fn cut(&self, torn: u64) {
        let file = File::options().write(true).open(&self.file).unwrap();
        let was = file.metadata().unwrap().len();
        assert!(was > self.length + torn, "nothing to cut off");
        file.set_len(self.length + torn).unwrap();
    }
}
