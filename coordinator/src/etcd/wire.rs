//! Requests to the nodes of a cluster.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use super::{
    EtcdOptions,
    api::{
        AuthenticateRequest, StatusRequest, TxnRequest, TxnResponse, auth_client::AuthClient,
        kv_client::KvClient, maintenance_client::MaintenanceClient,
    },
};
use crate::{random::Random, shard::ShardError};

/// A node that answers no ping for this long is given up. etcd refuses more frequent pings than one in 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);

/// The longest answer: many documents of locks, each with many waiters.
const ANSWER_MAX: usize = 1 << 28;

/// The pause before the next node is asked is a random part of this, from half of it.
const PAUSE: Duration = Duration::from_millis(50);

/// A cluster, of which one node is asked until it fails.
pub(super) struct Wire {
    pub(super) options: EtcdOptions,
    pub(super) random: Arc<Random>,
    /// In the order of the address.
    channels: Vec<OnceLock<Channel>>,
    /// The node to ask next.
    at: AtomicUsize,
    /// The last request was given up, or there was none: the next one asks each node once. So a caller that does not wait
    /// gets its answer, and one that waits asks again.
    is_down: AtomicBool,
    /// Of the user who is logged in.
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

/// An answer.
pub(super) struct Answer<T> {
    pub(super) value: T,
    /// The request was sent before, without an answer: it may have been applied then.
    pub(super) is_repeated: bool,
}

/// What an error means for the request.
enum Failure {
    /// This node does not serve now: another one may.
    Elsewhere(String),
    /// The token is not valid any more.
    LoggedOut(String),
    /// No repeat will help.
    Final(ShardError),
}

impl Wire {
    pub(super) fn new(options: EtcdOptions, random: Arc<Random>) -> Self {
        let nodes = options.address.hosts.len();
        let first = random.below(nodes as u64);
        Self {
            channels: (0..nodes).map(|_| OnceLock::new()).collect(),
            at: AtomicUsize::new(first as usize),
            is_down: AtomicBool::new(true),
            token: Mutex::default(),
            options,
            random,
        }
    }

    /// Applies a transaction.
    pub(super) async fn txn(&self, txn: TxnRequest) -> Result<Answer<TxnResponse>, ShardError> {
        let ask = |channel, request| async move {
            let client = KvClient::new(channel).max_decoding_message_size(ANSWER_MAX);
            { client }.txn(request).await
        };
        self.ask(txn, ask).await
    }

    /// Waits for a random part of `length`.
    pub(super) async fn pause(&self, length: Duration) {
        sleep(self.random.jitter(length)).await;
    }

    /// Refuses a cluster that cannot keep locks: an older one, or one that has no space left.
    pub(super) async fn check(&self) -> Result<(), ShardError> {
        let ask =
            |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        let status = self.ask(StatusRequest {}, ask).await?.value;
        let address = &self.options.address;
        let refused = |reason: String| Err(ShardError::Unusable { reason });
        if !is_new_enough(&status.version) {
            let version = &status.version;
            return refused(format!(
                "{address} is etcd {version}: 3.4 or later is needed"
            ));
        }
        match &status.errors[..] {
            [] => Ok(()),
            errors => refused(format!("{address} has a fault: {}", errors.join(", "))),
        }
    }

    /// Sends `message` to one node after the other, until one answers or the patience ends.
    ///
    /// # Errors
    ///
    /// [`ShardError::NoReply`]: the request may have been applied, or may yet be.
    pub(super) async fn ask<M, T, F>(
        &self,
        message: M,
        ask: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<Answer<T>, ShardError>
    where
        M: Clone,
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut reason = None;
        let mut most = match self.is_down.load(Relaxed) {
            true => self.channels.len(),
            false => usize::MAX,
        };
        let asked = timeout(self.options.patience, async {
            while most > 0 {
                most -= 1;
                let node = self.at.load(Relaxed);
                let why = match self.ask_node(node, &message, &ask).await {
                    Ok(value) => return Ok(Some((value, reason.is_some()))),
                    Err(Failure::Final(error)) => return Err(error),
                    Err(Failure::LoggedOut(why)) => {
                        *self.token.lock() = None;
                        why
                    }
                    Err(Failure::Elsewhere(why)) => {
                        let next = (node + 1) % self.channels.len();
                        let _ = self.at.compare_exchange(node, next, Relaxed, Relaxed);
                        why
                    }
                };
                reason = Some(format!("{}: {why}", self.options.address.hosts[node]));
                sleep(self.random.jitter(PAUSE)).await;
            }
            Ok(None)
        });
        let asked = asked.await;
        self.is_down
            .store(!matches!(asked, Ok(Ok(Some(_)))), Relaxed);
        match (asked, reason) {
            (Ok(Ok(Some((value, is_repeated)))), _) => Ok(Answer { value, is_repeated }),
            // An earlier node may have applied it.
            (Ok(Err(error)), Some(reason)) if error.is_retryable() => Err(ShardError::NoReply {
                reason: format!("{error}; before: {reason}"),
            }),
            (Ok(Err(error)), _) => Err(error),
            (Ok(Ok(None)) | Err(_), reason) => Err(ShardError::NoReply {
                reason: reason
                    .unwrap_or_else(|| format!("no answer within {:?}", self.options.patience)),
            }),
        }
    }

