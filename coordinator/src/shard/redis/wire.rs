//! The bytes of one connection, moved by whoever waits for an answer: no task of its own, so that a
//! batch costs no hop between threads.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};

use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, Pipeline, RedisResult,
    Value, aio::MultiplexedConnection,
};
use tokio::net::TcpStream;

use super::RedisOptions;

/// Requests the connection's own queue takes. A link sends one batch at a time.
const PIPELINE_BUFFER: usize = 64;

/// What moves bytes between the connection's queue and the socket.
type Pump = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An open connection.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    /// None where the redis crate runs a task for it: over TLS and Unix sockets.
    pump: Option<Pump>,
}

impl Wire {
    pub(super) async fn open(options: &RedisOptions) -> RedisResult<Self> {
        let info = options.address.info();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect_timeout))
            .set_response_timeout(Some(options.response_timeout))
            .set_pipeline_buffer_size(PIPELINE_BUFFER);
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            let client = redis::Client::open(info.clone())?;
            let connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            return Ok(Self {
                connection,
                pump: None,
            });
        };
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        let opened = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config);
        let (connection, pump) = opened.await?;
        Ok(Self {
            connection,
            pump: Some(Box::pin(pump)),
        })
    }

    /// Waits until the connection is seen to have ended; for ever where the crate has a task for it.
    pub(super) async fn ended(&mut self) {
        match &mut self.pump {
            Some(pump) => pump.await,
            None => std::future::pending().await,
        }
    }

    /// Sends `commands` in one write and reads all their answers as one value.
    ///
    /// # Errors
    ///
    /// The first answer that is an error, or the connection's.
    pub(super) async fn query<T: FromRedisValue>(&mut self, commands: &Pipeline) -> RedisResult<T> {
        pumped(&mut self.pump, commands.query_async(&mut self.connection)).await
    }

    /// Sends `commands` in one write; an answer for each, be it an error.
    pub(super) async fn run(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let sent = self
            .connection
            .send_packed_commands(commands, 0, commands.len());
        pumped(&mut self.pump, sent).await
    }

    /// Sends one command.
    pub(super) async fn run_one(&mut self, command: &Cmd) -> RedisResult<Value> {
        let sent = self.connection.send_packed_command(command);
        pumped(&mut self.pump, sent).await?.extract_error()
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(formatter)
    }
}

/// Waits for `answer`, moving bytes meanwhile.
async fn pumped<T>(
    pump: &mut Option<Pump>,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let Some(pump) = pump else {
        return answer.await;
    };
    let mut answer = pin!(answer);
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        let closed = pump.as_mut().poll(context).is_ready();
        match answer.as_mut().poll(context) {
            Poll::Pending if closed => {
                Poll::Ready(Err((ErrorKind::Io, "the connection was closed").into()))
            }
            polled => polled,
        }
    })
    .await
}
