//! The coordinator: started, its memory, stopped.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_server::token_digest;
use ringfence_test_support::{Secured, Servers};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::Attack;

/// The default.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// How long a process may take to start, an attack to be at its height, and a coordinator to end before it is killed.
const WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The tokens of the callers: of one that means well, of one with many roles that does not, and of one with few.
pub(super) const GOOD: &str = "token-of-the-good-caller";
pub(super) const ATTACKER: &str = "token-of-the-attacker";
pub(super) const OUTSIDER: &str = "token-of-the-outsider";

/// A coordinator of its own, on servers of its own. Everything ends with this value.
pub(super) struct Target {
    pub(super) service: SocketAddr,
    pub(super) monitor: SocketAddr,
    /// Its certificates, if it has some.
    pub(super) secured: Option<Secured>,
    process: Child,
    /// They end after it.
    _servers: Servers,
    dir: TempDir,
}

/// The process of an attack. It is killed when this is dropped.
pub(super) struct Attacker {
    _process: Child,
    said: Arc<Said>,
    _reads: JoinSet<()>,
}

#[derive(Default)]
struct Said {
    sent: AtomicU64,
    is_on: AtomicBool,
}

impl Attacker {
    pub(super) fn sent(&self) -> u64 {
        self.said.sent.load(Relaxed)
    }
}

impl Target {
    /// Starts a coordinator for `attack`, with the default limits.
    ///
    /// # Errors
    ///
    /// It does not serve.
    pub(super) async fn start(ringfence: &Path, attack: Attack) -> io::Result<Self> {
        let servers = Servers::spawn(2).await;
        let urls = servers.urls().join(",");
        let mut found = Command::new(ringfence);
        found.args(["ring", "init", "--servers-are-new", "--redis", &urls]);
        let found = found.output().await?;
        if !found.status.success() {
            let said = String::from_utf8_lossy(&found.stderr).into_owned();
            return Err(io::Error::other(said));
        }
        let dir = TempDir::with_prefix("ringfence-attack-")?;
        let secured = attack.over_tls().then(Secured::default);
        let monitor = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let file = dir.path().join("ringfence.toml");
        fs::write(&file, settings(&servers, monitor, secured.as_ref()))?;
        let mut serve = ends_with_this();
        if let Some(descriptors) = attack.descriptors() {
            serve.arg("prlimit").arg(format!("--nofile={descriptors}"));
        }
        serve.arg(ringfence).arg("serve").arg("-c").arg(&file);
        let log = fs::File::create(dir.path().join("log"))?;
        serve.stdout(Stdio::piped()).stderr(log);
        let mut process = serve.spawn()?;
        let mut lines = BufReader::new(out_of(&mut process)).lines();
        let line = timeout(WITHIN, lines.next_line()).await??;
        let service = line
            .as_deref()
            .and_then(|line| line.strip_prefix("serves on "));
        let Some(Ok(service)) = service.map(str::parse) else {
            let log = fs::read_to_string(dir.path().join("log"))?;
            return Err(io::Error::other(format!("it does not serve: {log}")));
        };
        Ok(Self {
            service,
            monitor,
            secured,
            process,
            _servers: servers,
            dir,
        })
    }

    /// Begins `attack`, and waits until it is at its height.
    ///
    /// # Errors
    ///
    /// The attacker cannot be started, or does not get there.
    pub(super) async fn attacked_by(&self, attack: Attack) -> io::Result<Attacker> {
        let mut command = ends_with_this();
        command
            .args(["nice", "-n", "19"])
            .arg(std::env::current_exe()?)
            .args(["attacker", &attack.name()])
            .args(["--service", &self.service.to_string()])
            .args(["--monitor", &self.monitor.to_string()]);
        if let Some(secured) = &self.secured {
            command.arg("--authority").arg(secured.path("ca.pem"));
        }
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(out_of(&mut process)).lines();
        let said = Arc::<Said>::default();
        let mut reads = JoinSet::new();
        let hears = said.clone();
        reads.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let (sent, is_on) = line.split_once(' ').unwrap_or_default();
                hears.sent.store(sent.parse().unwrap_or_default(), Relaxed);
                hears.is_on.store(is_on == "on", Relaxed);
            }
        });
        let until = Instant::now() + WITHIN;
        while !said.is_on.load(Relaxed) {
            if Instant::now() > until || process.try_wait()?.is_some() {
                return Err(io::Error::other(format!(
                    "{}: it never began",
                    attack.name()
                )));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(Attacker {
            _process: process,
            said,
            _reads: reads,
        })
    }

    /// Ends it by SIGTERM. Returns its memory at its peak, in bytes, and how long it took to end.
    ///
    /// # Errors
    ///
    /// It had ended by itself, or fails.
    pub(super) async fn stop(&mut self) -> io::Result<(u64, Duration)> {
        let pid = self.process.id();
        let pid = pid.ok_or_else(|| io::Error::other("the coordinator ended by itself"))?;
        let mut peak = peak_of(pid).unwrap_or_default();
        let began = Instant::now();
        kill(Pid::from_raw(pid as i32), Signal::SIGTERM)?;
        let status = loop {
            if let Some(status) = self.process.try_wait()? {
                break status;
            }
            peak = peak_of(pid).map_or(peak, |now| now.max(peak));
            if began.elapsed() > WITHIN {
                self.process.kill().await?;
            }
            sleep(LOOK_EVERY).await;
        };
        if !status.success() {
            let log = fs::read_to_string(self.dir.path().join("log"))?;
            return Err(io::Error::other(format!(
                "the coordinator: {status}: {log}"
            )));
        }
        Ok((peak, began.elapsed()))
    }
}

/// A command that is killed with this process, however that ends.
fn ends_with_this() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn out_of(process: &mut Child) -> ChildStdout {
    process.stdout.take().expect("it is a pipe")
}

/// The peak of the resident memory of a process, in bytes. None: it has ended.
fn peak_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

fn settings(servers: &Servers, monitor: SocketAddr, secured: Option<&Secured>) -> String {
    let mut settings = format!("listen = \"127.0.0.1:0\"\nmonitor = \"{monitor}\"\n");
    for (name, url) in ('a'..).zip(servers.urls()) {
        settings += &format!("[shards.{name}]\nurl = \"{url}\"\n");
    }
    if let Some(secured) = secured {
        let (cert, key) = (secured.path("server.pem"), secured.path("server.key"));
        settings += &format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    }
    for (name, token, roles) in [
        ("good", GOOD, "acquire = [\"good/\"]"),
        (
            "attacker",
            ATTACKER,
            "acquire = [\"attack/\"]\nread = [\"*\"]",
        ),
        ("outsider", OUTSIDER, "acquire = [\"elsewhere/\"]"),
    ] {
        let digest = token_digest(token)
            .map(|byte| format!("{byte:02x}"))
            .concat();
        settings += &format!("[principals.{name}]\nsha256 = \"{digest}\"\n{roles}\n");
    }
    settings
}
