//! A cluster of etcd of one's own.

use std::process::Command;

use nix::sys::signal::Signal;
use ringfence_coordinator::spawn::Process;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Home, free_port,
    links::{CutOff, Links},
    signal_all,
};
use crate::{Secured, eventually};

/// A cluster that lives as long as this value, and as this process.
pub struct Etcd {
    nodes: Vec<Node>,
    scheme: &'static str,
    links: Links,
}

struct Node {
    // Ended before its directory goes.
    process: Option<Process>,
    home: Home,
    port: u16,
    /// Where it says, without TLS, whether it is well.
    health: u16,
    arguments: Vec<String>,
}

impl Etcd {
    /// Starts `count` nodes with default settings. Their disk is memory, if there is room: it survives SIGKILL as a disk does,
    /// and on a busy disk an election takes longer than a request waits.
    pub async fn spawn(count: usize) -> Self {
        Self::start(count, None).await
    }

    /// Starts one node that speaks TLS, and requires a client certificate.
    pub async fn spawn_secured(files: &Secured) -> Self {
        Self::start(1, Some(files)).await
    }

    async fn start(count: usize, secured: Option<&Secured>) -> Self {
        let mut links = Links::new();
        let (mut peers, mut cluster) = (Vec::new(), Vec::new());
        for place in 0..count {
            let port = free_port();
            let url = format!("http://127.0.0.1:{}", links.to(place, port).await);
            cluster.push(format!("n{place}={url}"));
            peers.push((port, url));
        }
        let nodes = peers.into_iter().enumerate();
        let nodes = nodes.map(|(place, peer)| Node::new(place, peer, &cluster.join(","), secured));
        let mut etcd = Self {
            nodes: nodes.collect(),
            scheme: secured.map_or("etcd", |_| "etcds"),
            links,
        };
        etcd.restart(&(0..count).collect::<Vec<_>>()).await;
        etcd
    }

    /// Its address, for Ringfence, without credentials.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// Its address, with `login`: `user:password@`.
    pub fn url_with(&self, login: &str) -> String {
        let nodes = self.nodes.iter();
        let nodes: Vec<_> = nodes
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        format!("{}://{login}{}", self.scheme, nodes.join(","))
    }

    /// The address of one node alone.
    pub fn url_of(&self, place: usize) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.nodes[place].port)
    }

    /// The port of its first node on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.nodes[0].port
    }

    /// SIGKILL of a node.
    pub fn kill(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.home.kill(&node.process.take().expect("it runs"));
    }

    /// Starts nodes again after a [`kill`](Self::kill): same ports, same directories.
    pub async fn restart(&mut self, places: &[usize]) {
        for place in places {
            self.nodes[*place].start().await;
        }
        // A node is well only once a majority is.
        for place in places {
            let port = self.nodes[*place].health;
            eventually("a node of etcd is well", async || {
                let answer = get(port, "/health").await.unwrap_or_default();
                answer.contains(r#""health":"true""#)
            })
            .await;
        }
    }

    /// SIGSTOP of a node.
    pub fn stop(&self, place: usize) {
        signal_all(self.process(place), Signal::SIGSTOP);
    }

    /// Undoes [`stop`](Self::stop).
    pub fn cont(&self, place: usize) {
        signal_all(self.process(place), Signal::SIGCONT);
    }

    /// Cuts the links between one node and the others. Clients reach each of them all the same.
    pub fn cut_off(&self, place: usize) {
        let members = self.ctl(&["member", "list"]);
        let named = format!(" n{place},");
        let member = members.lines().find(|line| line.contains(&named));
        let id = member.and_then(|line| line.split(',').next());
        let id = id.expect("it is a member").to_owned();
        self.links.cut_off(Some(CutOff { place, id }));
    }

    /// Undoes [`cut_off`](Self::cut_off).
    pub fn heal(&self) {
        self.links.cut_off(None);
    }

    fn process(&self, place: usize) -> &Process {
        self.nodes[place].process.as_ref().expect("it runs")
    }

    /// The place of the node that leads the others.
    pub async fn leader(&self) -> usize {
        for (place, node) in self.nodes.iter().enumerate() {
            let metrics = get(node.health, "/metrics").await.unwrap_or_default();
            if metrics.contains("\netcd_server_is_leader 1\n") {
                return place;
            }
        }
        panic!("no node leads");
    }

    /// What etcd's own command prints, without TLS. It blocks the thread, which may carry the links between nodes: so of
    /// several nodes ask only what one answers alone.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let endpoints = format!("127.0.0.1:{}", self.nodes[0].port);
        let mut ctl = Command::new("etcdctl");
        ctl.env("ETCDCTL_API", "3")
            .args(["--endpoints", &endpoints]);
        let output = ctl
            .args(arguments)
            .output()
            .expect("scripts/test installs it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Node {
    /// The others reach it at the URL of `peer`, which leads to its port.
    fn new(
        place: usize,
        (peer, peer_url): (u16, String),
        cluster: &str,
        secured: Option<&Secured>,
    ) -> Self {
        let home = Home::in_memory("ringfence-etcd-");
        let (port, health) = (free_port(), free_port());
        let scheme = secured.map_or("http", |_| "https");
        let [client, peer, health_url] = [
            format!("{scheme}://127.0.0.1:{port}"),
            format!("http://127.0.0.1:{peer}"),
            format!("http://127.0.0.1:{health}"),
        ];
        let data = home.path("data").display().to_string();
        let settings = [
            ("name", &*format!("n{place}")),
            ("data-dir", &data),
            ("listen-client-urls", &client),
            ("advertise-client-urls", &client),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer_url),
            ("listen-metrics-urls", &health_url),
            ("initial-cluster", cluster),
        ];
        let mut arguments: Vec<_> = settings
            .iter()
            .map(|(name, value)| format!("--{name}={value}"))
            .collect();
        if let Some(files) = secured {
            let settings = ["cert-file", "key-file", "trusted-ca-file"];
            for (setting, path) in settings.iter().zip(home.tls(files)) {
                arguments.push(format!("--{setting}={}", path.display()));
            }
            arguments.push("--client-cert-auth".into());
        }
        Self {
            process: None,
            home,
            port,
            health,
            arguments,
        }
    }

    async fn start(&mut self) {
        let mut server = self.home.command("etcd", Signal::SIGKILL);
        server.args(&self.arguments);
        let started = self.home.start(server, Signal::SIGKILL, async || true);
        self.process = Some(started.await);
    }
}

/// What HTTP answers at `port` of this machine.
async fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
