//! One physical connection: opened with a handshake, never reconnected.

use futures_util::future::BoxFuture;
use redis::{
    AsyncConnectionConfig, Cmd, InfoDict, Pipeline, RedisError, RedisResult, Value,
    from_redis_value,
};
use ringfence_ring::Slot;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    RedisOptions, Script, classify, diagnosis,
    error::{is_script_missing, lacks},
    rights, scripts,
    wire::Wire,
};
use crate::{
    failpoint::{Rule, is_off},
    ids::Life,
    name::LockKey,
    shard::{ConnectionId, ShardError},
};

/// A connection, its server's life, and the results of the handshake.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) wire: Wire,
    pub(crate) id: ConnectionId,
    pub(crate) server: Server,
    pub(crate) keys: Keys,
    /// The life and the server's address, by 12 hexadecimal digits of each part: every segment has the text.
    pub(super) origin: String,
}

/// The parts of INFO that a handshake needs.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) replid: String,
    pub(crate) life: Life,
    /// Whether every write reaches the disk before it is answered.
    pub(crate) appendonly: bool,
    pub(crate) calls: Calls,
}

/// How the scripts of a server are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// As functions of the library, which are compiled once.
    Functions,
    /// By their hashes, where the server has no Redis Functions, or refuses them. Each call runs the definitions of what
    /// the scripts share. A full server refuses what no function would be refused: only a function says that it may be run then.
    Hashes,
}

/// The names of the keys that belong to one life, and of those that belong to the server.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) prefix: String,
    pub(crate) life_family: String,
    /// The prefix of the keys of this life.
    of_life: String,
    pub(crate) state: String,
    pub(crate) ctr: String,
    pub(crate) slots: String,
    pub(crate) quiet: String,
    pub(crate) fence: String,
    pub(crate) copy: String,
    /// Exists while some key may have a queue.
    pub(crate) queues: String,
    pub(crate) lives: String,
    /// The lives whose counters are here without a gap.
    pub(crate) lineage: String,
    /// Exists while no manifest that was made here can be missing.
    pub(crate) complete: String,
    pub(crate) pointer: String,
    pub(crate) topology: String,
}

impl Keys {
    /// The name of the record of `key`.
    pub(super) fn record(&self, key: &LockKey) -> Vec<u8> {
        [self.prefix.as_bytes(), b":", key.text()].concat()
    }

    /// The name of the index of the counters in a slot.
    pub(crate) fn counters(&self, slot: Slot) -> String {
        format!("{}:#{{{}}}", self.prefix, slot.index())
    }

    /// The name of what the life knows about the keys of the arriving slot with this index.
    pub(super) fn import(&self, slot: usize) -> String {
        format!("{}import:{slot}", self.of_life)
    }

    fn new(prefix: &str, life: &Life) -> Self {
        let life_family = format!("{prefix}:life:");
        let own = format!("{life_family}{life}:");
        let of_life = |part: &str| format!("{own}{part}");
        Self {
            state: of_life("state"),
            ctr: of_life("ctr"),
            slots: of_life("slots"),
            quiet: of_life("quiet"),
            fence: of_life("fence"),
            copy: of_life("copy"),
            queues: of_life("queues"),
            lives: format!("{prefix}:lives"),
            lineage: format!("{prefix}:lineage"),
            complete: format!("{prefix}:complete"),
            pointer: format!("{prefix}:pointer"),
            topology: format!("{prefix}:topology"),
            of_life: own,
            prefix: prefix.to_owned(),
            life_family,
        }
    }
}

/// Run ids and replication ids are random.
fn origin(life: &Life, address: &str) -> String {
    let parts: Vec<_> = life
        .as_str()
        .split(':')
        .map(|id| format!("{id:.12}"))
        .collect();
    format!(
        "{} {:012x}",
        parts.join(":"),
        xxh3_64(address.as_bytes()) >> 16
    )
}

