//! Where a server is.

use std::{fmt, str::FromStr};

use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

use super::password;
use crate::shard::{
    server::{Kind, is_plain},
    tls::{Tls, files, take},
};

/// The query parameter that says whether TLS is used.
const MODE: &str = "sslmode";

/// Those that name files of TLS, as libpq has them.
const FILES: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];

/// The query parameter that names the server itself.
const DIRECT: &str = "direct";

/// Those that are not for it.
const NOT_DIRECT: [&str; 4] = [DIRECT, "host", "hostaddr", "port"];

/// The address of a server: `postgres://user:password@host:port/database`. Shown without user and password.
///
/// With several hosts, `host:port,host:port`, it is that of the primary among them: they are tried in this order, and one
/// that is a standby is left out. Without a password in the URL, it is that of `PGPASSWORD`, or of the file that
/// `PGPASSFILE` names, or `~/.pgpass`.
///
/// `?direct=host:port` is for a transaction pooler at the address, and names the server behind it. Messages and the making
/// of tables take that way. Everything else in the URL counts for both.
///
/// `?sslmode=verify-full` is for TLS: the server's certificate must be for the host that the address names. It is checked
/// against the system's authorities, or against those in a file: `&ca=/path/ca.pem`. For servers that require a client
/// certificate, `&cert=/path/client.pem&key=/path/client.key` names it and its key. libpq's names of these parameters,
/// `sslrootcert`, `sslcert` and `sslkey`, are the same. All files are PEM. They are read when the address is parsed.
/// `?sslmode=require` encrypts and does not check the server's certificate: whoever can answer in its place can read and
/// change everything.
#[derive(Clone)]
pub struct PostgresAddress {
    /// One for each host.
    pub(super) configs: Vec<Config>,
    /// `None`: without TLS.
    pub(super) tls: Option<Secured>,
    /// The server behind the pooler that is at the address.
    direct: Option<Box<PostgresAddress>>,
    shown: String,
}

/// TLS, and its mode.
#[derive(Clone)]
pub(super) struct Secured {
    mode: &'static str,
    pub(super) tls: Tls,
}

/// The address is not one of PostgreSQL. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of PostgreSQL (postgres://user:password@host:port/database): {0}")]
pub struct PostgresAddressError(String);

impl PostgresAddress {
    /// The server at `shown`, with the credentials and certificates of this one: servers of one topology share them.
    ///
    /// # Errors
    ///
    /// [`PostgresAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, PostgresAddressError> {
        let mut sibling = Self::parse(shown, self.tls.as_ref())?;
        sibling.log_in_as(&self.configs[0]);
        Ok(sibling)
    }

    /// Whether a transaction pooler is at the address.
    pub(super) fn is_pooled(&self) -> bool {
        self.direct.is_some()
    }

    /// The server itself.
    pub(super) fn server(&self) -> &Self {
        self.direct.as_deref().unwrap_or(self)
    }

    /// Takes over the user and the password of `known`.
    fn log_in_as(&mut self, known: &Config) {
        for config in &mut self.configs {
            if let Some(user) = known.get_user() {
                config.user(user);
            }
            if let Some(password) = known.get_password() {
                config.password(password);
            }
        }
        if let Some(direct) = &mut self.direct {
            direct.log_in_as(known);
        }
    }

    /// Without user, password and files.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// A server with TLS is reached as `tls` says; if that is `None`, as the URL says.
    fn parse(url: &str, tls: Option<&Secured>) -> Result<Self, PostgresAddressError> {
        let refused = |reason: &str| PostgresAddressError(reason.to_owned());
        if Kind::of(url) != Kind::Postgres {
            return Err(refused("it begins otherwise"));
        }
        let (rest, _) = take(url, [DIRECT]);
        let (rest, [mode]) = take(&rest, [MODE]);
        let (rest, names, paths) = files(&rest, FILES);
        let config = rest.parse::<Config>();
        let mut config = config.map_err(|_| refused("it cannot be read"))?;
        let tls = asked(mode.as_deref(), names, paths, tls).map_err(PostgresAddressError)?;
        config.ssl_mode(match tls {
            Some(_) => SslMode::Require,
            None => SslMode::Disable,
        });
        let hosts = config.get_hosts();
        let are_several = hosts.len() > 1;
        if hosts.is_empty() {
            return Err(refused("it names no server"));
        }
        if are_several && hosts.iter().any(|host| matches!(host, Host::Unix(_))) {
            return Err(refused("of several servers, each is a host"));
        }
        let database = config.get_dbname().or(config.get_user());
        let database = database.unwrap_or("postgres");
        let is_plain_host = |host: &Host| match host {
            Host::Tcp(host) => is_plain(host, ":") && !host.is_empty(),
            Host::Unix(folder) => folder.to_str().is_some_and(|folder| is_plain(folder, "/")),
        };
        let are_plain = hosts.iter().all(is_plain_host);
        if !are_plain || !is_plain(database, "") || database.is_empty() {
            let reason = "the host and the database are of letters, digits, '_', '-', '.' and '$'; other characters of \
                          a user or a password are percent-encoded";
            return Err(PostgresAddressError(reason.into()));
        }
        if tls.is_some() && matches!(hosts, [Host::Unix(_)]) {
            return Err(refused("sslmode is for a host"));
        }
        let mut configs: Vec<Config> = match are_several {
            true => (0..hosts.len()).map(|at| of_host(&config, at)).collect(),
            false => vec![config.clone()],
        };
        let places: Vec<String> = configs.iter().map(place).collect();
        if (1..places.len()).any(|at| places[..at].contains(&places[at])) {
            return Err(refused("a server is named twice"));
        }
        let mut direct = Self::behind(url, &places, database, tls.as_ref())?;
        for (config, place) in configs.iter_mut().zip(&places) {
            if config.get_password().is_none()
                && let Some(password) = password::of(config, place, database)
            {
                config.password(password);
            }
        }
        if let Some(direct) = &mut direct {
            direct.log_in_as(&configs[0]);
        }
        let behind = direct.as_deref().map(|direct| place(&direct.configs[0]));
        let mode = tls.as_ref().map(|tls| tls.mode);
        let shown = shown(&configs, database, behind, mode);
        Ok(Self {
            configs,
            tls,
            direct,
            shown,
        })
    }

    /// The server that `url` names beside a pooler, which is at the one of `places`.
    fn behind(
        url: &str,
        places: &[String],
        database: &str,
        tls: Option<&Secured>,
    ) -> Result<Option<Box<Self>>, PostgresAddressError> {
        let query = url.rsplit_once('?').map_or("", |(_, query)| query);
        let (query, [direct, ..]) = take(&format!("?{query}"), NOT_DIRECT);
        let Some(direct) = direct else {
            return Ok(None);
        };
        let server = Self::parse(&format!("postgres://{direct}/{database}{query}"), tls);
        match server {
            Ok(server)
                if is_plain(&direct, ":[]") && places.len() == 1 && !places.contains(&place(&server.configs[0])) =>
            {
                Ok(Some(Box::new(server)))
            }
            _ => Err(PostgresAddressError(
                "direct is the host and the port of the server behind the pooler, as in ?direct=db:5432".into(),
            )),
        }
    }
}

