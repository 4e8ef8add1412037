//! The same scripts from a bare loop of the redis crate, on one multiplexed connection: no engine,
//! no driver, no link.
//!
//! `pipelined`: one task sends the acquires of all locks in calls of up to [`BATCH_MAX`], all calls
//! in one write, then the releases the same way. `single`: one task a lock, one FCALL an operation,
//! so that as many are in flight as there are locks.
//!
//! The scripts are those that the client has loaded.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use async_trait::async_trait;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, Value, aio::MultiplexedConnection};
use ringfence_client::Client;
use ringfence_coordinator::{
    ids::{ClientId, Life, MapVersion, Nonce},
    limits::{BATCH_MAX, COUNTER_MAX, TICKET_KEEP, WAITERS_MAX},
    name::{Label, LockKey, Namespace},
};
use ringfence_ring::SlotCount;

use super::{Contender, Failure, LEASE, Worker, one_each};

/// Commands that may wait for the connection: all of them.
const BUFFER: usize = 2048;

/// The one shard of a client's topology: what a request to it has to say.
#[derive(Clone)]
pub(super) struct OneShard {
    pub(super) client: ClientId,
    pub(super) label: Label,
    pub(super) map: MapVersion,
    life: Life,
    slots: SlotCount,
    sequence: Arc<AtomicU64>,
}

impl OneShard {
    /// The shard that `client` armed and marked quiet.
    pub(super) fn of(client: &Client) -> Result<Self, Failure> {
        let topology = client.topology();
        let shard = topology
            .shards
            .values()
            .next()
            .ok_or("a topology without shards")?;
        let bits = u128::from(std::process::id()) << 64 | 0x0062_656e_6368;
        Ok(Self {
            client: ClientId(bits),
            label: Label::new("bench/1234"),
            map: shard.changed,
            life: shard.life.clone(),
            slots: topology.table.slots(),
            sequence: Arc::default(),
        })
    }

    pub(super) fn key(&self, key: &str) -> Result<LockKey, Failure> {
        Ok(LockKey::new(
            &Namespace::default(),
            key.as_bytes(),
            self.slots,
        )?)
    }

    pub(super) fn nonce(&self) -> Nonce {
        Nonce {
            client: self.client,
            sequence: self.sequence.fetch_add(1, Relaxed),
        }
    }
}

pub(crate) struct Scripts {
    batching: Batching,
    calls: Arc<Calls>,
    connection: MultiplexedConnection,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Batching {
    Pipelined,
    Single,
}

impl Scripts {
    pub(crate) async fn pipelined(url: &str, shard: OneShard) -> Result<Self, Failure> {
        Self::new(Batching::Pipelined, url, shard).await
    }

    pub(crate) async fn single(url: &str, shard: OneShard) -> Result<Self, Failure> {
        Self::new(Batching::Single, url, shard).await
    }

    async fn new(batching: Batching, url: &str, shard: OneShard) -> Result<Self, Failure> {
        let config = AsyncConnectionConfig::new().set_pipeline_buffer_size(BUFFER);
        let server = redis::Client::open(url)?;
        let mut connection = server
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let calls = Calls::new(shard, &mut connection).await?;
        Ok(Self {
            batching,
            calls: Arc::new(calls),
            connection,
        })
    }
}

#[async_trait]
impl Contender for Scripts {
    fn name(&self) -> &'static str {
        match self.batching {
            Batching::Pipelined => "pipelined",
            Batching::Single => "single",
        }
    }

    fn what(&self) -> &'static str {
        match self.batching {
            Batching::Pipelined => "our scripts from a bare loop, 128 a call, calls pipelined",
            Batching::Single => "our scripts from bare loops, one lock a call, calls pipelined",
        }
    }

    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure> {
        let lock = |lock: usize| self.calls.lock(&format!("{}:{lock}", self.name()));
        let worker = |locks| Loop {
            calls: self.calls.clone(),
            connection: self.connection.clone(),
            locks,
        };
        match self.batching {
            Batching::Pipelined => {
                let locks = (0..locks).map(lock).collect::<Result<_, _>>()?;
                Ok(vec![Box::new(worker(locks))])
            }
            Batching::Single => one_each(locks, |index| Ok(worker(vec![lock(index)?]))),
        }
    }
}

/// The function of a script, of the release that the client uses.
async fn function(connection: &mut MultiplexedConnection, name: &str) -> Result<String, Failure> {
    let mut list = redis::cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg("ringfence_*");
    let mut listed: Vec<HashMap<String, Value>> = list.query_async(connection).await?;
    let (Some(mut library), None) = (listed.pop(), listed.pop()) else {
        return Err("there is not one library of Ringfence".into());
    };
    let functions = (library.remove("functions")).ok_or("a library without functions")?;
    let functions: Vec<HashMap<String, Value>> = redis::from_redis_value(functions)?;
    let names = functions
        .into_iter()
        .filter_map(|mut function| function.remove("name"));
    let names: Vec<String> = names
        .map(redis::from_redis_value)
        .collect::<Result<_, _>>()?;
    let prefix = format!("ringfence_{name}_");
    let mut named = names.into_iter().filter(|name| name.starts_with(&prefix));
    Ok(named
        .next()
        .ok_or_else(|| format!("there is no script called {name}"))?)
}

