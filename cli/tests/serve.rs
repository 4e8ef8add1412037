//! `ringfence serve`: the process, on real servers, and its settings.

use std::{
    fs::{self, File, Permissions},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::stream;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_api::{
    Error, Reason,
    v1::{
        AcquireAsk, AcquireRequest, AcquireResponse, Ask, Grant, LockMode, PingAsk, ReleaseOutcome,
        ReleaseRequest, RenewRequest, ResumeAsk, SessionRequest, SessionResponse, SessionTerms,
        answer, ask::Kind, lock_service_client::LockServiceClient,
        session_service_client::SessionServiceClient,
    },
};
use ringfence_client::{BootClock, Clock};
use ringfence_test_support::{Servers, eventually};
use tempfile::NamedTempFile;
use tonic::{Streaming, transport::Channel};

use crate::binary::{command, output, ringfence, ringfence_with};

/// A coordinator of its own, which is killed when it is dropped.
pub(crate) struct Coordinator {
    process: Child,
    pub(crate) url: String,
    settings: NamedTempFile,
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn settings(urls: &[String], more: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "listen = \"127.0.0.1:0\"\n{more}").unwrap();
    for (index, url) in urls.iter().enumerate() {
        writeln!(file, "[shards.s{index}]\nurl = \"{url}\"").unwrap();
    }
    file
}

impl Coordinator {
    pub(crate) fn start(servers: &Servers, more: &str) -> Self {
        Self::start_with(&servers.urls(), more, &[])
    }

    /// On the servers at `urls`.
    pub(crate) fn start_at(urls: &[String]) -> Self {
        Self::start_with(urls, "", &[])
    }

    pub(crate) fn start_with(urls: &[String], more: &str, environment: &[(&str, &str)]) -> Self {
        let settings = settings(urls, more);
        let mut serve = command(&["serve", "-c", settings.path().to_str().unwrap()]);
        serve.envs(environment.iter().copied());
        serve.stderr(Stdio::null());
        Self::of(serve, settings)
    }

    /// The log goes to the file `log`.
    pub(crate) fn start_logged(servers: &Servers, more: &str, log: &Path) -> Self {
        let settings = settings(&servers.urls(), more);
        let mut serve = command(&["serve", "-c", settings.path().to_str().unwrap()]);
        serve.stderr(File::create(log).unwrap());
        Self::of(serve, settings)
    }

    fn of(mut serve: Command, settings: NamedTempFile) -> Self {
        let mut process = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("serves on ").unwrap();
        Self {
            url: format!("http://{address}"),
            process,
            settings,
        }
    }

    /// Writes `from` in its settings as `to`, and has it read them.
    pub(crate) fn reload(&self, from: &str, to: &str) {
        let settings = fs::read_to_string(self.settings.path()).unwrap();
        assert!(settings.contains(from), "{settings}");
        fs::write(self.settings.path(), settings.replace(from, to)).unwrap();
        self.signal(Signal::SIGHUP);
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    async fn locks(&self) -> LockServiceClient<Channel> {
        LockServiceClient::connect(self.url.clone()).await.unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }
}

pub(crate) async fn founded() -> Servers {
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
async fn a_coordinator_takes_servers_as_other_commands_do() {
    let servers = founded().await;
    let urls = servers.urls();
    let by_option = ["--redis", &urls[0]];
    for (options, variable) in [(&by_option[..], "for others"), (&[], &urls[0])] {
        let mut serve = command(&[&["serve", "--listen", "127.0.0.1:0"], options].concat());
        serve.env("RINGFENCE_REDIS", variable).stderr(Stdio::null());
        let coordinator = Coordinator::of(serve, settings(&[], ""));
        let lease = Duration::from_secs(30);
        let held = coordinator.locks().await.acquire(ask("key", lease)).await;
        assert!(held.is_ok(), "{held:?}");
        let held = held.unwrap().into_inner().handle;
        let release = ReleaseRequest { handle: held };
        coordinator.locks().await.release(release).await.unwrap();
    }
}

#[tokio::test]
async fn two_coordinators_exclude_each_other_and_a_killed_one_loses_no_time() {
    let servers = founded().await;
    let (mut one, two) = (
        Coordinator::start(&servers, ""),
        Coordinator::start(&servers, ""),
    );
    let lease = Duration::from_secs(6);
    let held = one.locks().await.acquire(ask("key", lease)).await.unwrap();
    let held = held.into_inner();
    let mut once = ask("key", lease);
    once.wait = Some(Duration::ZERO.try_into().unwrap());
    let refused = two.locks().await.acquire(once).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).reason, Reason::Held);

    one.kill();
    let next = two.locks().await.acquire(ask("key", lease)).await.unwrap();
    assert!(next.into_inner().token > held.token);
}

/// A lock of each kind, and a request that does not go with it.
fn of_each_kind(lease: Duration) -> [(AcquireRequest, AcquireRequest); 4] {
    let of = |key: &str, mode: LockMode| AcquireRequest {
        mode: mode.into(),
        ..ask(key, lease)
    };
    let permits = |permits| AcquireRequest {
        permits,
        capacity: 3,
        ..of("permits", LockMode::Permits)
    };
    let pairs = [
        (ask("key", lease), ask("key", lease)),
        (of("read", LockMode::Read), of("read", LockMode::Write)),
        (of("write", LockMode::Write), of("write", LockMode::Read)),
        (permits(2), permits(2)),
    ];
    pairs.map(|(held, mut once)| {
        once.wait = Some(Duration::ZERO.try_into().unwrap());
        (held, once)
    })
}

#[tokio::test]
async fn a_caller_of_a_killed_coordinator_keeps_its_locks_of_every_kind_at_another() {
    let servers = founded().await;
    let secret = "handle_secret = \"0123456789abcdef0123456789abcdef\"";
    let (mut one, two) = (
        Coordinator::start(&servers, secret),
        Coordinator::start(&servers, secret),
    );
    let lease = Duration::from_secs(6);
    let asks = of_each_kind(lease);
    let mut held = Vec::new();
    for (ask, _) in &asks {
        let granted = one.locks().await.acquire(ask.clone()).await.unwrap();
        held.push(granted.into_inner());
    }
    one.kill();

    let mut locks = two.locks().await;
    // Longer than the lease.
    for _ in 0..10 {
        for (AcquireResponse { handle, .. }, (_, once)) in held.iter().zip(&asks) {
            let handle = handle.clone();
            let renewed = locks.renew(RenewRequest { handle }).await.unwrap();
            let valid_for: Duration = renewed.into_inner().valid_for.unwrap().try_into().unwrap();
            assert!(!valid_for.is_zero());
            let refused = locks.acquire(once.clone()).await.unwrap_err();
            assert_eq!(Error::from_status(&refused).reason, Reason::Held);
        }
        tokio::time::sleep(lease / 8).await;
    }
    for (AcquireResponse { handle, token, .. }, (_, once)) in held.into_iter().zip(asks) {
        let released = locks.release(ReleaseRequest { handle }).await.unwrap();
        assert_eq!(released.into_inner().outcome, ReleaseOutcome::Held as i32);
        let next = locks.acquire(once).await.unwrap().into_inner();
        assert!(next.token > token);
    }
}

/// A session that asks once, and pings ten times per second from then on, until `stop` is dropped.
async fn session(
    coordinator: &Coordinator,
    ttl: Duration,
    ask: Kind,
    stop: &Arc<()>,
) -> Streaming<SessionResponse> {
    let terms = SessionTerms {
        ttl: Some(ttl.try_into().unwrap()),
        ..SessionTerms::default()
    };
    let message = |terms, id, kind| SessionRequest {
        terms,
        asks: vec![Ask {
            id,
            kind: Some(kind),
        }],
    };
    let first = message(Some(terms), 1, ask);
    let open = Arc::downgrade(stop);
    let messages = stream::unfold((2, Some(first)), move |(id, first)| {
        let open = open.clone();
        async move {
            if let Some(first) = first {
                return Some((first, (id, None)));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            open.upgrade()?;
            Some((message(None, id, Kind::Ping(PingAsk {})), (id + 1, None)))
        }
    });
    let client = SessionServiceClient::connect(coordinator.url.clone()).await;
    let opened = client.unwrap().session(messages).await;
    opened.unwrap().into_inner()
}

/// Waits for the grant to the first ask of `session`.
async fn granted(session: &mut Streaming<SessionResponse>) -> Grant {
    loop {
        let answers = session.message().await.unwrap().unwrap().answers;
        for told in answers {
            match (told.ask_id, told.kind.unwrap()) {
                (1, answer::Kind::Grant(grant)) => return grant,
                (1, other) => panic!("{other:?}"),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn a_session_of_a_killed_coordinator_goes_on_at_another() {
    let servers = founded().await;
    let secret = "handle_secret = \"0123456789abcdef0123456789abcdef\"";
    let (mut one, two) = (
        Coordinator::start(&servers, secret),
        Coordinator::start(&servers, secret),
    );
    let ttl = Duration::from_secs(6);
    let acquire = AcquireAsk {
        key: "key".into(),
        ..AcquireAsk::default()
    };
    let open = Arc::new(());
    let mut first = session(&one, ttl, Kind::Acquire(acquire), &open).await;
    let grant = granted(&mut first).await;
    one.kill();
    while let Ok(Some(_)) = first.message().await {}

    let handle = grant.handle.clone();
    let mut second = session(&two, ttl, Kind::Resume(ResumeAsk { handle }), &open).await;
    assert_eq!(granted(&mut second).await.token, grant.token);
    let until = BootClock.now() + ttl * 5 / 4;
    while BootClock.now() < until {
        let answers = second.message().await.unwrap().unwrap().answers;
        for told in answers {
            assert!(matches!(told.kind, Some(answer::Kind::Pong(_))), "{told:?}");
        }
        let mut once = ask("key", ttl);
        once.wait = Some(Duration::ZERO.try_into().unwrap());
        let refused = two.locks().await.acquire(once).await.unwrap_err();
        assert_eq!(Error::from_status(&refused).reason, Reason::Held);
    }
    drop((open, second));
    let next = two.locks().await.acquire(ask("key", ttl)).await.unwrap();
    assert!(next.into_inner().token > grant.token);
}

#[tokio::test]
async fn sigterm_stops_it_once_its_locks_are_released() {
    let servers = founded().await;
    let mut coordinator = Coordinator::start(&servers, "grace = \"1m\"");
    let mut locks = coordinator.locks().await;
    let held = locks.acquire(ask("key", Duration::from_secs(30))).await;
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
async fn systemd_learns_when_it_is_ready_and_when_it_stops() {
    let servers = founded().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let path = path.to_str().unwrap();
    let name = format!("ringfence-test-{}", std::process::id());
    let sockets = [
        (UnixDatagram::bind(path), path.to_owned()),
        (
            SocketAddr::from_abstract_name(&name).and_then(|name| UnixDatagram::bind_addr(&name)),
            format!("@{name}"),
        ),
    ];
    for (socket, variable) in sockets {
        let socket = socket.unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let told = || {
            let mut state = [0; 64];
            let length = socket.recv(&mut state).unwrap();
            String::from_utf8_lossy(&state[..length]).into_owned()
        };
        let environment = [("NOTIFY_SOCKET", &*variable)];
        let coordinator = Coordinator::start_with(&servers.urls(), "", &environment);
        assert_eq!(told(), "READY=1");
        coordinator.signal(Signal::SIGTERM);
        assert_eq!(told(), "STOPPING=1");
    }
}

#[tokio::test]
async fn dev_serves_without_servers_and_prints_a_line_to_paste() {
    let mut process = command(&["dev", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut line, mut dashboard) = (String::new(), String::new());
    let mut stdout = BufReader::new(process.stdout.as_mut().unwrap());
    stdout.read_line(&mut line).unwrap();
    stdout.read_line(&mut dashboard).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let address = words.iter().find(|word| word.starts_with("127.0.0.1:"));
    assert!(line.starts_with("grpcurl -plaintext -d '"), "{line}");
    let coordinator = Coordinator {
        url: format!("http://{}", address.unwrap()),
        process,
        settings: NamedTempFile::new().unwrap(),
    };
    let mut once = ask("key", Duration::from_secs(1));
    once.wait = Some(Duration::ZERO.try_into().unwrap());
    let mut locks = coordinator.locks().await;
    locks.acquire(once.clone()).await.unwrap();
    let refused = locks.acquire(once).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).reason, Reason::Held);

    let address = dashboard.trim_end().strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/dashboard/").unwrap();
    let mut page = TcpStream::connect(address).unwrap();
    write!(
        page,
        "GET /dashboard/ HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("<title>Ringfence"),
        "{answer}"
    );
}

#[test]
fn settings_are_shown_without_secrets() {
    let url = ("RINGFENCE__SHARDS__A__URL", "redis://user:s3cret@127.0.0.1");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let variables = [url, ("RINGFENCE__LIMITS__RATE", "7")];
    let ran = ringfence_with(&["config", "show"], &variables);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("rate = 7\n") && ran.stdout.contains("127.0.0.1"));
    assert!(!ran.stdout.contains("s3cret"), "{ran:?}");
    let ran = ringfence_with(&["config", "show", "--secrets"], &variables);
    assert!(ran.stdout.contains("s3cret"), "{ran:?}");
    let ran = ringfence_with(&["config", "show", "-c", file], &variables);
    assert_eq!(ran.code, 64, "{ran:?}");
}

#[tokio::test]
async fn servers_without_a_topology_exit_69() {
    let servers = Servers::spawn(1).await;
    let settings = settings(&servers.urls(), "");
    let ran = ringfence(&["serve", "-c", settings.path().to_str().unwrap()]);
    assert_eq!(ran.code, 69, "{ran:?}");
}

/// The system closes connections that are too many; a check tells before.
#[test]
fn fewer_open_files_than_connections_are_a_warning_of_the_check() {
    let check = command(&["config", "check", "--redis", "redis://127.0.0.1:1"]);
    let limited = |files: &str| {
        let mut shell = std::process::Command::new("/bin/sh");
        shell
            .env_clear()
            .args(["-c", "ulimit -n \"$0\"; exec \"$@\"", files]);
        output(shell.arg(check.get_program()).args(check.get_args()))
    };
    let few = limited("300");
    assert_eq!(few.code, 0, "{few:?}");
    assert!(few.stderr.contains("the system allows 300"), "{few:?}");
    let enough = limited("2000");
    assert_eq!((enough.code, &*enough.stderr), (0, ""), "{enough:?}");
}

#[test]
fn a_secret_that_others_may_read_is_a_warning_of_the_check() {
    let file = settings(&["redis://user:s3cret@127.0.0.1:1".to_owned()], "");
    let check = || ringfence(&["config", "check", "-c", file.path().to_str().unwrap()]);
    for (mode, part) in [(0o600, ""), (0o644, "shards.s0.url is a secret, and ")] {
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        let ran = check();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.stderr.is_empty(), part.is_empty(), "{ran:?}");
        assert!(
            ran.stderr.contains(part) && !ran.stderr.contains("s3cret"),
            "{ran:?}"
        );
    }
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