/// The parts of `config` for the host at that place among several.
fn of_host(config: &Config, at: usize) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(database) = config.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Host::Tcp(host) = &config.get_hosts()[at] {
        one.host(host);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(at).or(ports.first()) {
        one.port(*port);
    }
    one.ssl_mode(config.get_ssl_mode())
        .channel_binding(config.get_channel_binding())
        // A standby answers, too.
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    one
}

/// Host and port, if it is not a socket.
fn place(config: &Config) -> String {
    let port = port(config);
    match config.get_hosts() {
        [Host::Tcp(host)] if host.contains(':') => format!("[{host}]:{port}"),
        [Host::Tcp(host)] => format!("{host}:{port}"),
        _ => String::new(),
    }
}

fn port(config: &Config) -> u16 {
    config.get_ports().first().copied().unwrap_or(5432)
}

/// The URL without what is secret or of this machine alone.
fn shown(
    configs: &[Config],
    database: &str,
    direct: Option<String>,
    tls: Option<&'static str>,
) -> String {
    let socket = match configs[0].get_hosts() {
        [Host::Unix(folder)] => {
            let port = port(&configs[0]);
            Some(format!("host={}&port={port}", folder.display()))
        }
        _ => None,
    };
    let direct = direct.map(|place| format!("{DIRECT}={place}"));
    let tls = tls.map(|mode| format!("{MODE}={mode}"));
    let query: Vec<String> = [socket, direct, tls].into_iter().flatten().collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let places: Vec<String> = configs.iter().map(place).collect();
    let (places, query) = (places.join(","), query.join("&"));
    format!("postgres://{places}/{database}{mark}{query}")
}

/// The TLS that the parameters ask for, or `known` instead of it.
fn asked(
    mode: Option<&str>,
    names: [&str; 3],
    paths: [Option<String>; 3],
    known: Option<&Secured>,
) -> Result<Option<Secured>, String> {
    let paths = paths.each_ref().map(Option::as_deref);
    let mode = match mode {
        None | Some("disable") if paths == [None; 3] => return Ok(None),
        None | Some("disable") => {
            let [ca, cert, key] = names;
            return Err(format!(
                "{ca}, {cert} and {key} are for sslmode=verify-full"
            ));
        }
        Some("verify-full") => "verify-full",
        Some("require") if paths[0].is_some() => {
            let ca = names[0];
            return Err(format!(
                "{ca} is for sslmode=verify-full: require checks no certificate"
            ));
        }
        Some("require") => "require",
        Some(_) => return Err("sslmode is verify-full, require or disable".into()),
    };
    if let Some(known) = known.filter(|known| known.mode == mode) {
        return Ok(Some(known.clone()));
    }
    let tls = match mode {
        "require" => Tls::unchecked(names, paths)?,
        _ => Tls::of(names, paths)?,
    };
    Ok(Some(Secured { mode, tls }))
}

