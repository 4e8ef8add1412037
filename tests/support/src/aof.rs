//! An append-only file without its end: after a power cut, or an older copy of it.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use ringfence_coordinator::spawn::RedisServer;

/// The arguments of a command.
pub type Command = Vec<Vec<u8>>;

/// The part of a server's append-only file that is on the disk, or was there earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    file: PathBuf,
    length: u64,
}

impl OnDisk {
    /// The bytes that `server` has written so far. It appends, and has not rewritten the file yet.
    pub fn now(server: &RedisServer) -> Self {
        let file = appended_file(server);
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

    /// Removes every command that the file did not have completely at that time, and returns the complete ones in their
    /// order. The commands of a script stay together. The server is dead.
    pub fn go_back(&self) -> Vec<Command> {
        let bytes = fs::read(&self.file).unwrap();
        let (mut kept, mut at, mut is_open) = (0, 0, false);
        let (mut unit, mut removed) = (Vec::new(), Vec::new());
        while let Some((command, end)) = command_at(&bytes, at) {
            at = end;
            is_open = match command[0] {
                b"MULTI" => true,
                b"EXEC" => false,
                _ => is_open,
            };
            unit.push(command);
            if is_open {
                continue;
            }
            if at as u64 <= self.length {
                kept = at;
                unit.clear();
            } else {
                let owned = |command: Vec<&[u8]>| command.into_iter().map(Vec::from).collect();
                removed.extend(unit.drain(..).map(owned));
            }
        }
        let file = File::options().write(true).open(&self.file).unwrap();
        file.set_len(kept as u64).unwrap();
        removed
    }
}

/// The commands that a server appends from some time on, even if it gives the file up later.
#[derive(Debug)]
pub struct Appended(File);

impl Appended {
    /// From now on. `server` applies no command at this time, and does not rewrite its file.
    pub fn from_now_on(server: &RedisServer) -> Self {
        let mut file = File::open(appended_file(server)).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        Self(file)
    }

    /// The complete commands so far, in their order.
    pub fn commands(mut self) -> Vec<Command> {
        let (mut bytes, mut at, mut commands) = (Vec::new(), 0, Vec::new());
        self.0.read_to_end(&mut bytes).unwrap();
        while let Some((command, end)) = command_at(&bytes, at) {
            commands.push(command.into_iter().map(Vec::from).collect());
            at = end;
        }
        commands
    }
}

/// The file to which `server` appends.
fn appended_file(server: &RedisServer) -> PathBuf {
    let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap();
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let number = name.strip_suffix(".incr.aof")?.rsplit('.').next()?;
        number.parse::<u64>().ok()
    };
    let files = files.map(|file| file.unwrap().path());
    let numbered = files.filter(|path| number(path).is_some());
    numbered.max_by_key(number).expect("the server appends")
}

/// The command that begins at `at`, and its end; none if it is not complete.
fn command_at(bytes: &[u8], at: usize) -> Option<(Vec<&[u8]>, usize)> {
    let (count, mut at) = number_at(bytes, at, b'*')?;
    let mut command = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, begin) = number_at(bytes, at, b'$')?;
        command.push(bytes.get(begin..begin + length)?);
        at = begin + length + LINE_END;
    }
    (at <= bytes.len()).then_some((command, at))
}

/// The length of the end of a line.
const LINE_END: usize = 2;

/// The number of the line that begins at `at` with `sign`, and the line's end.
fn number_at(bytes: &[u8], at: usize, sign: u8) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let length = line.iter().position(|&byte| byte == b'\r')?;
    if bytes.len() < at + length + LINE_END {
        return None;
    }
    assert_eq!(line[0], sign, "an append-only file has commands only");
    let number = std::str::from_utf8(&line[1..length]).unwrap();
    Some((number.parse().unwrap(), at + length + LINE_END))
}
