//! Certificates for `rediss://`: the system's, or those in files that the URL names.

use std::{collections::HashMap, fs};

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates,
};

/// The names of the files' query parameters: of the authority, of our own certificate, and its key.
const FILES: [&str; 3] = ["ca", "cert", "key"];

/// What `url` says to connect to, with the certificates it names. In words, why it cannot be.
pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, String> {
    let info = url
        .into_connection_info()
        .map_err(|error| error.to_string())?;
    let url = redis::parse_redis_url(url).ok_or("not a URL")?;
    let query: HashMap<_, _> = url.query_pairs().collect();
    let files = FILES.map(|name| query.get(name).map(|path| read(name, path)));
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return match files {
            [None, None, None] => Ok(info),
            _ => Err("ca, cert and key are for rediss://".into()),
        };
    }
    // A process that has chosen another provider keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [ca, cert, key] = files.map(Option::transpose);
    let client_tls = match (cert?, key?) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig {
            client_cert,
            client_key,
        }),
        (None, None) => None,
        _ => return Err("cert and key go together".into()),
    };
    let certificates = TlsCertificates {
        client_tls,
        root_cert: ca?,
    };
    let client = Client::build_with_tls(info, certificates).map_err(|error| error.to_string())?;
    Ok(client.get_connection_info().clone())
}

fn read(name: &str, path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{name}={path}: {error}"))
}

/// `other`, with the certificates of `mine`.
pub(super) fn sibling(mine: &ConnectionAddr, other: &ConnectionAddr) -> ConnectionAddr {
    match (mine, other) {
        (
            ConnectionAddr::TcpTls { tls_params, .. },
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                ..
            },
        ) => ConnectionAddr::TcpTls {
            host: host.clone(),
            port: *port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => other.clone(),
    }
}
