//! The bytes of one connection, moved by whoever waits for an answer: no task of its own, so that a
//! batch costs no hop between threads.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
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
enum Pump {
    /// Whoever waits for an answer.
    Waiter(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// A task of the redis crate's: over TLS and Unix sockets.
    Task,
    /// Nothing any more.
    Ended,
}

impl Pump {
    /// Moves what can be moved. Ready once the connection has ended, and whenever asked again.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Waiter(moving) => ready!(moving.as_mut().poll(context)),
            Self::Task => return Poll::Pending,
            Self::Ended => {}
        }
        *self = Self::Ended;
        Poll::Ready(())
    }
}

/// An open connection.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    pump: Pump,
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
                pump: Pump::Task,
            });
        };
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        let opened = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config);
        let (connection, pump) = opened.await?;
        Ok(Self {
            connection,
            pump: Pump::Waiter(Box::pin(pump)),
        })
    }

    /// Waits until the connection is seen to have ended; for ever where the crate has a task for it.
    pub(super) async fn ended(&mut self) {
        poll_fn(|context| self.pump.poll_ended(context)).await;
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
    pump: &mut Pump,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let mut answer = pin!(answer);
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        let ended = pump.poll_ended(context).is_ready();
        match answer.as_mut().poll(context) {
            Poll::Pending if ended => {
                Poll::Ready(Err((ErrorKind::Io, "the connection was closed").into()))
            }
            polled => polled,
        }
    })
    .await
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
            let mut wire = Wire::open(&options).await.unwrap();
            assert_eq!(wire.run_one(&redis::cmd("PING")).await, Ok(Value::Okay));
            let error = wire.run_one(&redis::cmd("PING")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            wire.ended().await;
            wire.ended().await;
        };
        tokio::join!(serve(listener), client);
    }
}