/// A lock as the scripts see it.
struct Lock {
    record: Vec<u8>,
    nonce: Vec<u8>,
}

/// Makes the script calls.
struct Calls {
    acquire: String,
    release: String,
    shard: OneShard,
    replid: String,
    /// quiet, ctr, state, slots, queues: the keys that both want before the records.
    keys: [String; 5],
}

impl Calls {
    async fn new(shard: OneShard, connection: &mut MultiplexedConnection) -> Result<Self, Failure> {
        let life = shard.life.as_str();
        Ok(Self {
            acquire: function(connection, "acquire").await?,
            release: function(connection, "release").await?,
            replid: life.split(':').nth(1).unwrap_or_default().to_owned(),
            keys: ["quiet", "ctr", "state", "slots", "queues"]
                .map(|part| format!("ringfence:life:{life}:{part}")),
            shard,
        })
    }

    fn lock(&self, key: &str) -> Result<Lock, Failure> {
        let record = [b"ringfence:", self.shard.key(key)?.text()].concat();
        Ok(Lock {
            record,
            nonce: Vec::new(),
        })
    }

    /// Takes `locks`, each for a new nonce, and waits for none.
    fn acquire(&self, locks: &mut [Lock]) -> Cmd {
        let mut call = self.call(&self.acquire, locks);
        call.arg(locks.len())
            .arg(TICKET_KEEP.as_millis() as u64)
            .arg(WAITERS_MAX)
            // No namespace is ever declared, and no operation queues.
            .arg(MapVersion::UNKNOWN.0)
            .arg("");
        let mut head = Vec::with_capacity(64);
        for (lock, offset) in locks.iter_mut().zip(1..) {
            lock.nonce.clear();
            self.shard.nonce().push_text(&mut lock.nonce);
            head.clone_from(&lock.nonce);
            let rest = format!("|{}|{offset}|1", self.shard.label);
            head.extend_from_slice(rest.as_bytes());
            call.arg(&head[..]).arg(LEASE.as_millis() as u64);
        }
        call
    }

    fn release(&self, locks: &[Lock]) -> Cmd {
        let mut call = self.call(&self.release, locks);
        call.arg(locks.iter().map(|lock| &lock.nonce[..]).collect::<Vec<_>>());
        call
    }

    /// What both begin with.
    fn call(&self, script: &str, locks: &[Lock]) -> Cmd {
        let mut call = redis::cmd("FCALL");
        call.arg(script)
            .arg(self.keys.len() + locks.len())
            .arg(&self.keys[..])
            .arg(records(locks))
            .arg(&self.replid)
            .arg(self.shard.map.0)
            .arg(locks.len())
            .arg(COUNTER_MAX);
        call
    }
}

fn records(locks: &[Lock]) -> Vec<&[u8]> {
    locks.iter().map(|lock| &lock.record[..]).collect()
}

struct Loop {
    calls: Arc<Calls>,
    connection: MultiplexedConnection,
    locks: Vec<Lock>,
}

#[async_trait]
impl Worker for Loop {
    fn locks(&self) -> usize {
        self.locks.len()
    }

    async fn pair(&mut self) -> Result<(), Failure> {
        let mut acquires = redis::pipe();
        for locks in self.locks.chunks_mut(BATCH_MAX) {
            acquires.add_command(self.calls.acquire(locks));
        }
        // Now, quiet, token epoch and the counter before and after: all are granted.
        self.send(&acquires, 5).await?;
        let mut releases = redis::pipe();
        for locks in self.locks.chunks(BATCH_MAX) {
            releases.add_command(self.calls.release(locks));
        }
        // Now: all are deleted.
        self.send(&releases, 1).await
    }
}

impl Loop {
    /// Sends `calls`, which must answer `numbers` numbers: a further number per lock reports an
    /// unexpected result.
    async fn send(&mut self, calls: &Pipeline, numbers: usize) -> Result<(), Failure> {
        let answers = self
            .connection
            .send_packed_commands(calls, 0, calls.len())
            .await?;
        let as_asked =
            |answer: &Value| matches!(answer, Value::Array(parts) if parts.len() == numbers);
        match answers.iter().find(|answer| !as_asked(answer)) {
            None => Ok(()),
            Some(answer) => Err(format!("a call was answered {answer:?}").into()),
        }
    }
}
