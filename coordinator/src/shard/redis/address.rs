//! A server's address, without its password.

use std::{fmt, io, pin::Pin, str::FromStr, sync::Arc};

use futures_util::future::BoxFuture;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisResult, aio::MultiplexedConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::{
    diagnosis::Stream,
    sentinels::{Parts, Sentinels},
    tls::Tls,
};

/// A server's URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://` for TLS, or
/// `unix:///path`.
///
/// Over TLS the server's certificate is checked against the system's authorities, or against those in a file:
/// `rediss://host?ca=/path/ca.pem`. For a server that requires a client certificate,
/// `&cert=/path/client.pem&key=/path/client.key` names it and its key. All files are PEM. They are read when the URL is
/// parsed.
///
/// `redis+sentinel://[user[:password]@]host[:port][,host[:port]…]/name[/db]` is the primary that these Sentinels know by
/// that name (default port: 26379). They are asked at each new connection. The login is the primary's;
/// `?sentinel_user=` and `sentinel_pass=` are for the Sentinels. `rediss+sentinel://` uses TLS with the Sentinels and
/// with the primary: each certificate must be for the host that the URL, or a Sentinel, names.
///
/// Displayed and compared without credentials.
#[derive(Clone)]
pub struct Address {
    way: Way,
    login: RedisConnectionInfo,
    tls: Option<Tls>,
    shown: String,
}

/// How the server is found.
#[derive(Clone)]
enum Way {
    At(ConnectionAddr),
    By(Arc<Sentinels>),
}

