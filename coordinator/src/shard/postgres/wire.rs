//! One physical connection, driven by whoever waits on it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::timeout;
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, Socket, tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    PostgresAddress, PostgresOptions,
    error::{classify, is_refused_by_tls},
};
use crate::shard::{ShardError, docs::sql::UNREAD_MAX, tls::Tls};

/// A connection. It never reconnects.
pub(super) struct Wire {
    pub(super) client: Client,
    carrier: Carrier,
    pub(super) address: String,
    response_timeout: Duration,
}

/// The side that moves bytes.
pub(super) struct Carrier {
    connection: Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
    over: bool,
    /// Channels and messages.
    unread: Vec<(String, String)>,
}

impl Wire {
    /// Connects to `to`. The session keeps the settings of its user: behind a pooler it is others', too.
    pub(super) async fn connect(
        options: &PostgresOptions,
        to: &PostgresAddress,
    ) -> Result<Self, ShardError> {
        let mut failed = None;
        for config in &to.configs {
            match Self::connect_by(options, to, config.clone()).await {
                Ok(wire) => return Ok(wire),
                // Of several, that of the last one that may serve later.
                Err(error @ ShardError::Unreachable { .. }) => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.expect("an address has a host"))
    }

    async fn connect_by(
        options: &PostgresOptions,
        to: &PostgresAddress,
        mut config: Config,
    ) -> Result<Self, ShardError> {
        let address = to.to_string();
        config.application_name(format!("ringfence {}", options.prefix));
        let unusable = |reason: String| ShardError::Unusable {
            reason: format!("{address}: {reason}"),
        };
        let unreachable = |reason: String| ShardError::Unreachable {
            reason: format!("{address}: {reason}"),
        };
        // Without TLS it is not used.
        let tls = to.tls.clone().map(|secured| secured.tls);
        let tls = tls.map_or_else(Tls::distrustful, Ok);
        let tls = tls.map_err(|error| unusable(error.to_string()))?;
        let connector = MakeRustlsConnect::new((*tls.0).clone());
        let connected = timeout(options.connect_timeout, config.connect(connector)).await;
        let (client, connection) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) if error.as_db_error().is_some() => {
                return Err(match classify("a connection", &address, &error) {
                    ShardError::NoReply { reason } => ShardError::Unreachable { reason },
                    other => other,
                });
            }
            Ok(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let reason = cause.unwrap_or_else(|| error.to_string());
                return Err(match is_refused_by_tls(&error) {
                    true => unusable(reason),
                    false => unreachable(reason),
                });
            }
            Err(_) => {
                let waited = options.connect_timeout;
                return Err(unreachable(format!("no connection in {waited:?}")));
            }
        };
        Ok(Self {
            client,
            carrier: Carrier {
                connection,
                over: false,
                unread: Vec::new(),
            },
            address,
            response_timeout: options.response_timeout,
        })
    }

    /// Runs statements without arguments.
    pub(super) async fn execute(&mut self, statements: &str) -> Result<(), ShardError> {
        let done = self.ask(|client| client.batch_execute(statements)).await?;
        done.map_err(|error| classify("statements", &self.address, &error))
    }

    /// Runs what `request` asks of the client. The inner error is the server's.
    pub(super) async fn ask<'a, T, F>(
        &'a mut self,
        request: impl FnOnce(&'a Client) -> F,
    ) -> Result<Result<T, Error>, ShardError>
    where
        F: Future<Output = Result<T, Error>> + Send + 'a,
        T: Send,
    {
        let Self {
            client,
            carrier,
            address,
            response_timeout,
        } = self;
        match timeout(*response_timeout, carrier.carry(request(client))).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(over(address)),
            Err(_) => Err(late(address, *response_timeout)),
        }
    }

    /// Waits until the connection is seen to have ended.
    pub(super) async fn ended(&mut self) {
        poll_fn(|context| {
            self.carrier.move_on(context);
            match self.carrier.over {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Waits until a message has arrived, or the connection is seen to have ended.
    pub(super) async fn has_message(&mut self) {
        poll_fn(|context| {
            self.carrier.move_on(context);
            match self.carrier.over || !self.carrier.unread.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// The messages that have arrived, with their channels.
    pub(super) fn messages(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.carrier.unread)
    }
}

impl Carrier {
    /// Waits for `answer`. `None`: the connection ended first.
    async fn carry<T>(&mut self, answer: impl Future<Output = T> + Send) -> Option<T> {
        let mut answer = pin!(answer);
        poll_fn(|context| {
            // It puts its request in at its first poll.
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            self.move_on(context);
            match answer.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending if self.over => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Moves bytes until there are no more to move now.
    fn move_on(&mut self, context: &mut Context<'_>) {
        while !self.over {
            match self.connection.poll_message(context) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(AsyncMessage::Notification(message)))) => {
                    if self.unread.len() < UNREAD_MAX {
                        let channel = message.channel().to_owned();
                        self.unread.push((channel, message.payload().to_owned()));
                    }
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => self.over = true,
            }
        }
    }
}

fn over(address: &str) -> ShardError {
    ShardError::NoReply {
        reason: format!("{address}: the connection was closed"),
    }
}

fn late(address: &str, waited: Duration) -> ShardError {
    ShardError::NoReply {
        reason: format!("{address}: none in {waited:?}"),
    }
}
