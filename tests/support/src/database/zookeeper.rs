//! An ensemble of ZooKeeper of one's own.

use std::{cell::Cell, fs, path::Path, time::Duration};

use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Home, division::Way, free_port, signal_all};
use crate::eventually;

/// Where Debian puts what `scripts/test` installs.
const JARS: &str = "/usr/share/java";

/// The beginning of the names of data directories.
const PREFIX: &str = "ringfence-zookeeper-";

/// A word takes no longer, unless the server is stopped.
const WORD: Duration = Duration::from_millis(500);

/// An ensemble that lives as long as this value, and as this process.
pub struct Zookeeper {
    servers: Vec<Server>,
    /// From one server to another, if they can be cut.
    ways: Vec<Ways>,
}

struct Server {
    // Ended before its directory goes.
    process: Option<Process>,
    home: Home,
    port: u16,
}

/// From one server to another: to follow it, and to elect it.
type Ways = ((usize, usize), [Way; 2]);

/// Where a server is followed, and where it takes part in elections.
type Peer = [u16; 2];

impl Zookeeper {
    /// Starts `count` servers. Their disk is memory, if there is room: it survives SIGKILL as a disk does. A server that
    /// hears nothing of the others for 2 s serves no more: by default, 10 s.
    pub async fn spawn(count: usize) -> Self {
        let peers: Vec<Peer> = (0..count).map(|_| [free_port(), free_port()]).collect();
        let seen = vec![peers; count];
        Self::start(&seen, Vec::new()).await
    }

    /// Starts one server whose disk is a disk.
    pub async fn spawn_on_disk() -> Self {
        let mut zookeeper = Self {
            servers: vec![Server::new(0, &[[0; 2]], Home::new(PREFIX))],
            ways: Vec::new(),
        };
        zookeeper.restart(&[0]).await;
        zookeeper
    }

    /// Starts three servers that can be [cut off](Self::cut_off) from each other.
    pub async fn divisible() -> Self {
        let peers: Vec<Peer> = (0..3).map(|_| [free_port(), free_port()]).collect();
        let pairs = || (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
        let mut ways: Vec<_> = pairs()
            .map(|pair| (pair, [Way::new(), Way::new()]))
            .collect();
        let port = |(from, to): (usize, usize), of: usize| ways[from * 3 + to].1[of].port;
        let seen = |from: usize| {
            let seen_at = |to| match to == from {
                true => peers[to],
                false => [0, 1].map(|of| port((from, to), of)),
            };
            (0..3).map(seen_at).collect()
        };
        let seen: Vec<Vec<Peer>> = (0..3).map(seen).collect();
        for ((from, to), [follow, elect]) in &mut ways {
            follow.lead_to(peers[*to][0], None);
            // The first message says where its sender takes part in elections: it may be asked to connect the other way.
            let address = |port: u16| format!("127.0.0.1:{port}");
            let instead = (address(peers[*from][1]), address(seen[*to][*from][1]));
            elect.lead_to(peers[*to][1], Some(instead));
        }
        Self::start(&seen, ways).await
    }

    async fn start(seen: &[Vec<Peer>], ways: Vec<Ways>) -> Self {
        let servers = seen.iter().enumerate();
        let servers =
            servers.map(|(place, peers)| Server::new(place, peers, Home::in_memory(PREFIX)));
        let mut zookeeper = Self {
            servers: servers.collect(),
            ways,
        };
        let all: Vec<usize> = (0..seen.len()).collect();
        zookeeper.restart(&all).await;
        zookeeper
    }

    /// Nothing passes between a server and the others; clients reach it.
    pub fn cut_off(&self, place: usize) {
        let its = |((from, to), _): &&Ways| [*from, *to].contains(&place);
        let its = self.ways.iter().filter(its).flat_map(|(_, ways)| ways);
        its.for_each(|way| way.cut(true));
    }

    /// Undoes [`cut_off`](Self::cut_off).
    pub fn heal(&self) {
        let all = self.ways.iter().flat_map(|(_, ways)| ways);
        all.for_each(|way| way.cut(false));
    }

    /// Its address, for Ringfence.
    pub fn url(&self) -> String {
        format!("zookeeper://{}", self.hosts())
    }

    /// Its servers, `host:port` each.
    pub fn hosts(&self) -> String {
        let hosts = self.servers.iter();
        let hosts: Vec<_> = hosts
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        hosts.join(",")
    }

    /// The port of a server on 127.0.0.1.
    pub fn port_of(&self, place: usize) -> u16 {
        self.servers[place].port
    }

    /// The port of its first server on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port_of(0)
    }

