//! A server's address, without its password.

use std::{fmt, io, pin::Pin, str::FromStr};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisResult, aio::MultiplexedConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::{diagnosis::Stream, tls::Tls};

/// A server's URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://` for TLS, or
/// `unix:///path`.
///
/// Over TLS the server's certificate is checked against the system's authorities, or against those in a file:
/// `rediss://host?ca=/path/ca.pem`. For a server that requires a client certificate,
/// `&cert=/path/client.pem&key=/path/client.key` names it and its key. All files are PEM. They are read when the URL is
/// parsed.
///
/// Displayed and compared without credentials.
#[derive(Clone)]
pub struct Address {
    info: ConnectionInfo,
    tls: Option<Tls>,
    shown: String,
}

/// Moves the bytes of a connection while it is polled. Ready once the connection has ended.
pub type Pump = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The reason why a URL was refused. It never contains the URL, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("redis address: {0} (expected redis://[user:password@]host[:port][/db])")]
pub struct AddressError(String);

impl Address {
    /// Opens a connection and logs in. Also for your own connections.
    ///
    /// # Errors
    ///
    /// The server is unreachable, or refuses the login.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn open(
        &self,
        config: AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, Pump)> {
        match (self.info.addr(), &self.tls) {
            (ConnectionAddr::Tcp(host, port), _) => {
                self.log_in(tcp(host, *port).await?, config).await
            }
            (ConnectionAddr::TcpTls { host, port, .. }, Some(tls)) => {
                let stream = tls.over(host, tcp(host, *port).await?).await?;
                self.log_in(stream, config).await
            }
            (ConnectionAddr::Unix(path), _) => {
                self.log_in(UnixStream::connect(path).await?, config).await
            }
            _ => Err((
                ErrorKind::InvalidClientConfig,
                "an address of no known kind",
            )
                .into()),
        }
    }

    /// The trusted authorities and our certificate, if TLS is used.
    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// A connection without TLS and without a login.
    pub(super) async fn stream(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self.info.addr() {
            ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Box::new(tcp(host, *port).await?)
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    async fn log_in(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        config: AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, Pump)> {
        let settings = self.info.redis_settings();
        let opened = MultiplexedConnection::new_with_config(settings, stream, config);
        let (connection, pump) = opened.await?;
        Ok((connection, Box::pin(pump)))
    }

    /// The address, without credentials.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The login's user.
    pub(super) fn user(&self) -> &str {
        self.info.redis_settings().username().unwrap_or("default")
    }

    /// The server at `shown`, with the credentials and certificates of this one: servers of one
    /// topology share them.
    ///
    /// # Errors
    ///
    /// [`AddressError`].
    pub fn sibling(&self, shown: &str) -> Result<Self, AddressError> {
        let (info, shown) = parse(shown)?;
        let mine = self.info.redis_settings();
        let mut settings = info.redis_settings().clone();
        if let Some(username) = mine.username() {
            settings = settings.set_username(username);
        }
        if let Some(password) = mine.password() {
            settings = settings.set_password(password);
        }
        let tls = match (info.addr(), &self.tls) {
            (ConnectionAddr::TcpTls { .. }, Some(tls)) => Some(tls.clone()),
            (addr, _) => Tls::of(&shown, addr).map_err(AddressError)?,
        };
        let info = info.set_redis_settings(settings);
        Ok(Self { info, tls, shown })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let (info, shown) = parse(url)?;
        let tls = Tls::of(url, info.addr()).map_err(AddressError)?;
        Ok(Self { info, tls, shown })
    }
}

/// The server and the login that `url` names, and the URL without credentials.
fn parse(url: &str) -> Result<(ConnectionInfo, String), AddressError> {
    let refused = |error: redis::RedisError| {
        let text = error.to_string();
        AddressError(text.trim_end_matches(" - InvalidClientConfig").to_owned())
    };
    let info = url.into_connection_info().map_err(refused)?;
    let settings = info.redis_settings().clone();
    let settings = settings.set_protocol(ProtocolVersion::RESP3);
    let shown = show(info.addr(), settings.db());
    Ok((info.set_redis_settings(settings), shown))
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
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
            ("rediss://a?ca=/etc/hostname", "ca: no certificate"),
            ("rediss://a#insecure", "always"),
            (
                "rediss://a?cacert=/x",
                "parameter \"cacert\" is not known: ca, cert, key are",
            ),
            ("redis://a?db=1", "parameter \"db\" is not known"),
            (
                "unix:///a?password=s3cret",
                "parameter \"password\" is not known: db, user, pass are",
            ),
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
