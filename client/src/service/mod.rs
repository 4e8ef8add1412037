//! Locks and counters over the service: the streams and calls to coordinators, for a process that reaches no shard.
//!
//! | file | content |
//! |---|---|
//! | `reach.rs` | the coordinators: streams and calls |
//! | `coordinator.rs` | one coordinator, or those that share a name: their addresses, and a connection to each |
//! | `peer.rs` | what answers at an address where no coordinator does |
//! | `told.rs` | the messages of a session as values |
//! | `seen.rs` | holders and waiters as values |
//! | `counters.rs` | accounts |
//! | `latches.rs` | latches |
//! | `failed.rs` | errors about accounts |

mod coordinator;
mod counters;
mod failed;
mod latches;
mod peer;
mod reach;
mod seen;
mod told;

use std::{
    fmt, fs, io,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ringfence_coordinator::{engine::CoordinatorError, random::Random};
use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, ClientTlsConfig, Identity},
};

pub(crate) use self::{
    counters::{Accounts, RemoteCounter},
    latches::RemoteLatch,
    reach::Reach,
};
use crate::{BuildError, Builder, Client, RedisUrls, embedded};

/// Coordinators, and how to reach them: for [`Builder::coordinators`].
#[derive(Clone)]
#[must_use = "it is for Builder::coordinators"]
pub struct Coordinators {
    urls: Vec<String>,
    token: Option<Token>,
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    resolver: Resolver,
}

/// A bearer token.
#[derive(Clone)]
enum Token {
    Text(String),
    File(PathBuf),
}

impl Token {
    /// The header with the token as it is now. The error is for a person.
    fn header(&self) -> Result<MetadataValue<Ascii>, String> {
        let token = match self {
            Self::Text(text) => text.clone(),
            Self::File(path) => fs::read_to_string(path)
                .map_err(|error| format!("the bearer token in {path:?} cannot be read: {error}"))?,
        };
        let token = token.trim();
        if token.is_empty() {
            return Err("the bearer token is empty".into());
        }
        let header = format!("Bearer {token}").parse();
        let mut header: MetadataValue<Ascii> =
            header.map_err(|_| "the bearer token is not printable ASCII")?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Finds the addresses of a host.
type Resolver = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

impl Coordinators {
    /// One address, or a list: `host`, `host:port`, `http://host:port`, or `https://host:port` for TLS; default port: 7420. A host may have several addresses,
    /// with a coordinator at each. With the same `handle_secret` at each of them, locks go on at another one if theirs fails.
    pub fn new<Form>(urls: impl RedisUrls<Form>) -> Self {
        Self {
            urls: urls.into_urls(),
            token: None,
            authorities: None,
            identity: None,
            resolver: Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect())),
        }
    }

    /// Finds the addresses of hosts by `resolver`, which may block. Default: as the system does.
    pub fn resolver(
        mut self,
        resolver: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// The bearer token of this process.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(Token::Text(token.into()));
        self
    }

    /// A file with the bearer token, read for each call and each session: a token that was rotated counts from the next one on.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(Token::File(path.into()));
        self
    }

    /// Trusts certificates of these authorities alone, in PEM. Default: those that the system trusts.
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities = Some(pem.into());
        self
    }

    /// The certificate of this process, with its chain, and its private key, in PEM.
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((pem.into(), key_pem.into()));
        self
    }

    /// The settings of TLS.
    fn tls(&self) -> ClientTlsConfig {
        let mut tls = match &self.authorities {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some((pem, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(pem, key));
        }
        tls
    }
}

impl From<&str> for Coordinators {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl fmt::Debug for Coordinators {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the token, nor the key.
        write!(formatter, "Coordinators({:?})", self.urls)
    }
}

/// A client whose locks coordinators grant, and whose accounts they have.
pub(crate) async fn build(
    mut builder: Builder,
    coordinators: Coordinators,
    random: Arc<Random>,
) -> Result<Client, BuildError> {
    let refused = |error: CoordinatorError| BuildError::Coordinators(error);
    let reach = Arc::new(Reach::new(&coordinators, &random).map_err(refused)?);
    // One attempt has its time, however short the wait is.
    let within = builder.connect_within.unwrap_or(CONNECT_WITHIN);
    let within = within.max(ATTEMPT_WITHIN);
    let longest = reach.longest_lease(within, ATTEMPT_WITHIN).await;
    let longest = longest.map_err(refused)?;
    builder.constants.max_lease_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    let client = embedded::build(&builder, 1, random, Some(reach.clone())).await?;
    Ok(Client {
        reach: Some(reach),
        ..client
    })
}

/// How long coordinators have to answer when the client is built.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long one attempt may take.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(2);
