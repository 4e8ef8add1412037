//! The bytes of one connection, moved by the tasks that wait for answers. The connection has no task of its own, so a
//! batch needs no thread switch.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll, ready},
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisResult, Value,
    aio::MultiplexedConnection,
};
use tokio::time::timeout;

use super::{
    RedisOptions,
    address::Pump,
    diagnosis,
    scripts::{Library, Script},
    self_wakes::SelfWakes,
};
use crate::shard::ShardError;

/// Capacity of the connection's own queue. A link sends one batch at a time.
const PIPELINE_BUFFER: usize = 64;

/// An open connection.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    bytes: Bytes,
}

/// Moves the bytes of a connection.
struct Bytes {
    /// `None` once it has ended: it must not be polled again.
    pump: Option<Pump>,
    /// Requests wake the pump, and the pump wakes the task that waits for the answer.
    wakes: SelfWakes,
}

impl Wire {
    /// The settings that all connections share.
    pub(super) fn config(options: &RedisOptions) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_response_timeout(Some(options.response_timeout))
            .set_pipeline_buffer_size(PIPELINE_BUFFER)
    }

    /// Connects, and logs in.
    pub(super) async fn open(
        options: &RedisOptions,
        config: AsyncConnectionConfig,
    ) -> Result<Self, ShardError> {
        let limit = options.connect_timeout;
        let (connection, pump) = match timeout(limit, options.address.open(config)).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(diagnosis::of_handshake(options, error).await),
            Err(_) => return Err(diagnosis::of_silence(options, limit).await),
        };
        let bytes = Bytes {
            pump: Some(pump),
            wakes: SelfWakes::new(),
        };
        Ok(Self { connection, bytes })
    }

    /// Waits until the connection is seen to have ended.
    pub(super) async fn ended(&mut self) {
        poll_fn(|context| self.poll_ended(context)).await;
    }

    /// Moves all bytes that can be moved. Ready once the connection has ended.
    pub(super) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Bytes { pump, wakes } = &mut self.bytes;
        wakes.poll(context, |context| poll_pump(pump, context))
    }

    /// The answer to `command`, which is sent at the first poll. The task that waits for it moves the bytes too.
    pub(super) fn ask(
        &self,
        command: Cmd,
    ) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
        let mut connection = self.connection.clone();
        async move { connection.send_packed_command(&command).await }
    }

    /// Sends `commands` in one write and reads all their answers as one value.
    ///
    /// # Errors
    ///
    /// The first answer that is an error, or the connection's.
    pub(super) async fn query<T: FromRedisValue>(&mut self, commands: &Pipeline) -> RedisResult<T> {
        let asked = commands.query_async(&mut self.connection);
        self.bytes.answer(asked).await
    }

    /// Loads `library`, if no other process has loaded it meanwhile.
    pub(super) async fn load(&mut self, library: &Library) -> RedisResult<()> {
        let mut load = redis::cmd("FUNCTION");
        load.arg("LOAD").arg(&library.code);
        match self.run_one(&load).await {
            Err(error) if error.to_string().contains("already exists") => Ok(()),
            loaded => loaded.map(drop),
        }
    }

    /// Loads scripts for `EVALSHA`. To load one that is there has no effect.
    pub(super) async fn load_each(
        &mut self,
        scripts: impl Iterator<Item = &'static Script>,
    ) -> RedisResult<()> {
        let mut load = redis::pipe();
        for script in scripts {
            let text = &script.evaluated.text;
            load.cmd("SCRIPT").arg("LOAD").arg(text).ignore();
        }
        self.query(&load).await
    }

    /// Sends `commands` in one write. Returns one answer or error for each.
    pub(super) async fn run(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let asked = self
            .connection
            .send_packed_commands(commands, 0, commands.len());
        self.bytes.answer(asked).await
    }

    /// Sends one command.
    pub(super) async fn run_one(&mut self, command: &Cmd) -> RedisResult<Value> {
        let asked = self.connection.send_packed_command(command);
        self.bytes.answer(asked).await?.extract_error()
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(formatter)
    }
}

impl Bytes {
    /// Waits for the answer to `asked`, and moves bytes meanwhile.
    async fn answer<T>(&mut self, asked: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut asked = pin!(asked);
        let Self { pump, wakes } = self;
        let mut poll = |context: &mut Context<'_>| {
            let ended = poll_pump(pump, context).is_ready();
            match asked.as_mut().poll(context) {
                Poll::Pending if ended => {
                    Poll::Ready(Err((ErrorKind::Io, "the connection was closed").into()))
                }
                polled => polled,
            }
        };
        poll_fn(|context| wakes.poll(context, &mut poll)).await
    }
}

/// As [`Wire::poll_ended`].
fn poll_pump(pump: &mut Option<Pump>, context: &mut Context<'_>) -> Poll<()> {
    if let Some(moving) = pump {
        ready!(moving.as_mut().poll(context));
        *pump = None;
    }
    Poll::Ready(())
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::ids::ClientId;

    /// Answers every command; and the last one, PING, together with the end of the connection.
    async fn serve(listener: TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 4096];
        loop {
            let length = stream.read(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes[..length]);
            let commands = text.split("\r\n").filter(|line| line.starts_with('*'));
            let answers = "+OK\r\n".repeat(commands.count());
            stream.write_all(answers.as_bytes()).await.unwrap();
            if text.contains("PING") {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_connection_that_ends_with_its_last_answer_has_ended_and_says_so_again() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("redis://{}", listener.local_addr().unwrap());
        let options = RedisOptions::new(address.parse().unwrap(), ClientId(1));
        let client = async {
            let config = Wire::config(&options);
            let mut wire = Wire::open(&options, config).await.unwrap();
            assert_eq!(wire.run_one(&redis::cmd("PING")).await, Ok(Value::Okay));
            let error = wire.run_one(&redis::cmd("PING")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            wire.ended().await;
            wire.ended().await;
        };
        tokio::join!(serve(listener), client);
    }
}
