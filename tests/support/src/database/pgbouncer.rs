//! A PgBouncer of one's own.

use std::fs;

use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;

use super::{
    Home, free_port,
    postgresql::{Connection, PostgreSql, connect},
};
use crate::Secured;

/// A pooler that gives its clients a connection for a transaction each. It lives as long as this value, and as this
/// process.
pub struct PgBouncer {
    // Ended before its directory goes.
    process: Option<Process>,
    home: Home,
    port: u16,
    user: String,
}

impl PgBouncer {
    /// Starts one in front of `server`, for `user`, with at most `connections` to it.
    pub async fn spawn(server: &PostgreSql, user: &str, connections: usize) -> Self {
        Self::of(home(), server, user, connections, "").await
    }

    /// Starts one that takes connections over TLS alone, and requires a client certificate; but on its socket.
    pub async fn spawn_secured(
        server: &PostgreSql,
        user: &str,
        connections: usize,
        files: &Secured,
    ) -> Self {
        let home = home();
        let settings = ["cert", "key", "ca"].into_iter().zip(home.tls(files));
        let settings =
            settings.map(|(name, path)| format!("client_tls_{name}_file = {}", path.display()));
        let settings: Vec<String> = settings.collect();
        let settings = format!("client_tls_sslmode = verify-full\n{}", settings.join("\n"));
        Self::of(home, server, user, connections, &settings).await
    }

    async fn of(
        home: Home,
        server: &PostgreSql,
        user: &str,
        connections: usize,
        settings: &str,
    ) -> Self {
        let (dir, port) = (home.dir.path().display(), free_port());
        let config = format!(
            "[databases]\n* = host={} port={}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir = {dir}\n\
             auth_type = trust\nauth_file = {dir}/users\n\
             pool_mode = transaction\ndefault_pool_size = {connections}\nserver_login_retry = 0.1\n{settings}\n",
            server.dir().display(),
            server.port(),
        );
        fs::write(home.path("pgbouncer.ini"), config).unwrap();
        fs::write(home.path("users"), format!("\"{user}\" \"\"\n")).unwrap();
        let mut pooler = Self {
            process: None,
            home,
            port,
            user: user.to_owned(),
        };
        pooler.restart().await;
        pooler
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again after a [`kill`](Self::kill): same port, same settings.
    pub async fn restart(&mut self) {
        let mut pooler = self.home.command("pgbouncer", Signal::SIGKILL);
        pooler.arg(self.home.path("pgbouncer.ini"));
        let address = self.address();
        let answers = async || connect(&address).await.is_ok();
        self.process = Some(self.home.start(pooler, Signal::SIGKILL, answers).await);
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn address(&self) -> String {
        let (dir, Self { port, user, .. }) = (self.home.dir.path().display(), self);
        format!("postgresql:///postgres?user={user}&host={dir}&port={port}")
    }

    /// A connection to it, and to the database `postgres`.
    pub async fn connect(&self) -> Connection {
        connect(&self.address()).await.unwrap()
    }
}

fn home() -> Home {
    Home::new("ringfence-pgbouncer-")
}
