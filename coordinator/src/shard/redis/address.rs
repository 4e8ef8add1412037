//! Where a server is, without telling its password.

use std::{fmt, str::FromStr};

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
    io::tcp::TcpSettings,
};

/// A server's URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://` for TLS, or
/// `unix:///path`.
///
/// Displayed and compared without credentials.
#[derive(Clone)]
pub struct Address {
    info: ConnectionInfo,
    shown: String,
}

/// Why a URL was refused. It never repeats the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("redis address: {0} (expected redis://[user:password@]host[:port][/db])")]
pub struct AddressError(String);

impl Address {
    /// What is connected to.
    pub(super) fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The address, without credentials.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The server at `shown`, with the credentials of this one: servers of one topology share them.
    ///
    /// # Errors
    ///
    /// [`AddressError`].
    pub fn sibling(&self, shown: &str) -> Result<Self, AddressError> {
        let other: Self = shown.parse()?;
        let mine = self.info.redis_settings();
        let mut settings = other.info.redis_settings().clone();
        if let Some(username) = mine.username() {
            settings = settings.set_username(username);
        }
        if let Some(password) = mine.password() {
            settings = settings.set_password(password);
        }
        Ok(Self {
            info: other.info.set_redis_settings(settings),
            shown: other.shown,
        })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let refused = |error: redis::RedisError| AddressError(error.to_string());
        let info = url.into_connection_info().map_err(refused)?;
        let settings: RedisConnectionInfo = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let shown = show(info.addr(), settings.db());
        let info = info
            .set_redis_settings(settings)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Self { info, shown })
    }
}

fn show(address: &ConnectionAddr, db: i64) -> String {
    let bracketed = |host: &str| {
        if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        }
    };
    match address {
        ConnectionAddr::Tcp(host, port) => format!("redis://{}:{port}/{db}", bracketed(host)),
        ConnectionAddr::TcpTls { host, port, .. } => {
            format!("rediss://{}:{port}/{db}", bracketed(host))
        }
        other => format!("unix://{other}?db={db}"),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.shown == other.shown
    }
}

impl Eq for Address {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown() {
        let address: Address = "redis://coin:s3cret@db.example:7000/2".parse().unwrap();
        let shown = format!("{address} {address:?}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("coin"),
            "{shown}"
        );
        assert_eq!(address.as_str(), "redis://db.example:7000/2");
    }

    #[test]
    fn a_refused_url_is_not_repeated() {
        let error = "http://coin:s3cret@db"
            .parse::<Address>()
            .unwrap_err()
            .to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn a_sibling_has_the_same_credentials() {
        let address: Address = "redis://coin:s3cret@a:1".parse().unwrap();
        let sibling = address.sibling("redis://b:2/0").unwrap();
        assert_eq!(sibling.info.redis_settings().password(), Some("s3cret"));
        assert_eq!(sibling.as_str(), "redis://b:2/0");
    }
}
