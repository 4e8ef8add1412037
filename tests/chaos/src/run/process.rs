//! Processes of this program: started, signalled, killed, waited for.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

/// Between two looks at what has become of it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Last lines of a log that an error tells: the directory is removed.
const LOG_LINES: usize = 40;

/// A process of ours. Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its number in the history.
    pub(crate) number: u32,
    log: PathBuf,
    child: Child,
}

/// What a process runs.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// This program, in that mode.
    This(&'static str),
    /// Another one.
    Other(PathBuf),
}

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stopped itself.
    Stopped,
    /// It killed itself.
    Killed,
    /// It came to its end.
    Ended,
    /// Nothing, in all that time.
    Going,
}

impl Process {
    /// Starts `program` with `args`; what it says goes to a file in `dir`.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn start(
        program: &Program,
        number: u32,
        dir: &Path,
        args: Vec<(&str, String)>,
    ) -> io::Result<Self> {
        let log = dir.join(format!("{number:05}.log"));
        // Gone with this process, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        match program {
            Program::This(mode) => command.arg(std::env::current_exe()?).arg(mode),
            Program::Other(path) => command.arg(path),
        };
        command.arg("--dir").arg(dir);
        command.arg("--process").arg(number.to_string());
        for (flag, value) in args {
            command.arg(flag).arg(value);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Self { number, log, child })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // It can only fail if there is no such process; and there is, until it is waited for.
            let _ = kill(pid, signal);
        }
    }

    /// Kills it; it must not have ended by itself. Waits for it.
    ///
    /// # Errors
    ///
    /// It had.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            return Err(self.by_itself(status));
        }
        self.kill().await
    }

    /// Sends SIGTERM, and waits for the end of the process.
    ///
    /// # Errors
    ///
    /// It failed, or has not ended by `until`.
    pub(crate) async fn ends_by_itself(&mut self, until: Instant) -> io::Result<()> {
        self.signal(Signal::SIGTERM);
        match self.fate(until).await? {
            // Killed: the signal came before its handler.
            Fate::Ended | Fate::Killed => Ok(()),
            fate => Err(self.fault(&format!("got SIGTERM, and is {fate:?}"))),
        }
    }

    /// Kills it, if it is there still.
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            Some(_) => Ok(()),
            None => self.child.kill().await,
        }
    }

    /// What becomes of it by `until`.
    ///
    /// # Errors
    ///
    /// It failed.
    pub(crate) async fn fate(&mut self, until: Instant) -> io::Result<Fate> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return match status.code() {
                    Some(0) => Ok(Fate::Ended),
                    None => Ok(Fate::Killed),
                    Some(_) => Err(self.by_itself(status)),
                };
            }
            if self.is_stopped() {
                return Ok(Fate::Stopped);
            }
            if Instant::now() >= until {
                return Ok(Fate::Going);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Whether it is stopped, and not continued yet.
    fn is_stopped(&self) -> bool {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let status = self.pid().map(|pid| waitid(Id::Pid(pid), flags));
        matches!(status, Some(Ok(WaitStatus::Stopped(..))))
    }

    fn pid(&self) -> Option<Pid> {
        self.child.id().map(|id| Pid::from_raw(id as i32))
    }

    fn by_itself(&self, status: ExitStatus) -> io::Error {
        self.fault(&format!("ended by itself ({status})"))
    }

    /// The error that the process `did` this, with the end of its log.
    pub(crate) fn fault(&self, did: &str) -> io::Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        io::Error::other(format!("process {} {did}\n{last}", self.number))
    }
}
