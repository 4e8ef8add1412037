//! TLS with servers of Redis.

use std::{collections::HashMap, io};

use redis::ConnectionAddr;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

pub(super) use crate::shard::tls::Tls;

/// The query parameters that name files: the authorities, the client's certificate, and its key.
const FILES: [&str; 3] = ["ca", "cert", "key"];

/// The names of the query parameters of a socket's path.
const UNIX: [&str; 3] = ["db", "user", "pass"];

impl Tls {
    /// The TLS settings in `url`, of a server at `addr`; `None` without TLS. The error is in words for the user.
    pub(super) fn of_url(url: &str, addr: &ConnectionAddr) -> Result<Option<Self>, String> {
        let url = redis::parse_redis_url(url).ok_or("not a URL")?;
        let query: HashMap<_, _> = url.query_pairs().collect();
        let known = match addr {
            ConnectionAddr::Unix(_) => &UNIX[..],
            _ => &FILES,
        };
        if let Some(unknown) = query.keys().find(|name| !known.contains(&name.as_ref())) {
            let known = known.join(", ");
            return Err(format!("parameter {unknown:?} is not known: {known} are"));
        }
        let paths = FILES.map(|name| query.get(name).map(AsRef::as_ref));
        let ConnectionAddr::TcpTls { insecure, .. } = addr else {
            return match paths {
                [None, None, None] => Ok(None),
                _ => Err("ca, cert and key are for rediss://".into()),
            };
        };
        if *insecure {
            return Err("certificates are checked always: use ca=".into());
        }
        Self::of(FILES, paths).map(Some)
    }

    /// Whether the server behind `stream` answers a TLS handshake, with any certificate.
    pub(super) async fn is_spoken_by<S>(stream: S) -> io::Result<bool>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Self::distrustful().map_err(io::Error::other)?.0;
        let host = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let connector = TlsConnector::from(config);
        let Err(error) = connector.connect(host, stream).await else {
            return Ok(true);
        };
        let error = error.get_ref().and_then(|error| error.downcast_ref());
        Ok(matches!(
            error,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_))
        ))
    }

    /// Shakes hands with `host` over `stream`.
    pub(super) async fn over(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let host = ServerName::try_from(host.to_owned());
        let host = host.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(self.0.clone())
            .connect(host, stream)
            .await
    }
}