    async fn ask_node<M, T, F>(
        &self,
        node: usize,
        message: &M,
        ask: &impl Fn(Channel, Request<M>) -> F,
    ) -> Result<T, Failure>
    where
        M: Clone,
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let channel = self.channel(node)?;
        let within = self.options.response_timeout;
        let late = |_| Failure::Elsewhere(format!("no answer within {within:?}"));
        let token = self.token.lock().clone();
        let token = match token {
            None if self.options.address.login.is_some() => {
                let login = timeout(within, self.log_in(channel.clone()));
                Some(login.await.map_err(late)??)
            }
            token => token,
        };
        let mut request = Request::new(message.clone());
        let metadata = request.metadata_mut();
        // A node that lost its leader says so at once.
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = token {
            metadata.insert("token", token);
        }
        let answer = timeout(within, ask(channel, request)).await.map_err(late)?;
        answer
            .map(Response::into_inner)
            .map_err(|status| judge(&status))
    }

    /// A token for the user of the address.
    async fn log_in(&self, channel: Channel) -> Result<MetadataValue<Ascii>, Failure> {
        let login = self.options.address.login.as_ref().expect("there is one");
        let request = AuthenticateRequest {
            name: login.user.clone(),
            password: login.password.clone(),
        };
        let answer = AuthClient::new(channel).authenticate(request).await;
        let token = answer.map_err(|status| judge(&status))?.into_inner().token;
        let token: MetadataValue<Ascii> = token
            .parse()
            .map_err(|_| Failure::Elsewhere("its token is no text".into()))?;
        *self.token.lock() = Some(token.clone());
        Ok(token)
    }

    /// The connection to `node`, which is opened by the first request, and again by later ones.
    fn channel(&self, node: usize) -> Result<Channel, Failure> {
        if let Some(channel) = self.channels[node].get() {
            return Ok(channel.clone());
        }
        let (address, within) = (&self.options.address, self.options.response_timeout);
        let unusable = |error: &dyn Error| {
            let reason = format!("{address}: {}", chain(error));
            Failure::Final(ShardError::Unusable { reason })
        };
        let scheme = match address.tls {
            Some(_) => "https",
            None => "http",
        };
        let url = format!("{scheme}://{}", address.hosts[node]);
        let mut endpoint = Endpoint::from_shared(url)
            .map_err(|error| unusable(&error))?
            .connect_timeout(within)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(within)
            .keep_alive_while_idle(true);
        if let Some(tls) = &address.tls {
            endpoint = endpoint
                .tls_config(tls.clone())
                .map_err(|error| unusable(&error))?;
        }
        let channel = self.channels[node].get_or_init(|| endpoint.connect_lazy());
        Ok(channel.clone())
    }
}

/// Whether it is 3.4 or later.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let version = (parts.next().flatten(), parts.next().flatten());
    version >= (Some(3), Some(4))
}

/// What `status` means for the request.
fn judge(status: &Status) -> Failure {
    let words = match status.source() {
        Some(source) => format!("{}: {}", status.message(), chain(source)),
        None => status.message().to_owned(),
    };
    let unusable = |reason: String| Failure::Final(ShardError::Unusable { reason });
    match status.code() {
        Code::Unauthenticated => Failure::LoggedOut(words),
        Code::InvalidArgument if words.contains("revision of auth store is old") => {
            Failure::LoggedOut(words)
        }
        Code::InvalidArgument if words.contains("user name is empty") => {
            unusable("etcd wants a login: give the address as etcd://user:password@host".into())
        }
        Code::InvalidArgument if words.contains("authentication failed") => {
            unusable("etcd refuses the user or the password".into())
        }
        Code::FailedPrecondition if words.contains("authentication is not enabled") => unusable(
            "etcd has no users: leave user and password out, or enable them (etcdctl auth enable)"
                .into(),
        ),
        Code::PermissionDenied => unusable(format!(
            "etcd: {words}: the user needs the rights to read and write all keys of the prefix"
        )),
        Code::Unimplemented => unusable(format!("this is no etcd 3.4 or later: {words}")),
        // It has no space left, or too many requests.
        Code::ResourceExhausted => Failure::Final(ShardError::Unreachable { reason: words }),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            Failure::Final(ShardError::Refused {
                what: "a transaction",
                reason: words,
            })
        }
        _ => Failure::Elsewhere(words),
    }
}

/// An error, and what caused it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the token.
        self.options.address.fmt(formatter)
    }
}
