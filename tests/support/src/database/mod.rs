//! Databases of one's own, as durable as they are by default: each commit is on disk before it is
//! answered. The disks of etcd and ZooKeeper are memory, if there is room.
//!
//! They listen on a socket in their own directory, and on a port of 127.0.0.1, and end with the
//! value that stands for them, or with this process. Neither runs as root: where this process does,
//! they run as nobody.

mod division;
pub mod etcd;
mod links;
pub mod mariadb;
pub mod pgbouncer;
pub mod postgresql;
pub mod zookeeper;

use std::{
    env, fs,
    ops::Range,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};

use nix::{
    sys::{
        signal::{Signal, kill},
        statvfs::{Statvfs, statvfs},
    },
    unistd::Pid,
};
use ringfence_coordinator::{random::Random, spawn::Process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{PATIENCE, POLL, Secured, eventually};

/// Called nobody, and nogroup, wherever the standard base is followed.
const NOBODY: u32 = 65534;

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// So many bytes must be free there: a container often has 64 MiB.
const MEMORY_NEEDED: u64 = 4 << 30;

/// A server's data directory, and its owner.
struct Home {
    dir: TempDir,
    /// Whether root would run the server: then nobody does.
    as_nobody: bool,
    /// Processes that were killed. Until they have ended, they have the server's memory and files.
    killed: Vec<u32>,
}

impl Home {
    fn new(prefix: &str) -> Self {
        Self::of(TempDir::with_prefix(prefix).unwrap())
    }

    /// In memory, where the system has room for that: nothing waits for a disk.
    fn in_memory(prefix: &str) -> Self {
        let free = |shm: Statvfs| shm.blocks_available() * shm.fragment_size();
        let has_room = statvfs(MEMORY).is_ok_and(|shm| free(shm) >= MEMORY_NEEDED);
        match TempDir::with_prefix_in(prefix, MEMORY) {
            Ok(dir) if has_room => Self::of(dir),
            _ => Self::new(prefix),
        }
    }

    fn of(dir: TempDir) -> Self {
        let as_nobody = dir.path().metadata().unwrap().uid() == 0;
        if as_nobody {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self {
            dir,
            as_nobody,
            killed: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Copies the server's files of TLS, for its user alone: the certificate, its key, and the authority.
    fn tls(&self, files: &Secured) -> [PathBuf; 3] {
        ["server.pem", "server.key", "ca.pem"].map(|name| {
            let path = self.path(name);
            fs::copy(files.path(name), &path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if self.as_nobody {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            path
        })
    }

    /// `program`, run by a user that may. It gets `signal` when this process ends.
    fn command(&self, program: impl AsRef<Path>, signal: Signal) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", signal.as_str().trim_start_matches("SIG")]);
        if self.as_nobody {
            let nobody = NOBODY.to_string();
            command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        }
        command.arg(program.as_ref());
        // A user other than root may lack the server's folder on its PATH.
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        // MariaDB empties it of temporary tables when it starts: others', where it is shared.
        command.env("TMPDIR", self.dir.path());
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs what makes an empty database, to its end.
    async fn prepare(&self, command: Command) {
        let shown = format!("{command:?}");
        let mut command = tokio::process::Command::from(command);
        let output = command.kill_on_drop(true).output().await;
        let output = output.expect("setpriv is installed (util-linux)");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "scripts/test installs databases; {shown}: {said}"
        );
    }

    /// Kills a server, and all processes that it started.
    fn kill(&mut self, server: &Process) {
        self.killed = signal_all(server, Signal::SIGKILL);
    }

    /// Starts a server, which `end_by` ends, and waits until `answers`.
    async fn start(
        &self,
        mut command: Command,
        end_by: Signal,
        mut answers: impl AsyncFnMut() -> bool,
    ) -> Process {
        let log = fs::File::create(self.path("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        // Ctrl-C is for us: the server ends when we do.
        command.process_group(0);
        let all_ended = async || self.killed.iter().all(|id| has_ended(*id));
        eventually("all that was killed has ended", all_ended).await;
        let mut process = Process::start(command, end_by).await.unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !answers().await {
            let ended = process.try_wait().unwrap();
            if ended.is_some() || Instant::now() >= deadline {
                let log = fs::read_to_string(self.path("log")).unwrap_or_default();
                panic!("no server after all ({ended:?}); its log:\n{log}");
            }
            sleep(POLL).await;
        }
        process
    }
}

/// Sends `signal` to a server and to all processes that it started. Returns their ids.
fn signal_all(server: &Process, signal: Signal) -> Vec<u32> {
    let mut all = vec![server.id()];
    // It starts no others meanwhile.
    send(server.id(), Signal::SIGSTOP);
    let parents: Vec<(u32, u32)> = processes();
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        all.extend(children.map(|(id, _)| *id));
        next += 1;
    }
    for id in all.iter().rev() {
        send(*id, signal);
    }
    all
}

/// Whether a process has no memory and no files any more.
fn has_ended(id: u32) -> bool {
    stat(id).is_none_or(|(state, _)| state == "Z")
}

/// The state of a process, and its parent.
fn stat(id: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses, and may have any.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn send(id: u32, signal: Signal) {
    // It may have ended.
    let _ = kill(Pid::from_raw(id as i32), signal);
}

/// All processes, and their parents.
fn processes() -> Vec<(u32, u32)> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, stat(id)?.1))).collect()
}

/// A port that was free a moment ago. It is none of those that the system gives to connections, and to listeners without a
/// wish: one of them would take it before the server does. Each process goes through them from another one on.
pub fn free_port() -> u16 {
    const PORTS: Range<u16> = 12_000..32_000;
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let first = Random::from_os().below(PORTS.len() as u64);
        AtomicU16::new(first as u16)
    });
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = PORTS.map(|_| PORTS.start + NEXT.fetch_add(1, Relaxed) % PORTS.len() as u16);
    ports.find(is_free).expect("a port is free")
}