    /// SIGKILL of a server.
    pub fn kill(&mut self, place: usize) {
        let server = &mut self.servers[place];
        server.home.kill(&server.process.take().expect("it runs"));
    }

    /// Starts servers again after a [`kill`](Self::kill): same ports, same directories.
    pub async fn restart(&mut self, places: &[usize]) {
        for place in places {
            self.servers[*place].start().await;
        }
        // A server serves only once a majority does.
        for place in places {
            let port = self.port_of(*place);
            eventually("a server of ZooKeeper serves", async || {
                mode(port).await.is_some()
            })
            .await;
        }
    }

    /// SIGSTOP of a server.
    pub fn stop(&self, place: usize) {
        signal_all(self.process(place), Signal::SIGSTOP);
    }

    /// Undoes [`stop`](Self::stop).
    pub fn cont(&self, place: usize) {
        signal_all(self.process(place), Signal::SIGCONT);
    }

    fn process(&self, place: usize) -> &Process {
        self.servers[place].process.as_ref().expect("it runs")
    }

    /// The place of the server that leads the others.
    pub async fn leader(&self) -> usize {
        self.leader_but(usize::MAX).await
    }

    /// The place of the server that leads, and is not at `place`.
    pub async fn leader_but(&self, place: usize) -> usize {
        let leader = Cell::new(place);
        eventually("a server leads", async || {
            for (at, server) in self.servers.iter().enumerate() {
                if at != place && mode(server.port).await.as_deref() == Some("leader") {
                    leader.set(at);
                }
            }
            leader.get() != place
        })
        .await;
        leader.get()
    }
}

impl Server {
    fn new(place: usize, peers: &[Peer], home: Home) -> Self {
        let line = |(place, [follow, elect]): (usize, &Peer)| {
            format!("server.{place}=127.0.0.1:{follow}:{elect}\n")
        };
        let ensemble: String = match peers {
            [_] => String::new(),
            _ => peers.iter().enumerate().map(line).collect(),
        };
        let port = free_port();
        let settings = format!(
            "tickTime=500\ninitLimit=20\nsyncLimit=4\nmaxSessionTimeout=40000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n{ensemble}",
            home.path(".").display()
        );
        fs::write(home.path("zoo.cfg"), settings).unwrap();
        fs::write(home.path("myid"), place.to_string()).unwrap();
        Self {
            process: None,
            home,
            port,
        }
    }

    async fn start(&mut self) {
        assert!(
            Path::new(JARS).join("zookeeper.jar").exists(),
            "scripts/test installs ZooKeeper"
        );
        let mut server = self.home.command("java", Signal::SIGKILL);
        // It starts sooner so, and few requests are asked of it.
        server.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        server.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp"]);
        server.arg(format!(
            "{JARS}/zookeeper.jar:{JARS}/slf4j-simple.jar:{JARS}/*"
        ));
        server.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
        server.arg(self.home.path("zoo.cfg"));
        let started = self.home.start(server, Signal::SIGKILL, async || true);
        self.process = Some(started.await);
    }
}

/// Whether a server leads, follows, or is alone. `None`: it does not serve.
async fn mode(port: u16) -> Option<String> {
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"srvr").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(WORD, asked).await.ok()?.ok()?;
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    mode.map(str::to_owned)
}
