//! A member on Redis: its connection.

use ::redis::Value;
use tokio::sync::Mutex;

use super::member::failed;
use crate::{
    ids::Life,
    shard::{
        ConnectionId, ShardError,
        redis::{Connection, RedisOptions, Script, Server},
    },
    topology::TopologyError,
};

/// The word in its connections' names.
const LANE: &str = "control";

/// Keys that are looked for in one round trip.
const KEYS_PER_CALL: usize = 4096;

/// A server of Redis, reached over a separate connection.
#[derive(Debug)]
pub(super) struct OnRedis {
    options: RedisOptions,
    wire: Mutex<Wire>,
}

#[derive(Debug, Default)]
struct Wire {
    connection: Option<Connection>,
    former: Option<(Life, ConnectionId)>,
}

/// A script's keys, and its arguments after the first one, which is always the life's `replid`.
pub(super) struct Input<'a> {
    pub(super) keys: Vec<&'a str>,
    pub(super) arguments: Vec<String>,
}

/// A script's answer, and the server as the handshake found it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) server: Server,
    pub(super) code: i64,
    pub(super) rest: Vec<Value>,
}

/// The answer of every script if the server is in another life than expected.
pub(super) const OTHER_LIFE: i64 = -1;

impl OnRedis {
    pub(super) fn new(options: RedisOptions) -> Self {
        Self {
            options,
            wire: Mutex::default(),
        }
    }

    pub(super) fn redis(&self) -> &RedisOptions {
        &self.options
    }

    pub(super) async fn has_connection(&self) -> bool {
        self.wire.lock().await.connection.is_some()
    }

    /// The server, as the present connection's handshake found it.
    pub(super) async fn found(&self) -> Result<Server, TopologyError> {
        let mut wire = self.wire.lock().await;
        match wire.open(&self.options).await {
            Ok(connection) => Ok(connection.server.clone()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The first of `keys` that exists.
    pub(super) async fn first_of(
        &self,
        keys: impl Fn(&Connection) -> Vec<String>,
    ) -> Result<Option<usize>, TopologyError> {
        let mut wire = self.wire.lock().await;
        let asked = async {
            let connection = wire.open(&self.options).await?;
            let keys = keys(connection);
            for (at, some) in keys.chunks(KEYS_PER_CALL).enumerate() {
                let mut exist = ::redis::pipe();
                for key in some {
                    exist.cmd("EXISTS").arg(key);
                }
                let found = connection.run(&exist).await?;
                let found = found.iter().position(|one| *one == Value::Int(1));
                if let Some(place) = found {
                    return Ok(Some(at * KEYS_PER_CALL + place));
                }
            }
            Ok(None)
        };
        let asked: Result<_, ShardError> = asked.await;
        if asked.is_err() {
            wire.close();
        }
        asked.map_err(|error| self.failed(error))
    }

    /// Calls `script` in the server's present life.
    pub(super) async fn call(
        &self,
        script: &Script,
        input: impl FnOnce(&Connection) -> Input<'_> + Send,
    ) -> Result<Answer, TopologyError> {
        let answer = self.call_if(None, script, input).await?;
        if answer.code == OTHER_LIFE {
            let reason = "it began another life meanwhile".to_owned();
            return Err(self.failed(ShardError::Unreachable { reason }));
        }
        Ok(answer)
    }

    /// Calls `script` if the server is in `life`; else answers [`OTHER_LIFE`].
    pub(super) async fn call_in(
        &self,
        life: &Life,
        script: &Script,
        input: impl FnOnce(&Connection) -> Input<'_> + Send,
    ) -> Result<Answer, TopologyError> {
        self.call_if(Some(life), script, input).await
    }

    async fn call_if(
        &self,
        life: Option<&Life>,
        script: &Script,
        input: impl FnOnce(&Connection) -> Input<'_> + Send,
    ) -> Result<Answer, TopologyError> {
        let mut wire = self.wire.lock().await;
        let answered = async {
            let connection = wire.open_in(life, &self.options).await?;
            let server = connection.server.clone();
            if life.is_some_and(|life| *life != server.life) {
                return Ok(Answer {
                    server,
                    code: OTHER_LIFE,
                    rest: Vec::new(),
                });
            }
            let Input { keys, arguments } = input(connection);
            let mut command = server.call(script, keys.len());
            command.arg(keys).arg(&server.replid).arg(arguments);
            answer(
                server,
                script,
                connection.query(script.name, &command).await?,
            )
        };
        let answered = answered.await;
        if answered
            .as_ref()
            .map_or(true, |answer| answer.code == OTHER_LIFE)
        {
            wire.close();
        }
        answered.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ShardError) -> TopologyError {
        failed(self.options.address.as_str(), error)
    }
}

impl Wire {
    /// The connection; a new one if it was opened in another life than `life`, because it may have
    /// died with that life.
    async fn open_in(
        &mut self,
        life: Option<&Life>,
        options: &RedisOptions,
    ) -> Result<&mut Connection, ShardError> {
        let opened_in = self
            .connection
            .as_ref()
            .map(|connection| &connection.server.life);
        if life.is_some() && opened_in != life {
            self.close();
        }
        self.open(options).await
    }

    /// The connection; if there is none, a new one.
    async fn open(&mut self, options: &RedisOptions) -> Result<&mut Connection, ShardError> {
        if self.connection.is_none() {
            let connection = Connection::open(options, LANE, self.former.clone()).await?;
            self.former = Some((connection.server.life.clone(), connection.id));
            self.connection = Some(connection);
        }
        Ok(self.connection.as_mut().expect("just put there"))
    }

    /// Drops the connection. The next one ends it at the server.
    fn close(&mut self) {
        self.connection = None;
    }
}

/// The answer of `script`: a code, and its data.
fn answer(server: Server, script: &Script, value: Value) -> Result<Answer, ShardError> {
    match value {
        Value::Array(mut rest) if matches!(rest.first(), Some(Value::Int(_))) => {
            let Value::Int(code) = rest.remove(0) else {
                unreachable!("just matched")
            };
            Ok(Answer { server, code, rest })
        }
        other => {
            let reason = format!("unexpected answer {other:?}");
            Err(ShardError::Refused {
                what: script.name,
                reason,
            })
        }
    }
}