impl Connection {
    /// Opens a connection named `rf:<client>:<lane>`. The handshake names it, reads the life, checks that the server
    /// keeps its data, ends `former` if that was of the same life, and checks that the user may run the commands of the
    /// scripts. That check is a function of the library: a server without the library gets it.
    pub(crate) async fn open(
        options: &RedisOptions,
        lane: &str,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, ShardError> {
        Self::open_with(Wire::config(options), options, lane, former).await
    }

    /// As [`open`](Self::open), over a wire with these settings.
    pub(super) fn open_with<'a>(
        config: AsyncConnectionConfig,
        options: &'a RedisOptions,
        lane: &'a str,
        former: Option<(Life, ConnectionId)>,
    ) -> BoxFuture<'a, Result<Self, ShardError>> {
        Box::pin(async move {
            let wire = Wire::open(options, config).await?;
            // Each answer has a limit of its own: a busy server, or a busy machine, is not a silent one.
            match Self::shake_hands(wire, options, lane, former).await {
                Ok(connection) => Ok(connection),
                Err(Unshaken::Refused(error)) => Err(error),
                Err(Unshaken::Failed(error)) if error.is_timeout() => {
                    Err(diagnosis::of_silence(options, options.response_timeout).await)
                }
                Err(Unshaken::Failed(error)) => Err(diagnosis::of_handshake(options, error).await),
            }
        })
    }

    async fn shake_hands(
        mut wire: Wire,
        options: &RedisOptions,
        lane: &str,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, Unshaken> {
        let mut greeting = redis::pipe();
        let name = format!("rf:{}:{lane}", options.client);
        greeting.cmd("CLIENT").arg("SETNAME").arg(name).ignore();
        greeting.cmd("CLIENT").arg("ID");
        // One at a time: before Redis 7 a call takes one.
        for section in ["server", "replication", "memory", "cluster", "persistence"] {
            greeting.cmd("INFO").arg(section);
        }
        let mut answers: Vec<Value> = wire.query(&greeting).await?;
        let info = from_redis_value(Value::Array(answers.split_off(1)));
        let info: Vec<String> = info.map_err(RedisError::from)?;
        let id: u64 = from_redis_value(answers.remove(0)).map_err(RedisError::from)?;
        let mut server = Server::check(&InfoDict::new(&info.concat()), options)?;

        if let Some((life, ConnectionId(former))) = former
            && life == server.life
        {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("ID").arg(former);
            wire.run_one(&kill).await?;
        }
        let missing = match rights_by_scripts(&mut wire, options, &server).await {
            Err(refused) if lacks(&refused, &["fcall", "function"]) => {
                server.calls = Calls::Hashes;
                match rights_by_scripts(&mut wire, options, &server).await {
                    // What is said is what would make it fast.
                    Err(error) if lacks(&error, &["evalsha", "script"]) => {
                        return Err(refused.into());
                    }
                    checked => checked?,
                }
            }
            checked => checked?,
        };
        if let Some(reason) = missing {
            return Err(ShardError::Unusable { reason }.into());
        }
        let keys = Keys::new(options.prefix.as_str(), &server.life);
        Ok(Self {
            wire,
            id: ConnectionId(id),
            origin: origin(&server.life, &options.address.to_string()),
            server,
            keys,
        })
    }

    /// Waits until the connection is seen to have ended.
    pub(crate) async fn ended(&mut self) {
        self.wire.ended().await;
    }

    /// Sends `commands` in one write. Returns one answer or error for each.
    pub(crate) async fn run(&mut self, commands: &Pipeline) -> Result<Vec<Value>, ShardError> {
        self.wire
            .run(commands)
            .await
            .map_err(|error| classify("a batch", &error))
    }

    /// Sends one command.
    pub(crate) async fn query(
        &mut self,
        what: &'static str,
        command: &Cmd,
    ) -> Result<Value, ShardError> {
        self.wire
            .run_one(command)
            .await
            .map_err(|error| classify(what, &error))
    }
}

