//! TLS: trusted authorities, and the client's own certificate.

use std::{fs, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// The trusted authorities and the client's certificate, read once for all connections.
#[derive(Clone)]
pub(super) struct Tls(pub(super) Arc<ClientConfig>);

impl Tls {
    /// With the PEM files at `paths`, of which the parameters `names` are: the authorities, or the system's; the client's
    /// certificate, if it has one; and its key. The error is in words for the user.
    pub(super) fn of(names: [&str; 3], paths: [Option<&str>; 3]) -> Result<Self, String> {
        let [ca, cert, key] = names;
        let mut files = std::iter::zip(names, paths);
        let files = [(); 3].map(|()| {
            let (name, path) = files.next()?;
            path.map(|path| read(name, path))
        });
        let [its_ca, its_cert, its_key] = files.map(Option::transpose);
        let shown = match (its_cert?, its_key?) {
            (None, None) => None,
            (Some(chain), Some(private)) => {
                Some((certificates(cert, &chain)?, private_key(key, &private)?))
            }
            _ => return Err(format!("{cert} and {key} go together")),
        };
        let trusted = match its_ca? {
            Some(authorities) => certificates(ca, &authorities)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(trusted);
        if added == 0 {
            return Err(format!(
                "no authority to trust: install ca-certificates, or use {ca}="
            ));
        }
        let config = config(roots, shown).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(config)))
    }

    /// Trusts nobody.
    pub(super) fn distrustful() -> Result<Self, rustls::Error> {
        Ok(Self(Arc::new(config(RootCertStore::empty(), None)?)))
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
