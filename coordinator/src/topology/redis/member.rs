//! One server, from the topology's view.

use ::redis::Value;
use tokio::sync::Mutex;

use crate::{
    ids::Life,
    shard::{
        ConnectionId, ShardError,
        redis::{Connection, RedisOptions, Script, Server, fcall},
    },
    topology::TopologyError,
};

/// The word in its connections' names.
const LANE: &str = "control";

/// A server, reached over a separate connection.
///
/// Every operation may be repeated. An operation without an answer may have taken effect, or may
/// yet, until the next one begins: the next one first ends the former connection.
#[derive(Debug)]
pub(super) struct Member {
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

impl Member {
    pub(super) fn new(options: RedisOptions) -> Self {
        Self {
            options,
            wire: Mutex::default(),
        }
    }

    /// The way to reach it.
    pub(super) fn options(&self) -> &RedisOptions {
        &self.options
    }

    /// Its address, without credentials.
    pub(super) fn address(&self) -> &str {
        self.options.address.as_str()
    }

    /// The server, as the present connection's handshake found it.
    pub(super) async fn server(&self) -> Result<Server, TopologyError> {
        let mut wire = self.wire.lock().await;
        match wire.open(&self.options).await {
            Ok(connection) => Ok(connection.server.clone()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Does `operation`, and repeats it once if the connection was dead: a server that restarted
    /// leaves such a connection. Only for operations that may be repeated without notice; a swap is
    /// not one.
    pub(super) async fn repeated<T, F>(&self, operation: impl Fn() -> F) -> Result<T, TopologyError>
    where
        F: Future<Output = Result<T, TopologyError>>,
    {
        let connected = self.wire.lock().await.connection.is_some();
        match operation().await {
            Err(TopologyError::Unreachable { .. }) if connected => operation().await,
            answer => answer,
        }
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
            let mut command = fcall(script, keys.len());
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

    /// The meaning of `error` for a caller that asked this server for the topology.
    fn failed(&self, error: ShardError) -> TopologyError {
        let address = self.address().to_owned();
        match error {
            ShardError::Unusable { reason } => TopologyError::Seeds(reason),
            ShardError::Refused { .. } => TopologyError::Malformed(format!("{address}: {error}")),
            ShardError::Unreachable { reason } | ShardError::NoReply { reason } => {
                let prefix = format!("{address}: ");
                let reason = reason.strip_prefix(&prefix).unwrap_or(&reason).to_owned();
                TopologyError::Unreachable { address, reason }
            }
            ShardError::Overloaded { .. } | ShardError::Unarmed | ShardError::Stale { .. } => {
                TopologyError::Unreachable {
                    address,
                    reason: error.to_string(),
                }
            }
        }
    }
}

impl Wire {
    /// The connection; a new one if it was opened in another life than `life`, because it may have
    /// died with that life.
    /// with that.
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
