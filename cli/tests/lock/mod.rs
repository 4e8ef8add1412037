//! `ringfence lock`, on real servers, with real processes and real signals.

mod codes;
mod command;
mod counter;
mod keep;
mod lease;
mod queue;
mod seeds;
mod several;
mod shares;
mod signals;
mod terminal;
mod waiting;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use crate::binary::{self, Output};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_client::Namespace;
use ringfence_coordinator::spawn::RedisServerBuilder;
use ringfence_test_support::{Servers, eventually};
use tempfile::TempDir;
use tokio::process::Child;

/// Servers with a topology, and a directory for what commands write.
struct Stage {
    servers: Servers,
    dir: TempDir,
}

impl Stage {
    /// `count` new shards, the first of which is the home.
    async fn set(count: usize, max_lease: Duration) -> Self {
        Self::set_with(count, max_lease, |builder| builder).await
    }

    async fn set_with(
        count: usize,
        max_lease: Duration,
        set_up: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
    ) -> Self {
        Self::on(Servers::spawn_with(count, set_up).await, max_lease, &[])
    }

    /// As [`set`](Self::set), with removal = leased: a view of the topology is believed for a sixth of `max_lease`.
    async fn leased(count: usize, max_lease: Duration) -> Self {
        let servers = Servers::spawn(count).await;
        Self::on(servers, max_lease, &["--removal", "leased"])
    }

    fn on(servers: Servers, max_lease: Duration, options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("servers"), servers.urls().join("\n")).unwrap();
        let stage = Self { servers, dir };
        let (lease, home) = (format!("{}ms", max_lease.as_millis()), stage.servers.urls());
        let init = ["ring", "init", "--servers-are-new", "--max-lease", &lease];
        let at = ["--topology", &home[0], "--redis-file", &stage.file()];
        let founded = binary::ringfence(&[&init[..], &at, options].concat());
        assert_eq!(founded.code, 0, "{founded:?}");
        stage
    }

    /// The file that names the servers.
    fn file(&self) -> String {
        self.path("servers").display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `ringfence lock` in the directory, with `options` and, if there is any, a command.
    fn lock(&self, key: &str, options: &[&str], run: &[&str]) -> Command {
        let file = self.file();
        let mut args = vec!["lock", key, "--redis-file", &file];
        args.extend(options);
        if !run.is_empty() {
            args.push("--");
            args.extend(run);
        }
        let mut command = binary::command(&args);
        command.current_dir(self.dir.path());
        command
    }

    /// Runs it to its end.
    fn run(&self, key: &str, options: &[&str], run: &[&str]) -> Output {
        binary::output(&mut self.lock(key, options, run))
    }

    /// Starts it.
    fn start(&self, key: &str, options: &[&str], run: &[&str]) -> Running {
        Running::start(self.lock(key, options, run))
    }

    /// What a command wrote to `name`, if anything.
    fn written(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until a command wrote a whole line to `name`.
    async fn line_of(&self, name: &str) -> String {
        let has_line = || async { self.written(name).contains('\n') };
        eventually(&format!("a line in {name}"), has_line).await;
        self.written(name).lines().next().unwrap().to_owned()
    }

    /// Whether the lock can be had at once.
    fn is_free(&self, key: &str) -> bool {
        let tried = self.run(key, &["--wait", "0s"], &["true"]);
        if tried.code != 0 {
            println!("{tried:?}");
        }
        tried.code == 0
    }

    /// A key on the `index`th shard.
    async fn key_on(&self, index: usize) -> String {
        let client = self.servers.client().await;
        let shard = ringfence_coordinator::topology::shard_id(index);
        let on_shard = |key: &String| client.shard_of(&Namespace::default(), key).unwrap() == shard;
        let key = (0..).map(|n| format!("key/{n}")).find(on_shard).unwrap();
        client.close().await;
        key
    }
}

/// A `ringfence` under way; killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        Self(command.kill_on_drop(true).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().unwrap() as i32)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Its state, as `/proc` has it; none once it has ended.
    pub(crate) fn state(&self) -> Option<char> {
        state(&self.0.id()?.to_string())
    }

    /// Waits until it ends.
    pub(crate) async fn output(self) -> Output {
        let output = self.0.wait_with_output();
        let output = tokio::time::timeout(Duration::from_secs(120), output).await;
        let output = output.expect("it ends by itself").unwrap();
        Output {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Whether a process runs: not ended, and not waiting to be reaped.
pub(crate) fn runs(pid: &str) -> bool {
    state(pid).is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The state of a process, as `/proc` has it: `T` is stopped.
fn state(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Wall time, as `date` in a command has it.
fn unix() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "commands are compared by it")]
    let now = SystemTime::now();
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// What we said on stderr, beside the command.
fn our_lines(output: &Output) -> Vec<&str> {
    let lines = output.stderr.lines();
    lines
        .filter_map(|line| line.strip_prefix("ringfence: "))
        .collect()
}

/// The one thing we said on stderr.
fn our_line(output: &Output) -> &str {
    let [line] = our_lines(output)[..] else {
        panic!("{output:?}")
    };
    line
}
