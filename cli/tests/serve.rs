//! `ringfence serve`: the process, on real servers, and its settings.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_api::{
    Error, Reason,
    v1::{AcquireRequest, ReleaseRequest, lock_service_client::LockServiceClient},
};
use ringfence_test_support::{Servers, eventually};
use tempfile::NamedTempFile;
use tonic::transport::Channel;

use crate::binary::{command, ringfence, ringfence_with};

/// A coordinator of its own, which is killed when it is dropped.
struct Coordinator {
    process: Child,
    url: String,
    _settings: NamedTempFile,
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn settings(servers: &Servers, more: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "listen = \"127.0.0.1:0\"\n{more}").unwrap();
    for (index, url) in servers.urls().iter().enumerate() {
        writeln!(file, "[shards.s{index}]\nurl = \"{url}\"").unwrap();
    }
    file
}

impl Coordinator {
    fn start(servers: &Servers, more: &str) -> Self {
        let settings = settings(servers, more);
        let mut serve = command(&["serve", "-c", settings.path().to_str().unwrap()]);
        let mut process = serve
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("serves on ").unwrap();
        Self {
            url: format!("http://{address}"),
            process,
            _settings: settings,
        }
    }

    async fn locks(&self) -> LockServiceClient<Channel> {
        LockServiceClient::connect(self.url.clone()).await.unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }
}

async fn founded() -> Servers {
    let servers = Servers::spawn(3).await;
    let urls = servers.urls().join(",");
    let founded = ringfence(&["ring", "init", "--servers-are-new", "--redis", &urls]);
    assert_eq!(founded.code, 0, "{founded:?}");
    servers
}

fn ask(key: &str, lease: Duration) -> AcquireRequest {
    AcquireRequest {
        key: key.into(),
        lease: Some(lease.try_into().unwrap()),
        ..AcquireRequest::default()
    }
}

#[tokio::test]
async fn two_coordinators_exclude_each_other_and_a_killed_one_loses_no_time() {
    let servers = founded().await;
    let (mut one, two) = (
        Coordinator::start(&servers, ""),
        Coordinator::start(&servers, ""),
    );
    let lease = Duration::from_secs(2);
    let held = one.locks().await.acquire(ask("key", lease)).await.unwrap();
    let held = held.into_inner();
    let mut once = ask("key", lease);
    once.wait = Some(Duration::ZERO.try_into().unwrap());
    let refused = two.locks().await.acquire(once).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).reason, Reason::Held);

    one.process.kill().unwrap();
    one.process.wait().unwrap();
    let next = two.locks().await.acquire(ask("key", lease)).await.unwrap();
    assert!(next.into_inner().token > held.token);
}

#[tokio::test]
async fn sigterm_stops_it_once_its_locks_are_released() {
    let servers = founded().await;
    let mut coordinator = Coordinator::start(&servers, "grace = \"1m\"");
    let mut locks = coordinator.locks().await;
    let held = locks.acquire(ask("key", Duration::from_secs(20))).await;
    let handle = held.unwrap().into_inner().handle;
    coordinator.signal(Signal::SIGTERM);
    let stopping = async |mut locks: LockServiceClient<Channel>| {
        let mut once = ask("other", Duration::from_secs(1));
        once.wait = Some(Duration::ZERO.try_into().unwrap());
        let refused = locks.acquire(once).await;
        refused.is_err_and(|status| Error::from_status(&status).reason == Reason::Stopping)
    };
    eventually("no new locks", || stopping(locks.clone())).await;
    locks.release(ReleaseRequest { handle }).await.unwrap();
    let status = tokio::task::spawn_blocking(move || coordinator.process.wait());
    let status = status.await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn servers_without_a_topology_exit_69() {
    let servers = Servers::spawn(1).await;
    let settings = settings(&servers, "");
    let ran = ringfence(&["serve", "-c", settings.path().to_str().unwrap()]);
    assert_eq!(ran.code, 69, "{ran:?}");
}

#[test]
fn bad_settings_exit_64_with_every_problem() {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "listen = \"0.0.0.0:0\"\ngrace = 5\nunheard = 1").unwrap();
    let path = file.path().to_str().unwrap();
    for verb in [&["serve"][..], &["config", "check"]] {
        let ran = ringfence(&[verb, &["-c", path]].concat());
        assert_eq!(ran.code, 64, "{ran:?}");
        for part in ["listen is", "grace is", "shards is empty", "unheard"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
    }
    let variables = [("RINGFENCE__SHARDS__A__URL", "redis://127.0.0.1")];
    let ran = ringfence_with(&["config", "check", "--listen", "127.0.0.1:9"], &variables);
    assert_eq!(
        ran.stdout, "good: serves on 127.0.0.1:9, shards: 1\n",
        "{ran:?}"
    );
}
