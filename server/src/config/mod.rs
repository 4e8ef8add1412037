//! The settings of a coordinator.
//!
//! Defaults < file < environment (`RINGFENCE__LIMITS__STREAMS=100`) < command line. Unknown settings
//! are refused, and all problems are reported at once.

mod exposure;
mod reader;
mod text;
mod variables;

use std::{
    collections::BTreeMap,
    env,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use config::{File, FileFormat};
use hashbrown::HashMap;
use ringfence_client::{Builder, Client};
use ringfence_coordinator::name::KeyPrefix;
use tracing::Level;

use self::{reader::Reader, text::key, variables::Variables};
use crate::{Principal, Proof, Roles, Tls};

/// The settings of a coordinator.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// `listen`: the address to serve on. Default: `127.0.0.1:7420`.
    pub listen: SocketAddr,
    /// `monitor`: the address of `/metrics`, `/healthz`, `/readyz` and the dashboard. None: they are not served.
    pub monitor: Option<SocketAddr>,
    /// `tls`: certificates. None: without TLS.
    pub tls: Option<Tls>,
    /// `insecure`: whether to serve on a public address without authentication. Default: false.
    pub insecure: bool,
    /// `grace`: how long a coordinator that stops waits for its callers to release their locks.
    /// Default: 10 s.
    pub grace: Duration,
    /// `sweep_every`: how often one of the coordinators sweeps all accounts. Zero: this one never does. Default: 1 min.
    pub sweep_every: Duration,
    /// `prefix`: the prefix of every key on the servers. Default: `ringfence`.
    pub prefix: String,
    /// `handle_secret`, a text or a list, or `handle_secret_file`, with one in each line: the first seals the handles of
    /// locks, and each opens them. Coordinators that open each other's handles go on with each other's locks. None: each
    /// has a secret of its own.
    pub handle_secrets: Vec<String>,
    /// `shards.NAME.url`, or `shards.NAME.url_file`: servers to find the topology at.
    pub shards: BTreeMap<String, String>,
    /// `topology.url`, or `topology.url_file`: the server of the topology's record, if that is on none of the shards. None:
    /// it is found by the shards, and needs no login.
    pub topology: Option<String>,
    /// `log`.
    pub log: Log,
    /// `limits`.
    pub limits: Limits,
    /// `principals.NAME`: the callers, by name. None: every caller may make every call.
    pub principals: BTreeMap<String, Principal>,
    /// No setting: one sentence per file with a secret that others than the coordinator may read or write.
    pub warnings: Vec<String>,
}

/// The log of a coordinator: `log.NAME`. It counts for the program that serves; this library sets up no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// `level`: `error`, `warn`, `info`, `debug` or `trace`; lines of less weight are left out. Default: `info`.
    pub level: Level,
    /// `format`: whether it is `json`, an object in each line, and not `text`. Default: `text`.
    pub json: bool,
}

/// The limits of a coordinator: `limits.NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `connections`: connections at a time. More connections wait. Default: 1,024.
    pub connections: usize,
    /// `connections_per_address`: connections of one address. More are closed. Default: 512.
    pub connections_per_address: usize,
    /// `connection_age`: a connection that is older takes no new calls; those under way go on. None: connections may be
    /// of any age.
    pub connection_age: Option<Duration>,
    /// `streams`: calls at a time on one connection, apart from renewals and releases. More calls
    /// are refused. Default: 256.
    pub streams: u32,
    /// `rate`: calls per second of one principal, or of one connection if there is none. More calls are refused. Default: 20,000.
    pub rate: u32,
    /// `session_locks`: locks of one session, held or waited for. More are refused. Default: 4,096.
    pub session_locks: usize,
    /// `session_waiters`: locks that one session waits for. More are refused. Default: 1,024.
    pub session_waiters: usize,
}

/// Settings of the command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `listen`.
    pub listen: Option<String>,
    /// `insecure`, if set.
    pub insecure: bool,
    /// URLs of servers, instead of `shards`.
    pub servers: Vec<String>,
    /// URLs of servers, if there are no `shards` otherwise.
    pub default_servers: Vec<String>,
    /// `topology.url`.
    pub topology: Option<String>,
}

/// The settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", listed(.problems))]
pub struct ConfigError {
    /// One sentence per problem, at least one. Each names the setting, its origin and the limit.
    pub problems: Vec<String>,
}

