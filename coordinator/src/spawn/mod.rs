//! A separate `redis-server`: for tests, benches, and the demo's `--spawn-redis`.
//!
//! It ends with its value, and with this process, by any cause.

mod error;
mod process;

use std::{
    ffi::OsString,
    io,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use futures_util::future::BoxFuture;
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

pub use error::SpawnError;
use error::system;
pub use process::Process;

/// The number of free ports to try. Another process may take one first.
const ATTEMPTS_MAX: u32 = 5;
/// The time limit for a server's first answer: long enough for a busy machine to load an
/// append-only file.
const READY_WITHIN: Duration = Duration::from_secs(20);
const READY_POLL: Duration = Duration::from_millis(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The length of a server's log in an error.
const LOG_BYTES_MAX: usize = 2000;
/// The exit code of setpriv if it does not find the program.
const NOT_FOUND: i32 = 127;

/// The settings of a server, in addition to those of [`RedisServer::spawn`].
#[derive(Clone, Debug, Default)]
pub struct RedisServerBuilder {
    args: Vec<String>,
    env: Vec<(String, OsString)>,
    /// User, or none for the default one, and password.
    login: Option<(Option<String>, String)>,
}

impl RedisServerBuilder {
    /// Sets `directive`, as in redis.conf, to `value`.
    #[must_use]
    pub fn set(mut self, directive: &str, value: impl ToString) -> Self {
        self.args
            .extend([format!("--{directive}"), value.to_string()]);
        self
    }

    /// Has the server not know `command`, as a managed or hardened one.
    #[must_use]
    pub fn without(mut self, command: &str) -> Self {
        self.args
            .extend(["--rename-command", command, ""].map(str::to_owned));
        self
    }

    /// Sets the environment variable `name`.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Makes it a replica of the server on `port`.
    #[must_use]
    pub fn replica_of(mut self, port: u16) -> Self {
        self.args
            .extend(["--replicaof", "127.0.0.1", &port.to_string()].map(str::to_owned));
        self
    }

    /// Requires `password` from the default user: letters, digits and `-._~`.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.login = Some((None, password.to_owned()));
        self.set("requirepass", password)
    }

    /// Logs in as `user` with `password`, also in [`url`](RedisServer::url). An `aclfile` or a
    /// `user` directive must define the user. Letters, digits and `-._~`.
    #[must_use]
    pub fn login(mut self, user: &str, password: &str) -> Self {
        self.login = Some((Some(user.to_owned()), password.to_owned()));
        self
    }

    /// Starts the server on a free port, and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: each message names the remedy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the started server.
    pub fn spawn(self) -> BoxFuture<'static, Result<RedisServer, SpawnError>> {
        Box::pin(async move {
            let dir = TempDir::with_prefix("ringfence-redis-");
            let dir = dir.map_err(|source| system("make a directory", source))?;
            let mut server = RedisServer {
                builder: self,
                dir,
                port: 0,
                process: None,
            };
            let mut attempt = 1;
            loop {
                server.port = free_port()?;
                match server.start().await {
                    Err(SpawnError::Ended { .. }) if attempt < ATTEMPTS_MAX => attempt += 1,
                    started => return started.map(|()| server),
                }
            }
        })
    }
}

/// A server on 127.0.0.1 that lives as long as this value, and as this process.
///
/// It saves nothing by default; its files are deleted with it.
#[derive(Debug)]
pub struct RedisServer {
    builder: RedisServerBuilder,
    port: u16,
    process: Option<Process>,
    /// Removed after the process has ended: it writes there.
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server that saves nothing.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: each message names the remedy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the started server.
    pub async fn spawn() -> Result<Self, SpawnError> {
        Self::builder().spawn().await
    }

    /// A builder of a server.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// Its address, with the required login.
    pub fn url(&self) -> String {
        let login = match &self.builder.login {
            Some((user, password)) => {
                format!("{}:{password}@", user.as_deref().unwrap_or_default())
            }
            None => String::new(),
        };
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Kills it, as a crash would: data not on the disk is lost.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills it, if it runs, and starts it again: same port, same directory, same settings.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]; [`SpawnError::Ended`] also if another process took the port meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the server killed.
    pub async fn restart(&mut self) -> Result<(), SpawnError> {
        self.kill();
        self.start().await
    }

    /// Stops it (SIGSTOP): connections stay open, and nothing answers.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Continues it after [`stop`](Self::stop): it then handles all requests sent meanwhile.
    pub fn cont(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    async fn start(&mut self) -> Result<(), SpawnError> {
        let started = Process::start(self.command(), Signal::SIGKILL).await;
        let process = started.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SpawnError::NoSetpriv,
            _ => system("start redis-server", source),
        })?;
        let process = self.ready(process).await?;
        self.process = Some(process);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "redis-server"]);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--logfile",
            "redis.log",
            "--dir",
        ]);
        command.arg(self.dir.path()).args(&self.builder.args);
        command.envs(self.builder.env.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Ctrl-C is for this process, which releases its locks and then ends the server.
        command.process_group(0);
        command
    }

    /// Waits until *this* server answers, and not another one that took the port first.
    async fn ready(&self, mut process: Process) -> Result<Process, SpawnError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let ended = process.try_wait();
            match ended.map_err(|source| system("wait for redis-server", source))? {
                Some(status) if status.code() == Some(NOT_FOUND) => {
                    return Err(SpawnError::NoRedis);
                }
                Some(_) => return Err(SpawnError::Ended { log: self.log() }),
                None => {}
            }
            let probed = timeout(PROBE_TIMEOUT, self.probe()).await;
            if matches!(probed, Ok(Ok(Some(pid))) if pid == process.id()) {
                return Ok(process);
            }
            if Instant::now() >= deadline {
                return Err(SpawnError::Silent { log: self.log() });
            }
            sleep(READY_POLL).await;
        }
    }

    /// The process id of the server on the port, if it answers PING: a loading server does not.
    async fn probe(&self) -> io::Result<Option<u32>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let mut hello = String::new();
        if let Some((user, password)) = &self.builder.login {
            let auth = ["AUTH", user.as_deref().unwrap_or("default"), password];
            hello.push_str(&request(&auth));
        }
        hello.push_str(&request(&["INFO", "server"]));
        hello.push_str(&request(&["PING"]));
        stream.write_all(hello.as_bytes()).await?;

        let mut answer = Vec::new();
        while !answer.ends_with(b"+PONG\r\n") {
            let refused = answer.starts_with(b"-") || answer.windows(2).any(|pair| pair == b"\n-");
            if refused || stream.read_buf(&mut answer).await? == 0 {
                return Ok(None);
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let pid = answer
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"));
        Ok(pid.and_then(|pid| pid.parse().ok()))
    }

    fn log(&self) -> String {
        let log = std::fs::read(self.dir.path().join("redis.log")).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_BYTES_MAX)..];
        String::from_utf8_lossy(tail).into_owned()
    }
}

/// A command in the wire format.
fn request(words: &[&str]) -> String {
    let words = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<String>())
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, SpawnError> {
    let probe = TcpListener::bind(("127.0.0.1", 0)).and_then(|probe| probe.local_addr());
    probe
        .map(|address| address.port())
        .map_err(|source| system("find a free port", source))
}
