//! What one process asked and was told, written down so that not even SIGKILL takes a line back.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use ringfence_client::{BootClock, Clock as _};
use serde::{Deserialize, Serialize};

use super::{Answer, Call};

/// One process' log. A line is one `write`, made before what follows it is done.
#[derive(Debug)]
pub struct Log {
    file: File,
    calls: AtomicU64,
}

/// A line of a log.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which call of the process.
    call: u64,
    /// When, on the clock of all processes of one machine.
    t_ns: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Asked(Call),
    Answered(Answer),
}

/// A call, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What was asked.
    pub call: Call,
    /// Before it was.
    pub asked_ns: u64,
    /// What was answered, and after it was; nothing if the process was killed before that.
    pub answered: Option<(u64, Answer)>,
}

impl Log {
    /// The log of `process`, in a new file in `dir`.
    ///
    /// # Errors
    ///
    /// The file cannot be made; or is there already, so that the number was used before.
    pub fn create(dir: &Path, process: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true);
        Ok(Self {
            file: file.open(path(dir, process))?,
            calls: AtomicU64::new(0),
        })
    }

    /// `call` is about to be made. Answers its number.
    ///
    /// # Panics
    ///
    /// If it cannot be written: a log with holes proves nothing.
    pub fn asked(&self, call: &Call) -> u64 {
        let number = self.calls.fetch_add(1, Relaxed);
        self.write(number, What::Asked(call.clone()));
        number
    }

    /// The call of that number was answered.
    ///
    /// # Panics
    ///
    /// As [`asked`](Self::asked).
    pub fn answered(&self, number: u64, answer: &Answer) {
        self.write(number, What::Answered(answer.clone()));
    }

    fn write(&self, call: u64, what: What) {
        let t_ns = BootClock.now().as_nanos();
        let line = Line { call, t_ns, what };
        let mut line = serde_json::to_vec(&line).expect("a line has only texts and numbers");
        line.push(b'\n');
        (&self.file)
            .write_all(&line)
            .expect("logs need a directory that can be written to");
    }
}

fn path(dir: &Path, process: u32) -> PathBuf {
    dir.join(format!("{process:05}.{EXTENSION}"))
}

const EXTENSION: &str = "calls";

/// Every call in the logs in `dir`.
///
/// # Errors
///
/// A file cannot be read, or has a line that is none of a log. A last line without its end is what a killed
/// process leaves, and is passed over.
pub fn read(dir: &Path) -> io::Result<Vec<Attempt>> {
    let mut attempts = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            read_file(&path, &mut attempts)?;
        }
    }
    Ok(attempts)
}

/// Every call of `process`, in their order.
///
/// # Errors
///
/// As [`read`].
pub(super) fn read_process(dir: &Path, process: u32) -> io::Result<Vec<Attempt>> {
    let mut attempts = Vec::new();
    read_file(&path(dir, process), &mut attempts)?;
    Ok(attempts)
}

fn read_file(path: &Path, attempts: &mut Vec<Attempt>) -> io::Result<()> {
    let mut open: HashMap<u64, usize> = HashMap::new();
    let mut reader = BufReader::new(File::open(path)?);
    let mut text = String::new();
    while reader.read_line(&mut text)? > 0 && text.ends_with('\n') {
        let Line { call, t_ns, what } = serde_json::from_str(&text).map_err(|error| {
            let place = path.display();
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{place}: {error}: {text}"),
            )
        })?;
        match what {
            What::Asked(asked) => {
                open.insert(call, attempts.len());
                attempts.push(Attempt {
                    call: asked,
                    asked_ns: t_ns,
                    answered: None,
                });
            }
            What::Answered(answer) => {
                let at = open.remove(&call);
                let at = at.ok_or_else(|| io::Error::other("an answer to nothing"))?;
                attempts[at].answered = Some((t_ns, answer));
            }
        }
        text.clear();
    }
    Ok(())
}
