//! What a power cut does to an append-only file: its end is missing.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use ringfence_coordinator::spawn::RedisServer;

/// As much of a server's append-only file as the disk has.
#[derive(Debug)]
pub struct OnDisk {
    file: PathBuf,
    length: u64,
}

impl OnDisk {
    /// What `server`, which appends and has rewritten nothing yet, has written until now.
    pub fn now(server: &RedisServer) -> Self {
        let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        let file = files
            .find(|file| file.to_string_lossy().ends_with(".incr.aof"))
            .expect("the server appends");
        let length = fs::metadata(&file).unwrap().len();
        Self { file, length }
    }

    /// Takes away what was appended since, but for the first `torn` bytes of it. The server is dead.
    pub fn cut(&self, torn: u64) {
        let file = File::options().write(true).open(&self.file).unwrap();
        let was = file.metadata().unwrap().len();
        assert!(was > self.length + torn, "nothing to cut off");
        file.set_len(self.length + torn).unwrap();
    }
}
