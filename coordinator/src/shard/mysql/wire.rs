//! One physical connection.

use std::{fmt, time::Duration};

use mysql_async::{
    Conn, DriverError, Error, IoError, OptsBuilder, Row, Value, from_row_opt,
    prelude::Queryable as _,
};
use tokio::time::timeout;

use super::{
    MysqlOptions,
    error::{classify, is_conflict},
};
use crate::{
    ids::Life,
    shard::{ConnectionId, ShardError, docs::sql::SCHEMA_VERSION, tls},
};

/// A connection. It never reconnects.
pub(super) struct Wire {
    /// None while a request is under way: one that was dropped takes the connection along.
    conn: Option<Conn>,
    pub(super) address: String,
    prefix: String,
    response_timeout: Duration,
}

impl Wire {
    /// Connects, and sets the session up: times are UTC, and no request outlasts its caller.
    pub(super) async fn connect(options: &MysqlOptions) -> Result<Self, ShardError> {
        let address = options.address.to_string();
        let patience = options.response_timeout.as_secs_f64();
        let setup = [
            "SET time_zone = '+00:00', tx_isolation = 'READ-COMMITTED', autocommit = 1".to_owned(),
            format!("SET innodb_lock_wait_timeout = 1, max_statement_time = {patience}"),
        ];
        let opts = OptsBuilder::from_opts(options.address.opts.clone());
        let opts = opts.setup(setup.to_vec()).prefer_socket(false);
        let connected = timeout(options.connect_timeout, Conn::new(opts)).await;
        let unreachable = |reason: String| ShardError::Unreachable {
            reason: format!("{address}: {reason}"),
        };
        let conn = match connected {
            Ok(Ok(conn)) => conn,
            Ok(Err(error @ Error::Server(_))) => {
                return Err(match classify("a connection", &address, &error) {
                    ShardError::NoReply { reason } => ShardError::Unreachable { reason },
                    other => other,
                });
            }
            Ok(Err(error)) if is_refused_by_tls(&error) => {
                let reason = format!("{address}: {error}");
                return Err(ShardError::Unusable { reason });
            }
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => {
                let waited = options.connect_timeout;
                return Err(unreachable(format!("no connection in {waited:?}")));
            }
        };
        Ok(Self {
            conn: Some(conn),
            address,
            prefix: options.quoted_prefix(),
            response_timeout: options.response_timeout,
        })
    }

    /// Runs what `request` asks of the connection, again if the server undid it for the sake of another.
    pub(super) async fn ask<T>(
        &mut self,
        what: &'static str,
        request: impl AsyncFnOnce(&mut Conn) -> Result<T, Error> + Clone,
    ) -> Result<T, ShardError> {
        let Some(mut conn) = self.conn.take() else {
            return Err(ShardError::NoReply {
                reason: format!("{}: the connection was closed", self.address),
            });
        };
        let answered = timeout(self.response_timeout, async {
            loop {
                match request.clone()(&mut conn).await {
                    Err(error) if is_conflict(&error) => {}
                    other => return other,
                }
            }
        });
        match answered.await {
            Ok(Ok(answer)) => {
                self.conn = Some(conn);
                Ok(answer)
            }
            Ok(Err(error)) => {
                let error = classify(what, &self.address, &error);
                if !error.ends_link() {
                    self.conn = Some(conn);
                }
                Err(error)
            }
            Err(_) => Err(ShardError::NoReply {
                reason: format!("{}: none in {:?}", self.address, self.response_timeout),
            }),
        }
    }

    /// Calls a procedure. Returns its sets of rows, of which the last has one row.
    pub(super) async fn call(
        &mut self,
        procedure: &'static str,
        arguments: Vec<Value>,
    ) -> Result<(Vec<Row>, Row), ShardError> {
        let marks = vec!["?"; arguments.len()].join(", ");
        let call = format!(
            "CALL `{}_{procedure}_{SCHEMA_VERSION}`({marks})",
            self.prefix
        );
        let answered = self.ask(procedure, async move |conn: &mut Conn| {
            let mut sets = conn.exec_iter(call, arguments).await?;
            let mut rows = Vec::new();
            while !sets.is_empty() {
                rows.extend(sets.collect::<Row>().await?);
            }
            Ok(rows)
        });
        let mut rows = answered.await?;
        match rows.pop() {
            Some(last) => Ok((rows, last)),
            None => Err(self.malformed(procedure)),
        }
    }

    /// Opens a connection to the documents, and ends `former`. Tells the life, the id, and whether commits are durable.
    pub(super) async fn open(
        &mut self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<(Life, ConnectionId, bool), ShardError> {
        let (life, id) = former.unzip();
        let life = life.map(|life| life.as_str().to_owned());
        let arguments = vec![life.into(), id.map(|id| id.0).into()];
        let (_, row) = self.call("open", arguments).await?;
        let (life, id, is_durable): (String, u64, bool) = self.read("open", row)?;
        Ok((Life::new(life), ConnectionId(id), is_durable))
    }

    /// Reads a row.
    pub(super) fn read<T: mysql_async::prelude::FromRow>(
        &self,
        what: &'static str,
        row: Row,
    ) -> Result<T, ShardError> {
        from_row_opt(row).map_err(|_| self.malformed(what))
    }

    fn malformed(&self, what: &'static str) -> ShardError {
        let reason = format!("{}: a row of another form", self.address);
        ShardError::Refused { what, reason }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a connection to {}", self.address)
    }
}

/// Whether client and server do not agree on TLS: on a certificate, or on its use.
fn is_refused_by_tls(error: &Error) -> bool {
    match error {
        Error::Io(IoError::Io(error)) => tls::is_refusal(error),
        Error::Io(IoError::Tls(_)) | Error::Driver(DriverError::NoClientSslFlagFromServer) => true,
        _ => false,
    }
}