fn listed(problems: &[String]) -> String {
    match problems {
        [problem] => problem.clone(),
        problems => {
            let list = problems.join("\n  ");
            format!("{} settings cannot be used:\n  {list}", problems.len())
        }
    }
}

impl std::fmt::Debug for Config {
    /// Without URLs and keys: they are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shards: Vec<_> = self.shards.keys().collect();
        let principals: Vec<_> = self.principals.keys().collect();
        formatter
            .debug_struct("Config")
            .field("listen", &self.listen)
            .field("monitor", &self.monitor)
            .field("tls", &self.tls.is_some())
            .field("insecure", &self.insecure)
            .field("grace", &self.grace)
            .field("sweep_every", &self.sweep_every)
            .field("prefix", &self.prefix)
            .field("handle_secrets", &self.handle_secrets.len())
            .field("shards", &shards)
            .field("topology", &self.topology.is_some())
            .field("log", &self.log)
            .field("limits", &self.limits)
            .field("principals", &principals)
            .finish()
    }
}

impl Log {
    fn read(reader: &mut Reader) -> Self {
        let level = |text: &str| {
            Some(match text {
                "error" => Level::ERROR,
                "warn" => Level::WARN,
                "info" => Level::INFO,
                "debug" => Level::DEBUG,
                "trace" => Level::TRACE,
                _ => return None,
            })
        };
        let is_json = |text: &str| match text {
            "text" => Some(false),
            "json" => Some(true),
            _ => None,
        };
        let level = reader.text("log.level", "error, warn, info, debug or trace", level);
        let json = reader.text("log.format", "text or json", is_json);
        let default = Self::default();
        Self {
            level: level.unwrap_or(default.level),
            json: json.unwrap_or(default.json),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: Level::INFO,
            json: false,
        }
    }
}

impl Limits {
    fn read(reader: &mut Reader) -> Self {
        Self {
            connections: reader
                .number("limits.connections", 1..=1_000_000)
                .map_or(Self::default().connections, |number| number as usize),
            connections_per_address: reader
                .number("limits.connections_per_address", 1..=1_000_000)
                .map_or(Self::default().connections_per_address, |number| {
                    number as usize
                }),
            connection_age: reader.length(
                "limits.connection_age",
                Duration::from_secs(1)..=Duration::from_secs(7 * 24 * 3600),
            ),
            streams: reader
                .number("limits.streams", 1..=100_000)
                .map_or(Self::default().streams, |number| number as u32),
            rate: reader
                .number("limits.rate", 1..=1_000_000)
                .map_or(Self::default().rate, |number| number as u32),
            session_locks: reader
                .number("limits.session_locks", 1..=100_000)
                .map_or(Self::default().session_locks, |number| number as usize),
            session_waiters: reader
                .number("limits.session_waiters", 1..=100_000)
                .map_or(Self::default().session_waiters, |number| number as usize),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 512,
            connection_age: None,
            streams: 256,
            rate: 20_000,
            session_locks: 4096,
            session_waiters: 1024,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 7420).into(),
            monitor: None,
            tls: None,
            insecure: false,
            grace: Duration::from_secs(10),
            sweep_every: Duration::from_secs(60),
            prefix: KeyPrefix::default().as_str().to_owned(),
            handle_secrets: Vec::new(),
            shards: BTreeMap::new(),
            topology: None,
            log: Log::default(),
            limits: Limits::default(),
            principals: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// Reads and checks the settings. Opens no connection.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with all problems.
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::from_sources(file, &Variables::new(env::vars_os()), overrides)
    }

    fn from_sources(
        file: Option<&Path>,
        variables: &Variables,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let mut builder = config::Config::builder();
        if let Some(file) = file {
            builder = builder.add_source(File::from(file).format(FileFormat::Toml));
        }
        let built = builder
            .add_source(variables.source())
            .set_override_option("listen", overrides.listen.clone())
            .and_then(|builder| {
                builder.set_override_option("insecure", overrides.insecure.then_some(true))
            })
            .and_then(|builder| {
                builder.set_override_option("topology.url", overrides.topology.clone())
            })
            .and_then(|builder| builder.build());
        let mut reader = Reader::new(built)?;
        let config = Self::read(&mut reader, overrides);
        for problem in &variables.problems {
            reader.problem(problem.clone());
        }
        let warnings = reader.finish(&variables.names)?;
        Ok(Self { warnings, ..config })
    }