impl FromStr for PostgresAddress {
    type Err = PostgresAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Self::parse(url, None)
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn credentials_are_never_shown_or_repeated() {
        let address: PostgresAddress = "postgres://coin:s3cret@db:6543/locks".parse().expect("one");
        assert_eq!(
            format!("{address} {address:?}"),
            "postgres://db:6543/locks postgres://db:6543/locks"
        );
        let sibling = address.sibling("postgres://other:1/locks").expect("one");
        assert_eq!(sibling.configs[0].get_password(), Some(&b"s3cret"[..]));
        assert_eq!(sibling.as_str(), "postgres://other:1/locks");
        let error = "postgres://coin:s3cret@db:port".parse::<PostgresAddress>();
        assert!(!error.expect_err("no port").to_string().contains("s3cret"));
    }

    #[test]
    fn a_pooler_has_a_server_behind_it() {
        let url = "postgres://coin:s3cret@pool:6432/locks?connect_timeout=7&direct=db";
        let address: PostgresAddress = url.parse().expect("one");
        assert_eq!(
            address.as_str(),
            "postgres://pool:6432/locks?direct=db:5432"
        );
        let server = address.server();
        assert_eq!(server.as_str(), "postgres://db:5432/locks");
        assert_eq!(
            server.configs[0].get_connect_timeout(),
            Some(&Duration::from_secs(7))
        );
        let other = address.sibling("postgres://pool/locks?direct=[::1]:7");
        let other = other.expect("one");
        assert_eq!(other.as_str(), "postgres://pool:5432/locks?direct=[::1]:7");
        for server in [server, other.server()] {
            assert_eq!(server.configs[0].get_user(), Some("coin"));
            assert_eq!(server.configs[0].get_password(), Some(&b"s3cret"[..]));
        }
        let socket: PostgresAddress = "postgres:///locks?host=/run/pool&direct=db:1"
            .parse()
            .expect("one");
        assert_eq!(
            socket.as_str(),
            "postgres:///locks?host=/run/pool&port=5432&direct=db:1"
        );
        for direct in [
            "",
            "db:port",
            "a,b",
            "coin:s3cret@db",
            "/run/db",
            "db/locks",
            "pool:6432",
        ] {
            let url = format!("postgres://coin@pool:6432/locks?direct={direct}");
            let error = url
                .parse::<PostgresAddress>()
                .expect_err(direct)
                .to_string();
            assert!(error.contains("?direct=db:5432"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn certificates_are_checked_or_not_asked_for() {
        let plain: PostgresAddress = "postgres://db/locks?sslmode=disable".parse().expect("one");
        assert!(plain.tls.is_none() && plain.as_str() == "postgres://db:5432/locks");
        for (query, why) in [
            ("sslmode=prefer", "verify-full, require or disable"),
            ("sslrootcert=/ca.pem", "for sslmode=verify-full"),
            ("ca=/ca.pem", "for sslmode=verify-full"),
            ("sslmode=require&ca=/none", "require checks no certificate"),
            ("sslmode=verify-full&ca=/none", "ca=/none: "),
            (
                "sslmode=verify-full&sslrootcert=/none",
                "sslrootcert=/none: ",
            ),
            ("sslmode=verify-full&sslcert=/none", "sslcert=/none: "),
        ] {
            let error = format!("postgres://db/locks?{query}").parse::<PostgresAddress>();
            let error = error.expect_err(query).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn several_hosts_are_one_address() {
        let url = "postgres://coin:s3cret@a,b:6543,[::1]:7/locks?sslmode=require";
        let address: PostgresAddress = url.parse().expect("one");
        let shown = "postgres://a:5432,b:6543,[::1]:7/locks?sslmode=require";
        assert_eq!(address.as_str(), shown);
        assert_eq!(address.configs.len(), 3);
        let sibling = address.sibling(shown).expect("one");
        assert_eq!(sibling.as_str(), shown);
        for config in sibling.configs {
            assert_eq!(config.get_user(), Some("coin"));
            assert_eq!(config.get_password(), Some(&b"s3cret"[..]));
            assert_eq!(config.get_dbname(), Some("locks"));
            assert_eq!(
                config.get_target_session_attrs(),
                TargetSessionAttrs::ReadWrite
            );
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
        }
        for (url, why) in [
            ("postgres://a,a:5432/locks", "named twice"),
            ("postgres://a,b/locks?direct=c", "?direct=db:5432"),
            ("postgres://%2Frun%2Fa,b/locks", "each is a host"),
        ] {
            let error = url
                .parse::<PostgresAddress>()
                .map(|address| address.to_string());
            let error = error.expect_err(url).to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn a_database_without_a_name_is_refused() {
        for url in ["postgres://:@db", "postgres://:s3cret@db/"] {
            let error = url.parse::<PostgresAddress>().expect_err(url);
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
