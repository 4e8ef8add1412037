//! TLS: the certificate of the coordinator, and the authority of its callers.

use std::{error::Error as _, fs, io, path::PathBuf, time::Duration};

use tonic::transport::{Certificate, Error, Identity, Server, ServerTlsConfig};
use x509_parser::pem::Pem;

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

impl PemFile {
    /// Reads the file at `path`.
    pub(crate) fn read(path: PathBuf) -> io::Result<Self> {
        let pem = fs::read(&path)?;
        Ok(Self { path, pem })
    }

    fn read_again(&self) -> Result<Self, String> {
        let read = Self::read(self.path.clone());
        read.map_err(|error| format!("{:?} cannot be read: {error}", self.path))
    }

    /// When the first of its certificates ends, in seconds since 1970.
    fn expiry(&self) -> Option<i64> {
        let certificates = Pem::iter_from_buffer(&self.pem).filter_map(Result::ok);
        let expiry = |certificate: Pem| {
            let certificate = certificate.parse_x509().ok()?;
            Some(certificate.validity().not_after.timestamp())
        };
        certificates.filter_map(expiry).min()
    }
}

impl Tls {
    /// As its files are now; `None`: as they are known. The error is for a person: a file cannot be read, or they do not
    /// belong together.
    pub(crate) fn read_again(&self) -> Result<Option<Self>, String> {
        let client_ca = self.client_ca.as_ref().map(PemFile::read_again);
        let read = Self {
            cert: self.cert.read_again()?,
            key: self.key.read_again()?,
            client_ca: client_ca.transpose()?,
        };
        if read == *self {
            return Ok(None);
        }
        read.server().map_err(|error| refusal(&error))?;
        Ok(Some(read))
    }

    /// The settings with certificates, and when the first of these ends.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let files = [
            ("tls.cert", Some(&self.cert)),
            ("tls.client_ca", self.client_ca.as_ref()),
        ];
        let expiry = |(setting, file): (_, Option<&PemFile>)| Some((setting, file?.expiry()?));
        files.into_iter().filter_map(expiry)
    }

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

/// The reason why certificates cannot be used.
pub(crate) fn refusal(error: &Error) -> String {
    let reason = error.source();
    reason.map_or(error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use ringfence_test_support::Secured;

    use super::*;

    #[test]
    fn files_that_do_not_belong_together_are_not_taken() {
        let (secured, renewed) = (Secured::default(), Secured::default());
        let [cert, key] = ["server.pem", "server.key"].map(|name| {
            let path = PathBuf::from(secured.path(name));
            PemFile::read(path).unwrap()
        });
        let tls = Tls {
            cert,
            key,
            client_ca: None,
        };
        assert!(tls.read_again().unwrap().is_none());
        fs::copy(renewed.path("server.pem"), secured.path("server.pem")).unwrap();
        assert!(tls.read_again().is_err());
        fs::copy(renewed.path("server.key"), secured.path("server.key")).unwrap();
        let changed = tls.read_again().unwrap().expect("it has changed");
        assert!(changed.read_again().unwrap().is_none());
        let ends: Vec<_> = changed.expiries().collect();
        assert!(
            matches!(ends[..], [("tls.cert", end)] if end > 1_600_000_000),
            "{ends:?}"
        );
    }
}