    fn read(reader: &mut Reader, overrides: &Overrides) -> Self {
        let default = Self::default();
        let config = Self {
            listen: reader
                .text("listen", "an address as 127.0.0.1:7420", |text| {
                    text.parse().ok()
                })
                .unwrap_or(default.listen),
            monitor: reader.text("monitor", "an address as 127.0.0.1:7421", |text| {
                text.parse().ok()
            }),
            tls: reader.tls("tls"),
            insecure: reader.flag("insecure"),
            grace: reader
                .length("grace", Duration::ZERO..=Duration::from_secs(3600))
                .unwrap_or(default.grace),
            sweep_every: reader
                .length(
                    "sweep_every",
                    Duration::ZERO..=Duration::from_secs(24 * 3600),
                )
                .unwrap_or(default.sweep_every),
            prefix: reader.prefix("prefix"),
            handle_secrets: reader.secrets("handle_secret"),
            shards: reader.shards("shards", overrides),
            topology: reader.topology("topology"),
            log: Log::read(reader),
            limits: Limits::read(reader),
            principals: reader.principals("principals"),
            warnings: Vec::new(),
        };
        config.check_callers(reader);
        if let Some(monitor) = config
            .monitor
            .filter(|monitor| shares(*monitor, config.listen))
        {
            reader.problem(format!(
                "monitor is {monitor}, must have another port than listen, which is {}",
                config.listen
            ));
        }
        if !config.listen.ip().is_loopback() && !config.insecure && !config.authenticates() {
            reader.problem(format!(
                "listen is {}, must be a loopback address, or tls.client_ca or principals must be set; to let every \
                 host that reaches the port use all locks and counters: insecure = true",
                config.listen
            ));
        }
        config
    }

    /// Whether callers prove their identity, by a certificate or a token.
    fn authenticates(&self) -> bool {
        let by_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        by_certificate || !self.principals.is_empty()
    }

    /// Whether the dashboard may be served on the port of the monitor, which has no TLS, or the reason why not. It lets
    /// nobody do what the same caller could not do over gRPC.
    pub(crate) fn allows_dashboard(&self) -> Result<(), &'static str> {
        let is_public = self.monitor.is_some_and(|at| !at.ip().is_loopback());
        let is_token = |proof: &Proof| matches!(proof, Proof::Token(_));
        let has_token = |principal: &Principal| principal.proofs.iter().any(is_token);
        if !self.principals.is_empty() {
            return match self.principals.values().any(has_token) {
                false => Err(
                    "no principal has a token (principals.NAME.sha256), and its port takes no certificates",
                ),
                true if is_public && self.tls.is_some() => Err(
                    "tls is set, and on its port tokens would travel in clear: set monitor to a loopback address, and \
                     reach that through a proxy with TLS or a tunnel",
                ),
                true => Ok(()),
            };
        }
        if self.authenticates() {
            return Err(
                "tls.client_ca is set, and its port takes no certificates: set a principal with a token (sha256)",
            );
        }
        if is_public && !self.insecure {
            return Err(
                "monitor is a public address: set principals with tokens (principals.NAME.sha256)",
            );
        }
        Ok(())
    }

    /// Every caller can be told from the others.
    fn check_callers(&self, reader: &mut Reader) {
        let by_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let mut seen = HashMap::new();
        for (name, Principal { proofs, roles, .. }) in &self.principals {
            let name = key(name);
            if *roles == Roles::default() {
                reader.problem(format!(
                    "principals.{name} may do nothing, must have acquire, change, receive, read, force_release or admin"
                ));
            }
            let has_certificate = proofs
                .iter()
                .any(|proof| matches!(proof, Proof::Certificate(_)));
            if has_certificate && !by_certificate {
                reader.problem(format!(
                    "principals.{name} has a certificate, so tls.client_ca must be set"
                ));
            }
            for proof in proofs {
                if let Some(other) = seen.insert(proof, name.clone()) {
                    reader.problem(format!(
                        "principals.{name} has the token or the certificate of principals.{other}, must have its own"
                    ));
                }
            }
        }
    }

    /// A client of the shards. It founds no topology.
    pub fn client(&self) -> Builder {
        let client = Client::builder().servers(self.shards.values());
        let client = match &self.topology {
            Some(url) => client.topology_at(url),
            None => client,
        };
        client
            .prefix(&self.prefix)
            // Another coordinator may go on with a lock: it cannot be handed on here.
            .handoff(0, Duration::ZERO)
            .existing_topology(true)
            .members_only(true)
    }
}

/// Whether two servers cannot have these addresses.
fn shares(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_any || one.ip() == other.ip())
}

#[cfg(test)]
mod tests;
