//! TLS: the certificate of the coordinator, and the authority of its callers.

use std::{path::PathBuf, time::Duration};

use tonic::transport::{Certificate, Error, Identity, Server, ServerTlsConfig};

/// A connection whose handshake takes longer is closed.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// TLS of the service: `tls`.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// `cert`: the certificate of the coordinator, and its chain.
    pub cert: PemFile,
    /// `key`: the private key of the certificate.
    pub key: PemFile,
    /// `client_ca`: the authorities of callers' certificates. If set, every connection needs a
    /// certificate of one of them. Default: callers need no certificate.
    pub client_ca: Option<PemFile>,
}

/// A file in the PEM format.
#[derive(Clone, PartialEq, Eq)]
pub struct PemFile {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub pem: Vec<u8>,
}

impl Tls {
    /// A server with these certificates.
    ///
    /// # Errors
    ///
    /// A file has no certificate or no key, or the key is not the certificate's.
    pub(crate) fn server(&self) -> Result<Server, Error> {
        let identity = Identity::from_pem(&self.cert.pem, &self.key.pem);
        let mut config = ServerTlsConfig::new()
            .identity(identity)
            .timeout(HANDSHAKE_WITHIN);
        if let Some(authorities) = &self.client_ca {
            config = config.client_ca_root(Certificate::from_pem(&authorities.pem));
        }
        Server::builder().tls_config(config)
    }
}
