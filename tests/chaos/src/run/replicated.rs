//! Two servers behind one address: a primary, and a replica of it. The parts of a failover.
#![expect(
    clippy::unwrap_used,
    reason = "a server of ours that fails fails the run"
)]

use redis::{FromRedisValue, InfoDict};
use ringfence_coordinator::spawn::{RedisServer, RedisServerBuilder};
use ringfence_test_support::{Proxy, ask, eventually};

/// A primary and its replica.
#[derive(Debug)]
pub(crate) struct Replicated {
    nodes: [RedisServer; 2],
    /// Index of the primary.
    active: usize,
    proxy: Proxy,
}

impl Replicated {
    /// Starts two servers with these settings, and a proxy in front of the primary.
    pub(crate) async fn start(builder: &RedisServerBuilder, seed: u64) -> Self {
        let builder = builder.clone().set("repl-diskless-sync-delay", 0);
        let server = async || builder.clone().spawn().await.unwrap();
        let nodes = [server().await, server().await];
        let proxy = Proxy::seeded(nodes[0].port(), seed).await;
        let pair = Self {
            nodes,
            active: 0,
            proxy,
        };
        pair.follow(1).await;
        // A server's first replica gives it another replication id, and so another life.
        pair.in_step().await;
        pair
    }

    /// The proxy between the primary and its clients.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The server that clients find.
    pub(crate) fn primary(&self) -> &RedisServer {
        &self.nodes[self.active]
    }

    /// The server that clients find.
    pub(crate) fn primary_mut(&mut self) -> &mut RedisServer {
        &mut self.nodes[self.active]
    }

    /// Kills both servers for good.
    pub(crate) fn fail(&mut self) {
        self.proxy.refuse(true);
        self.nodes.iter_mut().for_each(RedisServer::kill);
    }

    /// Detaches the replica, once it has everything: it gets no later change.
    pub(crate) async fn leave_replica_behind(&self) {
        self.in_step().await;
        self.promote(1 - self.active).await;
    }

    /// The primary dies; the replica, which was left behind, is the primary now. The former primary restarts, and follows
    /// it.
    pub(crate) async fn fail_over(&mut self) {
        let old = self.active;
        self.nodes[old].kill();
        self.lead_to_other();
        self.nodes[old].restart().await.unwrap();
        self.follow(old).await;
    }

    /// The replica, which was left behind, is the primary now, and the former primary follows it.
    pub(crate) async fn switch_over(&mut self) {
        let old = self.active;
        self.active = 1 - old;
        self.follow(old).await;
        self.proxy.point_at(self.primary().port());
    }

    /// The primary follows its replica, which was left behind, until it has what that has, and is a
    /// primary again. It cuts no connection.
    pub(crate) async fn go_there_and_back(&mut self) {
        let (there, back) = (1 - self.active, self.active);
        self.active = there;
        self.follow(back).await;
        self.in_step().await;
        self.promote(back).await;
        self.active = back;
        self.follow(there).await;
    }

    /// Clients find the replica, which was left behind. The primary goes on.
    pub(crate) fn lead_to_other(&mut self) {
        self.active = 1 - self.active;
        self.proxy.point_at(self.primary().port());
    }

    /// Clients find the first primary again, which was never restarted nor demoted; the other server follows it.
    pub(crate) async fn lead_back(&mut self) {
        let other = self.active;
        self.lead_to_other();
        self.follow(other).await;
    }

    async fn promote(&self, node: usize) {
        self.ask::<()>(node, &["REPLICAOF", "NO", "ONE"]).await;
    }

    /// Has `node` follow the primary.
    async fn follow(&self, node: usize) {
        let port = self.primary().port().to_string();
        self.ask::<()>(node, &["REPLICAOF", "127.0.0.1", &port])
            .await;
    }

    /// Waits until the replica has all that the primary has now, and both have it in the log that they append to.
    pub(crate) async fn in_step(&self) {
        let info = async |node| -> InfoDict { self.ask(node, &["INFO", "all"]).await };
        let offset = |info: &InfoDict| info.get::<u64>("master_repl_offset");
        let is_appending = |info: &InfoDict| {
            let is_0 = |field| info.get::<u64>(field) == Some(0);
            is_0("aof_rewrite_in_progress") && is_0("aof_rewrite_scheduled")
        };
        let needed = offset(&info(self.active).await);
        eventually("the replica has it all", async || {
            let (primary, replica) = (info(self.active).await, info(1 - self.active).await);
            let up = replica.get::<String>("master_link_status").as_deref() == Some("up");
            up && offset(&replica) >= needed && is_appending(&primary) && is_appending(&replica)
        })
        .await;
    }

    async fn ask<T: FromRedisValue>(&self, node: usize, words: &[&str]) -> T {
        ask(&self.nodes[node], words).await
    }
}
