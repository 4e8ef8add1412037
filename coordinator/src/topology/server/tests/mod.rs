//! Each script on a server: what it refuses, and that it then writes nothing.

#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod founding;
mod news;
mod records;
mod recovery;

use std::{sync::Arc, time::Duration};

use ::redis::{Value, aio::MultiplexedConnection};
use ringfence_ring::{ShardId, SlotCount, Weight};

use super::{
    answers::{Claim, Copied, Found, Join, Leave, Swapped},
    member::Member,
    stored::Pointer,
};
use crate::{
    ids::{ClientId, Epoch, Life},
    random::Random,
    shard::redis::{Calls, RedisOptions, scripts},
    spawn::RedisServer,
    topology::{Blueprint, Constants, Founder, Home, Namespaces, Status, Topology, TopologyError},
};

struct Server {
    member: Arc<Member>,
    life: Life,
    raw: MultiplexedConnection,
    server: RedisServer,
}

impl Server {
    async fn spawn() -> Self {
        let server = RedisServer::spawn().await.unwrap();
        let options = RedisOptions::new(server.url().parse().unwrap(), ClientId(1));
        let member = Member::new(options.into(), &Arc::new(Random::seeded(1)));
        let member = Arc::new(member);
        let life = member.server().await.unwrap().life;
        let client = ::redis::Client::open(server.url()).unwrap();
        let raw = client.get_multiplexed_async_connection().await.unwrap();
        Self {
            member,
            life,
            raw,
            server,
        }
    }

    /// A topology in creation, with this server as its home and only shard.
    fn topology(&self, id: u128) -> Topology {
        let address = self.member.address().to_owned();
        let founder = Founder {
            id: ShardId::new("a").unwrap(),
            address: address.clone(),
            life: self.life.clone(),
            weight: Weight::ONE,
            zone: None,
        };
        let blueprint = Blueprint {
            id,
            engine: ClientId(1),
            unix: Duration::from_secs(1_800_000_000),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces: Namespaces::default(),
            home: Home {
                address,
                life: self.life.clone(),
            },
            founders: vec![founder],
        };
        Topology {
            status: Status::Creating,
            ..Topology::found(blueprint).unwrap()
        }
    }

    /// The same, claimed.
    async fn claimed(&self, id: u128) -> Topology {
        let topology = self.topology(id);
        assert_eq!(self.member.claim(&topology).await.unwrap(), Claim::Claimed);
        topology
    }

    /// An active topology that this server has a pointer to.
    async fn joined(&self, id: u128) -> Topology {
        let topology = active(&self.topology(id));
        let joined = self.member.join(&Pointer::to(&topology), &self.life).await;
        assert_eq!(joined.unwrap(), Join::Joined);
        topology
    }

    /// Everything on the server, by key.
    async fn contents(&mut self) -> Vec<(String, Value)> {
        let mut keys: Vec<String> = ::redis::cmd("KEYS")
            .arg("*")
            .query_async(&mut self.raw)
            .await
            .unwrap();
        keys.sort();
        let mut contents = Vec::new();
        for key in keys {
            let dump = ::redis::cmd("DUMP")
                .arg(&key)
                .query_async(&mut self.raw)
                .await
                .unwrap();
            contents.push((key, dump));
        }
        contents
    }

    /// Raises the fence as a recovery does.
    async fn fence(&mut self, number: u64) {
        let mut incarnation = self.topology(0).incarnation;
        incarnation.number = number;
        let key = format!("ringfence:life:{}:fence", self.life);
        let set = ::redis::Cmd::set(key, incarnation.to_string());
        set.exec_async(&mut self.raw).await.unwrap();
    }
}

fn active(topology: &Topology) -> Topology {
    Topology {
        status: Status::Active,
        version: topology.version + 1,
        ..topology.clone()
    }
}

#[tokio::test]
async fn every_script_looks_at_the_life_first_and_writes_nothing_in_another() {
    let mut server = Server::spawn().await;
    for script in scripts::all() {
        let greatest = |table: &str| {
            let count = (1..=12)
                .rev()
                .find(|n| script.source.contains(&format!("{table}[{n}]")));
            count.unwrap_or(0)
        };
        let mut command = Calls::Functions.call(script, greatest("KEYS"));
        for key in 1..=greatest("KEYS") {
            command.arg(format!("key:{key}"));
        }
        command.arg("0123456789abcdef0123456789abcdef01234567");
        for argument in 2..=greatest("ARGV") {
            command.arg(argument);
        }
        let answer: Value = command.query_async(&mut server.raw).await.unwrap();
        assert_eq!(
            answer,
            Value::Array(vec![Value::Int(-1)]),
            "{}",
            script.name
        );
        assert_eq!(server.contents().await, [], "{}", script.name);
    }
}

#[tokio::test]
async fn a_connection_that_outlived_its_life_writes_nothing() {
    let (mut server, other) = (Server::spawn().await, Server::spawn().await);
    let topology = server.topology(1);
    let port = other.server.port().to_string();
    for primary in [["127.0.0.1", &port], ["NO", "ONE"]] {
        let follow = ::redis::cmd("REPLICAOF").arg(&primary).to_owned();
        follow.exec_async(&mut server.raw).await.unwrap();
    }
    let pointer = Pointer::to(&topology);
    assert_eq!(
        server.member.join(&pointer, &server.life).await.unwrap(),
        Join::OtherLife
    );
    assert_eq!(server.contents().await, []);
    // The next one is in the life that is.
    assert_eq!(
        server.member.join(&pointer, &server.life).await.unwrap(),
        Join::OtherLife
    );
    let life = server.member.server().await.unwrap().life;
    assert_ne!(life, server.life);
    assert_eq!(
        server.member.join(&pointer, &life).await.unwrap(),
        Join::Joined
    );
}

#[tokio::test]
async fn a_dead_connection_fails_one_operation_and_a_repeat_finds_the_next() {
    let mut server = Server::spawn().await;
    server.server.restart().await.unwrap();
    let failed = server.member.trace().await;
    assert!(
        matches!(failed, Err(TopologyError::Unreachable { .. })),
        "{failed:?}"
    );
    assert_ne!(
        server.member.trace().await.unwrap().server.life,
        server.life
    );
    server.server.restart().await.unwrap();
    server
        .member
        .repeated(|| server.member.trace())
        .await
        .unwrap();
}
