//! TLS: the certificate of the coordinator, and the authority of its callers.

use std::{fs, io, path::PathBuf, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;
use x509_parser::pem::Pem;

/// The protocols over TLS, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

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

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let read = CertificateDer::pem_slice_iter(&self.pem).collect::<Result<Vec<_>, _>>();
        let read = read.map_err(|error| format!("{:?}: {error}", self.path))?;
        match read.is_empty() {
            true => Err(format!("{:?} has no certificate", self.path)),
            false => Ok(read),
        }
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
        read.acceptor()?;
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

    /// Accepts connections with these certificates. The error is for a person: a file has no certificate or no key, or the
    /// key is not the certificate's.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let provider = Arc::new(ring::default_provider());
        let key = PrivateKeyDer::from_pem_slice(&self.key.pem);
        let key = key.map_err(|error| format!("{:?}: {error}", self.key.path))?;
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let refused = |error: rustls::Error| error.to_string();
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(refused)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for certificate in authorities.certificates()? {
                    roots.add(certificate).map_err(refused)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| error.to_string())?)
            }
        };
        let mut config = builder
            .with_single_cert(self.cert.certificates()?, key)
            .map_err(refused)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
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
