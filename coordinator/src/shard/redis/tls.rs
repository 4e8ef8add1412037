//! TLS: trusted authorities, and the client's own certificate.

use std::{collections::HashMap, fs, io, sync::Arc};

use redis::ConnectionAddr;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The query parameters that name files: the authorities, the client's certificate, and its key.
const FILES: [&str; 3] = ["ca", "cert", "key"];

/// The names of the query parameters of a socket's path.
const UNIX: [&str; 3] = ["db", "user", "pass"];

/// The trusted authorities and the client's certificate, read once for all connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// The TLS settings in `url`, of a server at `addr`; `None` without TLS. The error is in words for the user.
    pub(super) fn of(url: &str, addr: &ConnectionAddr) -> Result<Option<Self>, String> {
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
        let files = FILES.map(|name| query.get(name).map(|path| read(name, path)));
        let ConnectionAddr::TcpTls { insecure, .. } = addr else {
            return match files {
                [None, None, None] => Ok(None),
                _ => Err("ca, cert and key are for rediss://".into()),
            };
        };
        if *insecure {
            return Err("certificates are checked always: use ca=".into());
        }
        let [ca, cert, key] = files.map(Option::transpose);
        let shown = match (cert?, key?) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((certificates("cert", &cert)?, private(&key)?)),
            _ => return Err("cert and key go together".into()),
        };
        let trusted = match ca? {
            Some(ca) => certificates("ca", &ca)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(trusted);
        if added == 0 {
            return Err("no authority to trust: install ca-certificates, or use ca=".into());
        }
        let config = config(roots, shown).map_err(|error| error.to_string())?;
        Ok(Some(Self(Arc::new(config))))
    }

    /// Whether the server behind `stream` answers a TLS handshake, with any certificate.
    pub(super) async fn is_spoken_by<S>(stream: S) -> io::Result<bool>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = config(RootCertStore::empty(), None).map_err(io::Error::other)?;
        let host = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config));
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

/// The client's certificate, its chain, and its key.
type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn config(roots: RootCertStore, shown: Option<Shown>) -> Result<ClientConfig, rustls::Error> {
    // Chosen here instead of as the process's default, which is the application's to choose.
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match shown {
        Some((certificates, key)) => config.with_client_auth_cert(certificates, key),
        None => Ok(config.with_no_client_auth()),
    }
}

fn read(name: &str, path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{name}={path}: {error}"))
}

fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(format!("{name}: no certificate in it")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn private(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| format!("key: {error}"))
}