/// Moves the bytes of a connection while it is polled. Ready once the connection has ended.
pub type Pump = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The reason why a URL was refused. It never contains the URL, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "redis address: {0} (expected redis://[user:password@]host[:port][/db], or \
     redis+sentinel://[user:password@]host[:port],…/name[/db])"
)]
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
    pub fn open(
        &self,
        config: AsyncConnectionConfig,
    ) -> BoxFuture<'_, RedisResult<(MultiplexedConnection, Pump)>> {
        Box::pin(async move {
            match (self.place().await?, &self.tls) {
                (ConnectionAddr::Tcp(host, port), _) => {
                    self.log_in(self.tcp(&host, port).await?, config).await
                }
                (ConnectionAddr::TcpTls { host, port, .. }, Some(tls)) => {
                    let stream = tls.over(&host, self.tcp(&host, port).await?).await?;
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
        })
    }

    /// Where the server is now.
    async fn place(&self) -> RedisResult<ConnectionAddr> {
        let sentinels = match &self.way {
            Way::At(place) => return Ok(place.clone()),
            Way::By(sentinels) => sentinels,
        };
        let (host, port) = sentinels.primary().await?;
        Ok(match self.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
        })
    }

    /// The trusted authorities and our certificate, if TLS is used.
    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// A connection without TLS and without a login.
    pub(super) async fn stream(&self) -> io::Result<Box<dyn Stream>> {
        let place = self.place().await.map_err(io::Error::other)?;
        Ok(match place {
            ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Box::new(self.tcp(&host, port).await?)
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    async fn tcp(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let connected = TcpStream::connect((host, port)).await;
        let stream = connected.map_err(|error| match &self.way {
            Way::At(_) => error,
            Way::By(_) => {
                let named = format!("{host}:{port}, which the Sentinels name: {error}");
                io::Error::new(error.kind(), named)
            }
        })?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn log_in(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        config: AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, Pump)> {
        let opened = MultiplexedConnection::new_with_config(&self.login, stream, config);
        let (connection, pump) = opened.await?;
        Ok((connection, Box::pin(pump)))
    }

    /// The address, without credentials.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The login's user.
    pub(super) fn user(&self) -> &str {
        self.login.username().unwrap_or("default")
    }

    /// The server at `shown`, with the credentials and certificates of this one: servers of one
    /// topology share them.
    ///
    /// # Errors
    ///
    /// [`AddressError`].
    pub fn sibling(&self, shown: &str) -> Result<Self, AddressError> {
        let mut sibling = Self::parse(shown, self.tls.as_ref())?;
        sibling.login = with_login(sibling.login, &self.login);
        if let (Way::By(theirs), Way::By(mine)) = (&mut sibling.way, &self.way)
            && let Some(like) = mine.each.first()
        {
            for sentinel in &mut Arc::make_mut(theirs).each {
                let login = sentinel.login.clone();
                sentinel.login = with_login(login, &like.login);
            }
        }
        Ok(sibling)
    }

    /// Servers with TLS are reached as `tls` says; if that is `None`, as the URL says.
    fn parse(url: &str, tls: Option<&Tls>) -> Result<Self, AddressError> {
        if let Some(char) = not_encoded(url) {
            let why = format!(
                "the login has {char:?}; in a user or a password write # as %23, / as %2F and @ as %40"
            );
            return Err(AddressError(why));
        }
        match url.split_once("+sentinel://") {
            Some((scheme @ ("redis" | "rediss"), rest)) => Self::by_sentinels(scheme, rest, tls),
            _ => Self::at(url, tls),
        }
    }

    /// The server at one place.
    fn at(url: &str, tls: Option<&Tls>) -> Result<Self, AddressError> {
        let refused = |error: redis::RedisError| {
            let text = error.to_string();
            AddressError(text.trim_end_matches(" - InvalidClientConfig").to_owned())
        };
        let info = url.into_connection_info().map_err(refused)?;
        let login = info.redis_settings().clone();
        let login = login.set_protocol(ProtocolVersion::RESP3);
        let tls = match (info.addr(), tls) {
            (ConnectionAddr::TcpTls { .. }, Some(tls)) => Some(tls.clone()),
            (addr, _) => Tls::of_url(url, addr).map_err(AddressError)?,
        };
        Ok(Self {
            shown: show(info.addr(), login.db()),
            way: Way::At(info.addr().clone()),
            login,
            tls,
        })
    }

    /// The primary that Sentinels know.
    fn by_sentinels(scheme: &str, rest: &str, tls: Option<&Tls>) -> Result<Self, AddressError> {
        let Parts {
            each,
            primary,
            name,
        } = Parts::of(scheme, rest).map_err(|why| AddressError(why.to_owned()))?;
        let each = each.iter().map(|url| Self::at(url, tls));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        let Self { login, tls, .. } = Self::at(&primary, tls)?;
        let places: Vec<_> = each.iter().map(Self::host_and_port).collect();
        let (places, db) = (places.join(","), login.db());
        Ok(Self {
            shown: format!("{scheme}+sentinel://{places}/{name}/{db}"),
            way: Way::By(Arc::new(Sentinels { each, name })),
            login,
            tls,
        })
    }

    /// The address without scheme and database.
    fn host_and_port(&self) -> &str {
        let (_, rest) = self.shown.split_once("://").unwrap_or_default();
        rest.split_once('/').map_or(rest, |(place, _)| place)
    }
}

/// `own`, with the user and the password of `other`, if that has them.
fn with_login(mut own: RedisConnectionInfo, other: &RedisConnectionInfo) -> RedisConnectionInfo {
    if let Some(username) = other.username() {
        own = own.set_username(username);
    }
    if let Some(password) = other.password() {
        own = own.set_password(password);
    }
    own
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Self::parse(url, None)
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

/// What ends the login of `url` too early, if it has a login.
fn not_encoded(url: &str) -> Option<char> {
    let (scheme, rest) = url.split_once("://")?;
    let (login, _) = rest.split('?').next()?.rsplit_once('@')?;
    let ends = |char: &char| matches!(char, '#' | '/');
    login.chars().find(ends).filter(|_| scheme != "unix")
}

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
    fn a_password_that_is_not_encoded_is_named_and_not_shown() {
        for url in [
            "redis://:pa#ss@db",
            "redis://u:1#x@db",
            "redis://:pa/ss@db:1/2",
            "redis+sentinel://:pa#ss@db/name",
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("write # as %23"), "{url}: {error}");
            assert!(!error.contains("pa") || !error.contains("ss@"), "{error}");
        }
        assert!("redis://:pa%23%2F%40@db".parse::<Address>().is_ok());
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
        assert_eq!(sibling.login.password(), Some("s3cret"));
        assert_eq!(sibling.as_str(), "redis://b:2/0");
    }

    #[test]
    fn sentinels_are_named_with_the_primary_they_watch() {
        let url =
            "redis+sentinel://coin:s3cret@a,b:7,[::1]/bank.eu-1/2?sentinel_user=u&sentinel_pass=p";
        let address: Address = url.parse().unwrap();
        let shown = "redis+sentinel://a:26379,b:7,[::1]:26379/bank.eu-1/2";
        assert_eq!(format!("{address} {address:?}"), format!("{shown} {shown}"));
        let other = "redis+sentinel://c/bank".parse::<Address>().unwrap();
        for address in [&address, &address.sibling(other.as_str()).unwrap()] {
            let Way::By(sentinels) = &address.way else {
                panic!("{address} is found by Sentinels");
            };
            assert_eq!(address.login.password(), Some("s3cret"));
            for sentinel in &sentinels.each {
                let login = (sentinel.login.username(), sentinel.login.password());
                assert_eq!(login, (Some("u"), Some("p")), "{sentinel}");
            }
        }
    }

    #[test]
    fn a_url_of_sentinels_that_cannot_be_used_is_refused_by_name() {
        for (url, named) in [
            (
                "redis+sentinel://a:26379",
                "the name of the primary is missing",
            ),
            ("redis+sentinel://a/", "the name of the primary must be of"),
            (
                "redis+sentinel://a/b c",
                "the name of the primary must be of",
            ),
            ("redis+sentinel://a,,b/bank", "redis address"),
            ("redis+sentinel://a/bank?ca=/etc/hostname", "rediss://"),
            (
                "redis+sentinel://a/bank?db=1",
                "parameter \"db\" is not known",
            ),
            ("rediss+sentinel://a/bank?ca=/nowhere", "ca=/nowhere"),
            ("redis+sentinel://a/bank/one", "redis address"),
            ("unix+sentinel://a/bank", "redis address"),
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(named), "{url}: {error}");
        }
    }
}
