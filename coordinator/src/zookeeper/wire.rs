//! Requests to an ensemble.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};
use zookeeper_client::{Acls, Client, Error};

use super::ZookeeperOptions;
use crate::{random::Random, shard::ShardError};

/// Gates and messages of a process that is gone last so long.
const SESSION: Duration = Duration::from_secs(30);

/// The pause before a request is sent again is a random part of this, from half of it.
const PAUSE: Duration = Duration::from_millis(50);

/// An ensemble, of which one server is asked until it fails.
pub(super) struct Wire {
    pub(super) options: ZookeeperOptions,
    pub(super) random: Arc<Random>,
    client: Mutex<Option<Client>>,
    /// The last request was given up, or there was none: the next one is tried once. So a caller that does not wait gets its
    /// answer, and one that waits asks again.
    is_down: AtomicBool,
}

/// An answer.
pub(super) struct Answer<T> {
    pub(super) value: T,
    /// The request was sent before, without an answer: it may have been applied then.
    pub(super) is_repeated: bool,
}

/// What an error means for the request.
enum Failure {
    /// It may succeed on another connection.
    Elsewhere(String),
    /// No repeat will help.
    Final(ShardError),
}

impl Wire {
    pub(super) fn new(options: ZookeeperOptions, random: Arc<Random>) -> Self {
        Self {
            options,
            random,
            client: Mutex::default(),
            is_down: AtomicBool::new(true),
        }
    }

    /// Who may use the znodes that are made here.
    pub(super) fn acls(&self) -> Acls<'static> {
        match self.options.address.login {
            Some(_) => Acls::creator_all(),
            None => Acls::anyone_all(),
        }
    }

    /// Sends what `ask` sends, again and again, until it is answered or the patience ends.
    ///
    /// # Errors
    ///
    /// [`ShardError::NoReply`]: the request may have been applied, or may yet be.
    pub(super) async fn ask<T, F>(&self, ask: impl Fn(Client) -> F) -> Result<Answer<T>, ShardError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut most = match self.is_down.load(Relaxed) {
            true => 1,
            false => usize::MAX,
        };
        let (mut sent, mut reason, mut used) = (0, None, None);
        let asked = timeout(self.options.patience, async {
            while most > 0 {
                most -= 1;
                let failure = match self.client().await {
                    Ok(client) => {
                        sent += 1;
                        used = Some(client.session_id());
                        match ask(client).await {
                            Ok(value) => return Ok(Some(value)),
                            Err(error) => self.judge(&error),
                        }
                    }
                    Err(failure) => failure,
                };
                match failure {
                    Failure::Final(error) => return Err(error),
                    Failure::Elsewhere(why) => reason = Some(why),
                }
                sleep(self.random.jitter(PAUSE)).await;
            }
            Ok(None)
        });
        let asked = asked.await;
        let is_answered = matches!(asked, Ok(Ok(Some(_))));
        self.is_down.store(!is_answered, Relaxed);
        match asked {
            Ok(Ok(Some(value))) => Ok(Answer {
                value,
                is_repeated: sent > 1,
            }),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => {
                // What it has not sent yet, it never sends.
                if let Ok(mut client) = self.client.try_lock() {
                    client.take_if(|client| Some(client.session_id()) == used);
                }
                let late = || format!("no answer within {:?}", self.options.patience);
                let why = reason.unwrap_or_else(late);
                let reason = format!("{}: {why}", self.options.address);
                Err(match sent {
                    0 => ShardError::Unreachable { reason },
                    _ => ShardError::NoReply { reason },
                })
            }
        }
    }

    /// The session of ZooKeeper that requests share.
    async fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock().await;
        if let Some(client) = client.as_ref().filter(|one| !one.state().is_terminated()) {
            return Ok(client.clone());
        }
        let new = self.connect().await.map_err(|error| self.judge(&error))?;
        *client = Some(new.clone());
        Ok(new)
    }

    /// A session of ZooKeeper of the caller's own.
    pub(super) async fn open(&self) -> Result<Client, ShardError> {
        let client = timeout(self.options.patience, self.connect()).await;
        let late = |_| ShardError::Unreachable {
            reason: format!("{}: no connection", self.options.address),
        };
        client.map_err(late)?.map_err(|error| self.error(&error))
    }

    async fn connect(&self) -> Result<Client, Error> {
        let address = &self.options.address;
        let mut connector = Client::connector()
            .with_session_timeout(SESSION)
            .with_connection_timeout(self.options.response_timeout)
            .with_fail_eagerly();
        if let Some(login) = &address.login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        // Processes begin at different servers.
        let mut hosts = address.hosts.clone();
        let first = self.random.below(hosts.len() as u64);
        hosts.rotate_left(first as usize);
        connector.connect(&hosts.join(",")).await
    }

    /// The error that `error` is to a request that was sent, and not repeated.
    pub(super) fn error(&self, error: &Error) -> ShardError {
        match self.judge(error) {
            Failure::Final(error) => error,
            Failure::Elsewhere(reason) => ShardError::NoReply { reason },
        }
    }

    fn judge(&self, error: &Error) -> Failure {
        let address = &self.options.address;
        let unusable = |reason: String| Failure::Final(ShardError::Unusable { reason });
        match error {
            Error::NoAuth | Error::InvalidAcl => unusable(format!(
                "{address}: ZooKeeper: {error}: the user needs all rights on the znode of the prefix, and on those under it"
            )),
            Error::AuthFailed => unusable(format!("{address}: ZooKeeper refuses the login")),
            Error::Unimplemented => {
                unusable(format!("{address}: ZooKeeper 3.6 or later is needed"))
            }
            Error::QuotaExceeded => unusable(format!(
                "{address}: ZooKeeper: {error}: raise the quota of the znode of the prefix (setquota)"
            )),
            Error::BadArguments(_) | Error::MarshallingError | Error::UnmarshalError { .. } => {
                Failure::Final(ShardError::Refused {
                    what: "a request",
                    reason: error.to_string(),
                })
            }
            Error::NoHosts => Failure::Elsewhere(
                "no server of it takes requests, or another connection from here (maxClientCnxns)"
                    .into(),
            ),
            _ => Failure::Elsewhere(error.to_string()),
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.address.fmt(formatter)
    }
}
