//! Where a server is.

use std::{fmt, str::FromStr};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::shard::{
    server::{Kind, is_plain},
    tls::{Tls, take},
};

/// The query parameters of TLS: whether it is used, and those that name files.
const SSL: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// The query parameter that names the server itself.
const DIRECT: &str = "direct";

/// Those that are not for it.
const NOT_DIRECT: [&str; 4] = [DIRECT, "host", "hostaddr", "port"];

/// The address of a server: `postgres://user:password@host:port/database`. Shown without user and password.
///
/// `?direct=host:port` is for a transaction pooler at the address, and names the server behind it. Messages and the making
/// of tables take that way. Everything else in the URL counts for both.
///
/// `?sslmode=verify-full` is for TLS: the server's certificate must be for the host that the address names. It is checked
/// against the system's authorities, or against those in a file: `&sslrootcert=/path/ca.pem`. For servers that require a
/// client certificate, `&sslcert=/path/client.pem&sslkey=/path/client.key` names it and its key. All files are PEM. They
/// are read when the address is parsed.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// `None`: without TLS.
    pub(super) tls: Option<Tls>,
    /// The server behind the pooler that is at the address.
    direct: Option<Box<PostgresAddress>>,
    shown: String,
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
        sibling.log_in_as(&self.config);
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
        if let Some(user) = known.get_user() {
            self.config.user(user);
        }
        if let Some(password) = known.get_password() {
            self.config.password(password);
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
    fn parse(url: &str, tls: Option<&Tls>) -> Result<Self, PostgresAddressError> {
        if Kind::of(url) != Kind::Postgres {
            return Err(PostgresAddressError("it begins otherwise".into()));
        }
        let (rest, _) = take(url, [DIRECT]);
        let (rest, ssl) = take(&rest, SSL);
        let config = rest.parse::<Config>();
        let mut config = config.map_err(|_| PostgresAddressError("it cannot be read".into()))?;
        let tls = asked(ssl, tls).map_err(PostgresAddressError)?;
        config.ssl_mode(match tls {
            Some(_) => SslMode::Require,
            None => SslMode::Disable,
        });
        let [host] = config.get_hosts() else {
            let reason = "it names one server";
            return Err(PostgresAddressError(reason.into()));
        };
        let database = config.get_dbname().or(config.get_user());
        let database = database.unwrap_or("postgres");
        let is_plain_host = match host {
            Host::Tcp(host) => is_plain(host, ":") && !host.is_empty(),
            Host::Unix(folder) => folder.to_str().is_some_and(|folder| is_plain(folder, "/")),
        };
        if !is_plain_host || !is_plain(database, "") || database.is_empty() {
            let reason = "the host and the database are of letters, digits, '_', '-', '.' and '$'; other characters of \
                          a user or a password are percent-encoded";
            return Err(PostgresAddressError(reason.into()));
        }
        if tls.is_some() && matches!(host, Host::Unix(_)) {
            return Err(PostgresAddressError(
                "sslmode=verify-full is for a host".into(),
            ));
        }
        let mut direct = Self::behind(url, &config, database, tls.as_ref())?;
        if let Some(direct) = &mut direct {
            direct.log_in_as(&config);
        }
        let behind = direct.as_deref().map(|direct| place(&direct.config));
        let shown = shown(&config, database, behind, tls.is_some());
        Ok(Self {
            config,
            tls,
            direct,
            shown,
        })
    }

    /// The server that `url` names beside a pooler, which is at `config`.
    fn behind(
        url: &str,
        config: &Config,
        database: &str,
        tls: Option<&Tls>,
    ) -> Result<Option<Box<Self>>, PostgresAddressError> {
        let query = url.rsplit_once('?').map_or("", |(_, query)| query);
        let (query, [direct, ..]) = take(&format!("?{query}"), NOT_DIRECT);
        let Some(direct) = direct else {
            return Ok(None);
        };
        let server = Self::parse(&format!("postgres://{direct}/{database}{query}"), tls);
        match server {
            Ok(server) if is_plain(&direct, ":[]") && place(&server.config) != place(config) => {
                Ok(Some(Box::new(server)))
            }
            _ => Err(PostgresAddressError(
                "direct is the host and the port of the server behind the pooler, as in ?direct=db:5432".into(),
            )),
        }
    }
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
fn shown(config: &Config, database: &str, direct: Option<String>, has_tls: bool) -> String {
    let socket = match config.get_hosts() {
        [Host::Unix(folder)] => Some(format!("host={}&port={}", folder.display(), port(config))),
        _ => None,
    };
    let direct = direct.map(|place| format!("{DIRECT}={place}"));
    let tls = has_tls.then(|| "sslmode=verify-full".to_owned());
    let query: Vec<String> = [socket, direct, tls].into_iter().flatten().collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let (place, query) = (place(config), query.join("&"));
    format!("postgres://{place}/{database}{mark}{query}")
}

/// The TLS that the values of [`SSL`] ask for, or `known` instead of it.
fn asked(ssl: [Option<String>; 4], known: Option<&Tls>) -> Result<Option<Tls>, String> {
    let [mode, paths @ ..] = ssl.each_ref().map(Option::as_deref);
    match (mode, known) {
        (Some("verify-full"), Some(known)) => Ok(Some(known.clone())),
        (Some("verify-full"), None) => {
            let [_, files @ ..] = SSL;
            Tls::of(files, paths).map(Some)
        }
        (None | Some("disable"), _) if paths == [None; 3] => Ok(None),
        (None | Some("disable"), _) => {
            Err("sslrootcert, sslcert and sslkey are for sslmode=verify-full".into())
        }
        _ => Err("sslmode is verify-full or disable: certificates are checked always".into()),
    }
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
        assert_eq!(sibling.config.get_password(), Some(&b"s3cret"[..]));
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
            server.config.get_connect_timeout(),
            Some(&Duration::from_secs(7))
        );
        let other = address.sibling("postgres://pool/locks?direct=[::1]:7");
        let other = other.expect("one");
        assert_eq!(other.as_str(), "postgres://pool:5432/locks?direct=[::1]:7");
        for server in [server, other.server()] {
            assert_eq!(server.config.get_user(), Some("coin"));
            assert_eq!(server.config.get_password(), Some(&b"s3cret"[..]));
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
            ("sslmode=require", "verify-full or disable"),
            ("sslmode=prefer", "verify-full or disable"),
            ("sslrootcert=/ca.pem", "for sslmode=verify-full"),
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
    fn a_database_without_a_name_is_refused() {
        for url in ["postgres://:@db", "postgres://:s3cret@db/"] {
            let error = url.parse::<PostgresAddress>().expect_err(url);
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
