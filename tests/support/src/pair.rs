//! Two servers and one address that clients know: the parts of a failover.

use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection};
use ringfence_coordinator::spawn::RedisServer;

use crate::{connection, eventually};

/// No server listens there.
const NOWHERE: [&str; 3] = ["REPLICAOF", "127.0.0.1", "1"];

/// A primary and its replica. One of them is at the address that clients know; the other stays
/// reachable for clients that were connected to it before.
pub struct Pair {
    servers: [RedisServer; 2],
    /// Separate connections, which outlive every change of port and of role.
    raw: [MultiplexedConnection; 2],
    port: u16,
}

impl Pair {
    /// Server 0 at the address, and server 1, which follows it.
    pub async fn spawn() -> Self {
        let primary = RedisServer::builder().set("repl-diskless-sync-delay", 0);
        let primary = primary.spawn().await.unwrap();
        let port = primary.port();
        let replica = RedisServer::builder().replica_of(port).spawn();
        let servers = [primary, replica.await.unwrap()];
        let raw = [connection(&servers[0]).await, connection(&servers[1]).await];
        let pair = Self { servers, raw, port };
        pair.synced().await;
        pair
    }

    /// The address that clients know.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Server `index`.
    pub fn server(&self, index: usize) -> &RedisServer {
        &self.servers[index]
    }

    /// The answer of server `index` to `words`, at any port.
    pub async fn ask<T: FromRedisValue>(&self, index: usize, words: &[&str]) -> T {
        let mut command = Cmd::new();
        command.arg(words);
        let answer = command.query_async(&mut self.raw[index].clone()).await;
        answer.unwrap()
    }

    /// Waits until server 1 has all data of server 0.
    pub async fn synced(&self) {
        eventually("the replica has it all", async || {
            let mut raw = self.raw[0].clone();
            let mut write = redis::pipe();
            // WAIT counts the replicas that have its own connection's writes, hence all earlier writes.
            write.set("pair:sync", 1).ignore().del("pair:sync").ignore();
            write.cmd("WAIT").arg(1).arg(100);
            let (followers,): (u64,) = write.query_async(&mut raw).await.unwrap();
            followers == 1
        })
        .await;
    }

    /// Makes server `index` a replica of an address that does not answer: read-only, connected, and stale.
    pub async fn detach(&self, index: usize) {
        self.ask::<()>(index, &NOWHERE).await;
    }

    /// Makes server `index` a primary, with its data.
    pub async fn promote(&self, index: usize) {
        self.ask::<()>(index, &["REPLICAOF", "NO", "ONE"]).await;
    }

    /// Makes server `index` a replica of the server at the address.
    pub async fn follow(&self, index: usize) {
        let port = self.port.to_string();
        self.ask::<()>(index, &["REPLICAOF", "127.0.0.1", &port])
            .await;
    }

    /// Moves the address to server `index`. Connections to the other server stay open.
    pub async fn move_to(&self, index: usize) {
        let other = 1 - index;
        if self.servers[other].pid().is_some() {
            self.listen(other, 0).await;
        }
        self.listen(index, self.port).await;
    }

    /// Kills server `index`.
    pub fn kill(&mut self, index: usize) {
        self.servers[index].kill();
    }

    async fn listen(&self, index: usize, port: u16) {
        self.ask::<()>(index, &["CONFIG", "SET", "port", &port.to_string()])
            .await;
    }
}
