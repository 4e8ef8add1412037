//! Where a server is, without telling its password.

use std::{fmt, str::FromStr};

use redis::{
    ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo, io::tcp::TcpSettings,
};

use super::tls;

/// A server's URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://` for TLS, or
/// `unix:///path`.
///
/// Over TLS the server's certificate is checked against the system's authorities, or against those
/// in a file: `rediss://host?ca=/path/ca.pem`. Where the server asks for ours,
/// `&cert=/path/client.pem&key=/path/client.key` names it and its key. All are PEM, and read when
/// the URL is.
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
    /// What is connected to, for connections of one's own with the redis crate.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The address, without credentials.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The server at `shown`, with the credentials and certificates of this one: servers of one
    /// topology share them.
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
        let addr = tls::sibling(self.info.addr(), other.info.addr());
        Ok(Self {
            info: other.info.set_addr(addr).set_redis_settings(settings),
            shown: other.shown,
        })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let info = tls::connection_info(url).map_err(AddressError)?;
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
    fn certificates_that_cannot_be_used_are_refused_by_name() {
        for (url, named) in [
            ("redis://a?ca=/etc/hostname", "rediss://"),
            ("rediss://a?ca=/nowhere/ca.pem", "ca=/nowhere/ca.pem"),
            ("rediss://a?cert=/etc/hostname", "go together"),
            ("rediss://a?key=/nowhere/key.pem", "key=/nowhere/key.pem"),
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(named), "{url}: {error}");
        }
    }

    #[test]
    fn a_sibling_has_the_same_credentials() {
        let address: Address = "redis://coin:s3cret@a:1".parse().unwrap();
        let sibling = address.sibling("redis://b:2/0").unwrap();
        assert_eq!(sibling.info.redis_settings().password(), Some("s3cret"));
        assert_eq!(sibling.as_str(), "redis://b:2/0");
    }
}
