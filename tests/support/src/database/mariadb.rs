//! A MariaDB of one's own.

use std::process::Stdio;

use mysql_async::{Conn, Error, Opts, prelude::Queryable as _};
use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;
use tokio::{io::AsyncWriteExt, process::Command};

use super::{Home, free_port, signal_all};
use crate::Secured;

/// A server that lives as long as this value, and as this process.
pub struct MariaDb {
    // Ended before its directory goes.
    process: Option<Process>,
    home: Home,
    port: u16,
    settings: Vec<String>,
}

impl MariaDb {
    /// Starts a server with its default settings.
    pub async fn spawn() -> Self {
        Self::spawn_with(&[]).await
    }

    /// Starts a server that takes connections over TLS alone, but on its socket. The user `app` must show a certificate.
    pub async fn spawn_secured(files: &Secured) -> Self {
        let home = Self::installed().await;
        let settings = ["ssl-cert", "ssl-key", "ssl-ca"].into_iter();
        let settings = settings.zip(home.tls(files));
        let settings = settings.map(|(name, path)| format!("--{name}={}", path.display()));
        let settings = settings.chain(["--require-secure-transport=ON".into()]);
        let settings = settings.collect();
        let server = Self::of(home, settings).await;
        server
            .run("CREATE USER app@localhost REQUIRE X509; GRANT ALL ON *.* TO app@localhost;")
            .await;
        server
    }

    /// Starts a server with `settings`, as in my.cnf: `("max_connections", "200")`.
    pub async fn spawn_with(settings: &[(&str, &str)]) -> Self {
        let home = Self::installed().await;
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| format!("--{name}={value}"));
        Self::of(home, settings.collect()).await
    }

    /// A directory with an empty database.
    async fn installed() -> Home {
        let home = Home::new("ringfence-mariadb-");
        let data = format!("--datadir={}", home.path("data").display());
        let mut install = home.command("mariadb-install-db", Signal::SIGKILL);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.arg(&data);
        home.prepare(install).await;
        home
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
        let mut server = home.command("mariadbd", Signal::SIGKILL);
        server.args(["--no-defaults", "--bind-address=127.0.0.1"]);
        server.arg(format!("--datadir={}", home.path("data").display()));
        server.arg(format!("--port={port}"));
        server.arg(format!("--socket={}", socket(home)));
        server.args(&self.settings);
        let address = self.address();
        let answers = async || connect(&address).await.is_ok();
        self.process = Some(home.start(server, Signal::SIGKILL, answers).await);
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

    /// Its address, for [`connect`]: database `test`, user `root`.
    pub fn address(&self) -> String {
        address(&self.home)
    }

    /// A connection to it.
    pub async fn connect(&self) -> Conn {
        connect(&self.address()).await.unwrap()
    }

    /// How many connections the role `user` has to it.
    pub async fn connections_of(&self, user: &str) -> i64 {
        let count = "SELECT count(*) FROM information_schema.processlist WHERE user = ?";
        let count = self.connect().await.exec_first(count, (user,)).await;
        count.unwrap().expect("a row")
    }

    /// Has MariaDB's own client run `script`, which may use that client's own commands.
    pub async fn run(&self, script: &str) {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--user=root", "--database=test"]);
        client.arg(format!("--socket={}", socket(&self.home)));
        client.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut client = client.kill_on_drop(true).spawn().unwrap();
        let mut input = client.stdin.take().expect("it is piped");
        input.write_all(script.as_bytes()).await.unwrap();
        drop(input);
        let output = client.wait_with_output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}

fn socket(home: &Home) -> String {
    home.path("socket").display().to_string()
}

fn address(home: &Home) -> String {
    format!("mysql://root@localhost/test?socket={}", socket(home))
}

/// Connects to the server at `address`. Counts of rows are of those that were changed, not of those
/// that were found: as the server has it where nobody says otherwise.
///
/// # Errors
///
/// It does not answer yet, or refuses.
pub async fn connect(address: &str) -> Result<Conn, Error> {
    let opts = Opts::from_url(address).expect("it is the address of a server of ours");
    Conn::new(opts).await
}
