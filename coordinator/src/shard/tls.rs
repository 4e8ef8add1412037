//! TLS: trusted authorities, and the client's own certificate.

use std::{fs, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
#[cfg(feature = "postgres")]
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{ServerName, UnixTime},
};

/// The trusted authorities and the client's certificate, read once for all connections.
#[derive(Clone)]
pub(super) struct Tls(pub(super) Arc<ClientConfig>);

impl Tls {
    /// With the PEM files at `paths`, of which the parameters `names` are: the authorities, or the system's; the client's
    /// certificate, if it has one; and its key. The error is in words for the user.
    pub(super) fn of(names: [&str; 3], paths: [Option<&str>; 3]) -> Result<Self, String> {
        let [ca, cert, key] = names;
        let trusted = match paths[0] {
            Some(path) => certificates(ca, &read(ca, path)?)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let own = own_certificate([cert, key], [paths[1], paths[2]])?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(trusted);
        if added == 0 {
            return Err(format!(
                "no authority to trust: install ca-certificates, or use {ca}="
            ));
        }
        let config = config(roots, own).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(config)))
    }

    /// Encrypts, and trusts whoever answers. With the client's certificate and its key, if it has one.
    #[cfg(feature = "postgres")]
    pub(super) fn unchecked(names: [&str; 3], paths: [Option<&str>; 3]) -> Result<Self, String> {
        let [_, cert, key] = names;
        let own = own_certificate([cert, key], [paths[1], paths[2]])?;
        let config = config(RootCertStore::empty(), own);
        let mut config = config.map_err(|error| error.to_string())?;
        let schemes = config.crypto_provider().signature_verification_algorithms;
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(AnyCertificate(schemes)));
        Ok(Self(Arc::new(config)))
    }

    /// Trusts nobody.
    pub(super) fn distrustful() -> Result<Self, rustls::Error> {
        Ok(Self(Arc::new(config(RootCertStore::empty(), None)?)))
    }
}

/// The client's certificate, its chain, and its key.
type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(names: [&str; 2], paths: [Option<&str>; 2]) -> Result<Option<Own>, String> {
    let [cert, key] = names;
    let file = |at: usize| paths[at].map(|path| read(names[at], path)).transpose();
    match (file(0)?, file(1)?) {
        (None, None) => Ok(None),
        (Some(chain), Some(private)) => Ok(Some((
            certificates(cert, &chain)?,
            private_key(key, &private)?,
        ))),
        _ => Err(format!("{cert} and {key} go together")),
    }
}

/// Takes any certificate whose key the server has.
#[cfg(feature = "postgres")]
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

#[cfg(feature = "postgres")]
impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

fn config(roots: RootCertStore, shown: Option<Own>) -> Result<ClientConfig, rustls::Error> {
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

/// Whether an error of a connection is one of TLS, such as a certificate that is refused.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn is_refusal(error: &std::io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|error| error.is::<rustls::Error>())
}

/// `url` without the parameters `names` of its query, and their values.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn take<const N: usize>(url: &str, names: [&str; N]) -> (String, [Option<String>; N]) {
    let mut values = [const { None }; N];
    // A password may have a question mark too.
    let Some((place, query)) = url.rsplit_once('?') else {
        return (url.to_owned(), values);
    };
    let others = query.split('&').filter(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let known = names.iter().position(|known| *known == name);
        if let Some(known) = known {
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            values[known] = Some(value.into_owned());
        }
        known.is_none()
    });
    let others = others.collect::<Vec<_>>().join("&");
    match others.is_empty() {
        true => (place.to_owned(), values),
        false => (format!("{place}?{others}"), values),
    }
}

/// The query parameters that name files of TLS at every kind of server: the authorities, the client's certificate and its
/// key.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const FILES: [&str; 3] = ["ca", "cert", "key"];

/// `url` without the parameters that name files of TLS: the names in use, those of every server or those of its `own`
/// kind; and the paths.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) fn files(
    url: &str,
    own: [&'static str; 3],
) -> (String, [&'static str; 3], [Option<String>; 3]) {
    let (rest, shared) = take(url, FILES);
    let (rest, theirs) = take(&rest, own);
    let mut names = own;
    let mut paths = theirs;
    for (at, path) in shared.into_iter().enumerate() {
        if path.is_some() {
            (names[at], paths[at]) = (FILES[at], path);
        }
    }
    (rest, names, paths)
}

/// The file at `path`, which the parameter `name` names.
pub(super) fn read(name: &str, path: &str) -> Result<Vec<u8>, String> {
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

fn private_key(name: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| format!("{name}: {error}"))
}
