//! Where an ensemble is.

use std::{fmt, str::FromStr};

use percent_encoding::percent_decode_str;

/// The port of clients, if the address names none.
const PORT: u16 = 2181;

/// The address of an ensemble: `zookeeper://[user:password@]host[:port][,host[:port]…][/path]`, some or all of its servers.
///
/// The znodes are under `/path`, which is made if it is not there; without, under the root. User and password are for the
/// scheme `digest`: the znodes that this process makes are for that user alone. Connections are not encrypted.
///
/// Displayed and compared without credentials.
#[derive(Clone)]
pub struct ZookeeperAddress {
    /// `host:port` each.
    pub(super) hosts: Vec<String>,
    /// With a slash before each part, or empty.
    pub(super) path: String,
    /// `user:password`.
    pub(super) login: Option<String>,
    shown: String,
}

/// The address is not one of ZooKeeper. It is not repeated: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address of ZooKeeper (zookeeper://[user:password@]host[:port][,host[:port]…][/path]): {0}"
)]
pub struct ZookeeperAddressError(&'static str);

impl ZookeeperAddress {
    /// The ensemble at `shown`, with the credentials of this one.
    ///
    /// # Errors
    ///
    /// [`ZookeeperAddressError`].
    pub(crate) fn sibling(&self, shown: &str) -> Result<Self, ZookeeperAddressError> {
        let mut sibling: Self = shown.parse()?;
        sibling.login = sibling.login.or(self.login.clone());
        Ok(sibling)
    }

    /// Without user and password.
    pub fn as_str(&self) -> &str {
        &self.shown
    }
}

impl FromStr for ZookeeperAddress {
    type Err = ZookeeperAddressError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let rest = url.strip_prefix("zookeeper://");
        let rest = rest.ok_or(ZookeeperAddressError("it begins otherwise"))?;
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(user_and_password(login)?), rest),
            None => (None, rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts = hosts.split(',').map(host_and_port);
        let hosts = hosts.collect::<Option<Vec<_>>>();
        let hosts = hosts.ok_or(ZookeeperAddressError("each server is host or host:port"))?;
        if (1..hosts.len()).any(|place| hosts[..place].contains(&hosts[place])) {
            return Err(ZookeeperAddressError("a server is named twice"));
        }
        let path = match path {
            "" => String::new(),
            path if path.split('/').all(is_name) => format!("/{path}"),
            _ => {
                return Err(ZookeeperAddressError(
                    "each part of the path is of letters, digits, -, _ and .",
                ));
            }
        };
        Ok(Self {
            shown: format!("zookeeper://{}{path}", hosts.join(",")),
            hosts,
            path,
            login,
        })
    }
}

fn user_and_password(login: &str) -> Result<String, ZookeeperAddressError> {
    let (user, password) = login
        .split_once(':')
        .ok_or(ZookeeperAddressError("the user has no password"))?;
    let decoded = |part| {
        percent_decode_str(part)
            .decode_utf8()
            .map_err(|_| ZookeeperAddressError("user and password are UTF-8"))
    };
    let user = decoded(user)?;
    match user.contains(':') {
        true => Err(ZookeeperAddressError("the user has a colon")),
        false => Ok(format!("{user}:{}", decoded(password)?)),
    }
}

/// Whether it can be the name of a znode.
fn is_name(part: &str) -> bool {
    let plain = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    !["", ".", ".."].contains(&part) && part.chars().all(plain)
}

/// `host:port`, if `server` is one.
fn host_and_port(server: &str) -> Option<String> {
    let (host, port) = match server.rfind(':') {
        Some(at) if !server.ends_with(']') => (&server[..at], server[at + 1..].parse().ok()?),
        _ => (server, PORT),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let fits = match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    (fits && port != 0).then(|| format!("{host}:{port}"))
}

impl fmt::Display for ZookeeperAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for ZookeeperAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown_or_repeated() {
        let url = "zookeeper://coin:s3%3Acret@a:1,b,[::1]:3/apps/locks";
        let address: ZookeeperAddress = url.parse().expect("an address");
        let shown = "zookeeper://a:1,b:2181,[::1]:3/apps/locks";
        assert_eq!(format!("{address} {address:?}"), format!("{shown} {shown}"));
        let sibling = address.sibling("zookeeper://c:4").expect("one");
        assert_eq!(sibling.as_str(), "zookeeper://c:4");
        assert_eq!(sibling.login.as_deref(), Some("coin:s3:cret"));
        for url in ["zookeeper://coin:s3cret@a:port", "zookeeper://s3cret@a"] {
            let error = url.parse::<ZookeeperAddress>().expect_err("no address");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "zookeeper://",
            "zookeeper:///path",
            "zookeeper://a,,b",
            "zookeeper://a,a:2181",
            "zookeeper://a:0",
            "zookeeper://[a]:3",
            "zookeeper://a/../b",
            "zookeeper://a//b",
            "zookeeper://a/b?tls=no",
            "zookeepers://a",
        ] {
            assert!(url.parse::<ZookeeperAddress>().is_err(), "{url}");
        }
        let shown = |url: &str| url.parse::<ZookeeperAddress>().expect(url).shown;
        assert_eq!(shown("zookeeper://a/"), "zookeeper://a:2181");
    }
}
