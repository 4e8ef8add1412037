//! Where a cluster is.

use std::{fmt, fs, str::FromStr};

use percent_encoding::percent_decode_str;
use tonic::{
    codegen::http::uri::Authority,
    transport::{Certificate, ClientTlsConfig, Identity},
};

/// The port of clients, if the address names none.
const PORT: u16 = 2379;

/// The query parameters that name files: the authorities, the client's certificate, and its key.
const FILES: [&str; 3] = ["ca", "cert", "key"];

/// The address of a cluster: `etcd://[user:password@]host[:port][,host[:port]…]`, some or all of its nodes.
///
/// `etcds://` is for TLS: each node's certificate must be for the host that the address names. It is checked against the
/// system's authorities, or against those in a file: `etcds://host?ca=/path/ca.pem`. For nodes that require a client
/// certificate, `&cert=/path/client.pem&key=/path/client.key` names it and its key. All files are PEM. They are read when
/// the address is parsed.
///
/// Displayed and compared without credentials.
#[derive(Clone)]
pub struct EtcdAddress {
    /// `host:port` each.
    pub(super) hosts: Vec<String>,
    pub(super) tls: Option<ClientTlsConfig>,
    pub(super) login: Option<Login>,
    shown: String,
}

/// A user's name and password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// The address is not one of etcd. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of etcd (etcd://[user:password@]host[:port][,host[:port]…]): {0}")]
pub struct EtcdAddressError(String);

impl EtcdAddress {
    /// The cluster at `shown`, with the credentials and certificates of this one.
    ///
    /// # Errors
    ///
    /// [`EtcdAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, EtcdAddressError> {
        let mut sibling: Self = shown.parse()?;
        sibling.login = sibling.login.or(self.login.clone());
        if sibling.tls.is_some() && self.tls.is_some() {
            sibling.tls = self.tls.clone();
        }
        Ok(sibling)
    }

    /// Without user, password and files.
    pub fn as_str(&self) -> &str {
        &self.shown
    }
}

impl FromStr for EtcdAddress {
    type Err = EtcdAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let refused = |reason: &str| EtcdAddressError(reason.to_owned());
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if !["etcd", "etcds"].contains(&scheme) {
            return Err(refused("it begins otherwise"));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, hosts) = match rest.rsplit_once('@') {
            Some((login, hosts)) => (Some(Login::parse(login)?), hosts),
            None => (None, rest),
        };
        let hosts = hosts.split(',').map(host_and_port);
        let hosts = hosts.collect::<Option<Vec<_>>>();
        let hosts = hosts.ok_or(refused("each node is host or host:port"))?;
        if (1..hosts.len()).any(|place| hosts[..place].contains(&hosts[place])) {
            return Err(refused("a node is named twice"));
        }
        let tls = tls(scheme == "etcds", query).map_err(EtcdAddressError)?;
        Ok(Self {
            shown: format!("{scheme}://{}", hosts.join(",")),
            hosts,
            tls,
            login,
        })
    }
}

impl Login {
    fn parse(login: &str) -> Result<Self, EtcdAddressError> {
        let refused = |reason: &str| EtcdAddressError(reason.to_owned());
        let (user, password) = login
            .split_once(':')
            .ok_or(refused("the user has no password"))?;
        let decoded = |part| {
            let text = percent_decode_str(part).decode_utf8();
            text.map(String::from)
                .map_err(|_| refused("user and password are UTF-8"))
        };
        Ok(Self {
            user: decoded(user)?,
            password: decoded(password)?,
        })
    }
}

/// `host:port`, if `node` is one.
fn host_and_port(node: &str) -> Option<String> {
    let authority: Authority = node.parse().ok()?;
    let host = authority.host();
    let port = match authority.port() {
        Some(port) => port.as_str().parse().ok().filter(|port| *port != 0)?,
        None if host == node => PORT,
        None => return None,
    };
    let shown = format!("{host}:{port}");
    // The parser takes some hosts with a bracket inside for others.
    let again: Authority = shown.parse().ok()?;
    (!host.is_empty() && again.host() == host).then_some(shown)
}

/// The settings of TLS; `None`: without.
fn tls(is_used: bool, query: &str) -> Result<Option<ClientTlsConfig>, String> {
    let mut files = FILES.map(|_| None);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, path) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = FILES.iter().position(|known| *known == name);
        let place = place.ok_or(format!(
            "parameter {name:?} is not known: ca, cert, key are"
        ))?;
        let path = percent_decode_str(path).decode_utf8_lossy();
        let pem = fs::read(&*path).map_err(|error| format!("{name}={path}: {error}"))?;
        files[place] = Some(pem);
    }
    let [ca, cert, key] = files;
    if !is_used {
        return match (ca, cert, key) {
            (None, None, None) => Ok(None),
            _ => Err("ca, cert and key are for etcds://".into()),
        };
    }
    let mut tls = match ca {
        Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    match (cert, key) {
        (None, None) => {}
        (Some(cert), Some(key)) => tls = tls.identity(Identity::from_pem(cert, key)),
        _ => return Err("cert and key go together".into()),
    }
    Ok(Some(tls))
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for EtcdAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> EtcdAddress {
        url.parse().expect("an address")
    }

    #[test]
    fn credentials_are_never_shown_or_repeated() {
        let address = parsed("etcd://coin:s3%3Acret@a:1,b,[::1]:3/");
        assert_eq!(
            format!("{address} {address:?}"),
            "etcd://a:1,b:2379,[::1]:3 etcd://a:1,b:2379,[::1]:3"
        );
        let sibling = address.sibling("etcd://c:4").expect("one");
        assert_eq!(sibling.as_str(), "etcd://c:4");
        assert_eq!(sibling.login.expect("a login").password, "s3:cret");
        for url in [
            "etcd://coin:s3cret@a:port",
            "etcd://s3cret@a",
            "etcd://coin:s3cret@a?ca=x",
        ] {
            let error = url.parse::<EtcdAddress>().expect_err("no address");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "etcd://",
            "etcd://a,,b",
            "etcd://a,a:2379",
            "etcd://a:0",
            "etcd://b&[::1]:3",
            "etcd://b&[::1]",
            "etcd://a/b",
            "etcds://a?cert=/dev/null",
            "etcds://a?tls=no",
            "http://a",
        ] {
            assert!(url.parse::<EtcdAddress>().is_err(), "{url}");
        }
        assert!(parsed("etcds://a").tls.is_some());
    }
}
