//! A Sentinel: a process that watches primaries, and promotes a replica of one that died.

use std::{
    collections::HashMap,
    net::TcpListener,
    process::{Command, Stdio},
};

use nix::sys::signal::Signal;
use redis::{Cmd, FromRedisValue, RedisResult, aio::MultiplexedConnection};
use ringfence_coordinator::spawn::{Process, RedisServer};
use tempfile::TempDir;

use crate::eventually;

/// The Sentinels' name of the primary.
const NAME: &str = "bank";

/// A Sentinel on 127.0.0.1. It ends with this value.
pub struct Sentinel {
    port: u16,
    process: Option<Process>,
    /// Removed after the process has ended: it writes there.
    _dir: TempDir,
    raw: MultiplexedConnection,
}

impl Sentinel {
    /// Starts `count` Sentinels that watch `primary` as `bank`, and waits until they know each other and its one replica.
    pub async fn watch(primary: &RedisServer, count: usize) -> Vec<Self> {
        // After a split vote they wait twice the last of these before they vote again.
        let monitor = format!(
            "sentinel monitor {NAME} 127.0.0.1 {} {}\n\
             sentinel down-after-milliseconds {NAME} 500\n\
             sentinel failover-timeout {NAME} 2000\n",
            primary.port(),
            count / 2 + 1,
        );
        let mut sentinels = Vec::new();
        for _ in 0..count {
            sentinels.push(Self::spawn("", &monitor).await);
        }
        let others = (count - 1).to_string();
        for sentinel in &sentinels {
            eventually(
                "the Sentinels know each other and the replica",
                async || {
                    let known = sentinel.known().await;
                    known
                        == [
                            Some("master".to_owned()),
                            Some(others.clone()),
                            Some("1".into()),
                        ]
                },
            )
            .await;
        }
        sentinels
    }

    /// Starts a Sentinel with these lines of configuration. `login`: as in a URL, with the `@`.
    pub async fn spawn(login: &str, configuration: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = free.unwrap().port();
        let file = dir.path().join("sentinel.conf");
        let place = dir.path().display();
        let head = format!("port {port}\nbind 127.0.0.1\ndir {place}\n");
        std::fs::write(&file, head + configuration).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "redis-server"]);
        command.arg(&file).arg("--sentinel").stdout(Stdio::null());
        let process = Process::start(command, Signal::SIGKILL).await.unwrap();
        let client = redis::Client::open(format!("redis://{login}127.0.0.1:{port}")).unwrap();
        let connect = async || client.get_multiplexed_async_connection().await;
        eventually("a Sentinel answers", async || connect().await.is_ok()).await;
        let raw = connect().await.unwrap();
        let process = Some(process);
        Self {
            port,
            _dir: dir,
            process,
            raw,
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the primary that `sentinels` know as `name`.
    pub fn url_of(sentinels: &[Self], name: &str) -> String {
        let places = sentinels
            .iter()
            .map(|sentinel| format!("127.0.0.1:{}", sentinel.port));
        let places: Vec<_> = places.collect();
        format!("redis+sentinel://{}/{name}", places.join(","))
    }

    /// The URL of the primary that `sentinels` watch.
    pub fn url(sentinels: &[Self]) -> String {
        Self::url_of(sentinels, NAME)
    }

    /// Its answer to `words`.
    pub async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut command = Cmd::new();
        command.arg("SENTINEL").arg(words);
        command.query_async(&mut self.raw.clone()).await
    }

    /// The port of the primary, as it knows it.
    pub async fn primary(&self) -> u16 {
        let asked = self.ask(&["GET-MASTER-ADDR-BY-NAME", NAME]).await;
        let (_, port): (String, u16) = asked.unwrap();
        port
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// The primary's flags, and the numbers of other Sentinels and of replicas.
    async fn known(&self) -> [Option<String>; 3] {
        let asked = self.ask(&["MASTER", NAME]).await;
        let mut known: HashMap<String, String> = asked.unwrap();
        ["flags", "num-other-sentinels", "num-slaves"].map(|field| known.remove(field))
    }
}