impl Calls {
    /// A call of `script`, without its keys and arguments. It has room for the arguments of one batch per key.
    pub(crate) fn call(self, script: &Script, keys: usize) -> Cmd {
        let mut command = Cmd::with_capacity(4 * keys + 8, 160 * keys);
        let name = match self {
            Self::Functions => scripts::in_force(script),
            Self::Hashes => &script.evaluated.hash,
        };
        command.arg(self.verb()).arg(name).arg(keys);
        command
    }

    /// The command that calls one.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Functions => "FCALL",
            Self::Hashes => "EVALSHA",
        }
    }
}

/// As [`rights::missing`]. A server without the scripts gets them.
async fn rights_by_scripts(
    wire: &mut Wire,
    options: &RedisOptions,
    server: &Server,
) -> RedisResult<Option<String>> {
    match rights::missing(wire, options, server).await {
        Err(error) if is_script_missing(&error) => {
            match server.calls {
                Calls::Functions => wire.load(&scripts::LIBRARY).await?,
                Calls::Hashes => wire.load_each(scripts::all()).await?,
            }
            rights::missing(wire, options, server).await
        }
        checked => checked,
    }
}

/// The reason why a handshake failed.
enum Unshaken {
    /// The server cannot be used.
    Refused(ShardError),
    Failed(RedisError),
}

impl From<ShardError> for Unshaken {
    fn from(error: ShardError) -> Self {
        Self::Refused(error)
    }
}

impl From<RedisError> for Unshaken {
    fn from(error: RedisError) -> Self {
        Self::Failed(error)
    }
}

impl Server {
    /// As [`Calls::call`].
    pub(crate) fn call(&self, script: &Script, keys: usize) -> Cmd {
        self.calls.call(script, keys)
    }

    /// Reads `info`, and refuses a server that would forget locks or that is not a primary.
    fn check(info: &InfoDict, options: &RedisOptions) -> Result<Self, ShardError> {
        let address = &options.address;
        let unusable = |reason: String| Err(diagnosis::unusable(address, &reason));
        let text = |name: &str| info.get::<String>(name).unwrap_or_default();

        let version = text("redis_version");
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        if (numbers.next().flatten(), numbers.next().flatten()) < (Some(6), Some(2)) {
            return unusable(format!(
                "redis_version is {version:?}: 6.2 or later is needed"
            ));
        }
        // The second is Valkey's name.
        let modes = ["redis_mode", "server_mode"];
        if modes.iter().any(|mode| text(mode) == "sentinel") {
            return unusable(
                "it is a Sentinel, which keeps no data: write redis+sentinel://host:port/NAME, with the \
                 name of the primary that it watches"
                    .into(),
            );
        }
        if text("cluster_enabled") == "1" {
            return unusable(
                "cluster_enabled is 1: Ringfence shards by itself; use standalone servers".into(),
            );
        }
        let policy = text("maxmemory_policy");
        if policy != "noeviction" {
            return unusable(format!(
                "maxmemory-policy is {policy:?} and could evict a lock; run: \
                 redis-cli -u {address} CONFIG SET maxmemory-policy noeviction (a managed server has it in \
                 its parameter group)"
            ));
        }
        let role = text("role");
        if role != "master" {
            let primary = format!("{}:{}", text("master_host"), text("master_port"));
            let why =
                format!("it is a replica of {primary}: a primary is needed (role is {role:?})");
            return Err(diagnosis::unreachable(address, &why));
        }
        let (run_id, mut replid) = (text("run_id"), text("master_replid"));
        let life = match is_off(Rule::ReplicationId) {
            true => Life::new(&*run_id),
            false => Life::new(format!("{run_id}:{replid}")),
        };
        if is_off(Rule::LifeInScript) {
            // Part of every replication id.
            replid.clear();
        }
        Ok(Self {
            replid,
            life,
            appendonly: text("aof_enabled") == "1",
            calls: Calls::Functions,
        })
    }
}
