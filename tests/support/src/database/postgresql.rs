//! A PostgreSQL of one's own.

use std::{
    fs,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
};

use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls};

use super::{Home, free_port, signal_all};
use crate::Secured;

/// Where Debian keeps it: a folder a version, none of them on PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

/// An "immediate shutdown", the crash that its own processes survive no more than a real one, and
/// that leaves nothing of theirs in the kernel.
const CRASH: Signal = Signal::SIGQUIT;

/// A server that lives as long as this value, and as this process.
pub struct PostgreSql {
    // Ended before its directory goes.
    process: Option<Process>,
    home: Home,
    port: u16,
    settings: Vec<String>,
}

impl PostgreSql {
    /// Starts a server with its default settings.
    pub async fn spawn() -> Self {
        Self::spawn_with(&[]).await
    }

    /// Starts a server that takes connections over TLS alone, and requires a client certificate; but on its socket.
    pub async fn spawn_secured(files: &Secured) -> Self {
        let home = Self::initialized().await;
        let rules =
            "local all all trust\nhostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n";
        fs::write(home.path("data").join("pg_hba.conf"), rules).unwrap();
        let settings = ["ssl_cert_file", "ssl_key_file", "ssl_ca_file"].into_iter();
        let settings = settings.zip(home.tls(files));
        let settings = settings.map(|(name, path)| format!("{name}={}", path.display()));
        let settings = settings.chain(["ssl=on".into(), "fsync=off".into()]);
        let settings = settings.collect();
        Self::of(home, settings).await
    }

    /// Starts a server with `settings`, as in postgresql.conf: `("max_connections", "200")`.
    pub async fn spawn_with(settings: &[(&str, &str)]) -> Self {
        let home = Self::initialized().await;
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| format!("{name}={value}"));
        Self::of(home, settings.collect()).await
    }

    /// A directory with an empty database.
    async fn initialized() -> Home {
        let home = Home::new("ringfence-postgresql-");
        let programs = programs();
        let data = home.path("data");
        let mut initdb = home.command(programs.join("initdb"), Signal::SIGKILL);
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        initdb.args(["--no-locale", "--no-sync", "-D"]).arg(&data);
        home.prepare(initdb).await;
        home
    }

    /// Starts a standby of this server, with the same settings and all data. It follows this server, and answers reads.
    pub async fn standby(&self) -> Self {
        let home = Home::new("ringfence-postgresql-");
        let mut copy = home.command(programs().join("pg_basebackup"), Signal::SIGKILL);
        copy.args(["--username=postgres", "--checkpoint=fast", "--no-sync"]);
        copy.args(["--write-recovery-conf", "--wal-method=stream"]);
        copy.arg("--host").arg(self.home.dir.path());
        copy.arg(format!("--port={}", self.port));
        copy.arg("--pgdata").arg(home.path("data"));
        home.prepare(copy).await;
        Self::of(home, self.settings.clone()).await
    }

    async fn of(home: Home, settings: Vec<String>) -> Self {
        let mut server = Self {
            process: None,
            home,
            port: free_port(),
            settings,
        };
        server.start().await;
        server
    }

    async fn start(&mut self) {
        let Self { home, port, .. } = &*self;
        let mut server = home.command(programs().join("postgres"), CRASH);
        server.arg("-D").arg(home.path("data"));
        server.arg("-k").arg(home.dir.path());
        server.args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("port={port}"),
            // In its directory: a server that is killed would leave it in the system's memory.
            "-c",
            "dynamic_shared_memory_type=mmap",
        ]);
        for setting in &self.settings {
            server.args(["-c", setting]);
        }
        let address = self.address();
        let answers = async || connect(&address).await.is_ok();
        self.process = Some(self.home.start(server, CRASH, answers).await);
    }

    /// SIGKILL of the server and of all its processes.
    pub fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        self.home.kill(&process);
    }

    /// Starts it again after a [`kill`](Self::kill): same port, same directory, same settings.
    pub async fn restart(&mut self) {
        self.start().await;
    }

    /// Makes a standby a primary, with what it has.
    pub async fn promote(&self) {
        let mut promote = self
            .home
            .command(programs().join("pg_ctl"), Signal::SIGKILL);
        promote.args(["promote", "--wait", "--pgdata"]);
        promote.arg(self.home.path("data"));
        self.home.prepare(promote).await;
    }

    /// SIGSTOP of all its processes.
    pub fn stop(&self) {
        signal_all(self.process.as_ref().expect("it runs"), Signal::SIGSTOP);
    }

    /// Undoes [`stop`](Self::stop).
    pub fn cont(&self) {
        signal_all(self.process.as_ref().expect("it runs"), Signal::SIGCONT);
    }

    /// Kills the server, and starts it again.
    pub async fn crash_and_restart(&mut self) {
        self.kill();
        self.restart().await;
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its socket is.
    pub(super) fn dir(&self) -> &Path {
        self.home.dir.path()
    }

    /// Its address, for [`connect`]: database and user are `postgres`.
    pub fn address(&self) -> String {
        let (dir, port) = (self.dir().display(), self.port);
        format!("postgresql:///postgres?user=postgres&host={dir}&port={port}")
    }

    /// A connection to it.
    pub async fn connect(&self) -> Connection {
        connect(&self.address()).await.unwrap()
    }
}

/// The newest version's programs; none: those on PATH.
fn programs() -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let numbered = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let newest = numbered.filter(|(_, bin)| bin.join("postgres").exists());
    newest.max().map(|(_, bin)| bin).unwrap_or_default()
}

/// A connection; everything that its [`Client`] offers.
pub struct Connection {
    client: Client,
    /// What carries its bytes. Ends with this value.
    _carrier: JoinSet<()>,
}

/// Connects to the server at `address`.
///
/// # Errors
///
/// It does not answer yet, or refuses.
pub async fn connect(address: &str) -> Result<Connection, Error> {
    let (client, carrier) = tokio_postgres::connect(address, NoTls).await?;
    let mut carriers = JoinSet::new();
    carriers.spawn(async {
        // The next caller of the client gets the error.
        let _ = carrier.await;
    });
    Ok(Connection {
        client,
        _carrier: carriers,
    })
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
