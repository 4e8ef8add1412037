//! One coordinator, or those that share a name: their addresses, and a connection to each.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_coordinator::engine::CoordinatorError;
use tokio::{task::spawn_blocking, time::timeout};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, Error, Uri};

use super::{Coordinators, Resolver};

/// Where a coordinator serves, if its address does not say.
const DEFAULT_PORT: u16 = 7420;

/// A coordinator that does not take a connection is given up after this.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How often a coordinator is asked whether the connection still reaches it, and the time that it has for its answer:
/// together less than a third of the default lease. A host or a firewall that forgets a connection does not say so.
const PING_EVERY: Duration = Duration::from_secs(5);
const PONG_WITHIN: Duration = Duration::from_secs(3);

/// The addresses of a host are waited for so long. Without them, those of before are used.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);

/// Addresses of a host that are used, at most.
const ADDRESSES_MAX: usize = 64;

/// The coordinators at a URL: one at each address of its host.
pub(super) struct Coordinator {
    /// In messages.
    pub(super) name: String,
    url: Uri,
    tls: Option<ClientTlsConfig>,
    resolver: Resolver,
    channels: Mutex<Vec<Place>>,
}

struct Place {
    /// None: of a host that has one, or that was not looked up yet.
    address: Option<SocketAddr>,
    channel: Channel,
}

impl Coordinator {
    pub(super) fn new(url: &str, of: &Coordinators) -> Result<Self, CoordinatorError> {
        let refused = |error: &dyn std::error::Error| {
            CoordinatorError::refused(format!("coordinator {url}: {}", chain(error)))
        };
        let endpoint = Endpoint::from_shared(whole(url)).map_err(|error| refused(&error))?;
        let tls = match endpoint.uri().scheme_str() {
            Some("http") => None,
            Some("https") => Some(of.tls()),
            _ => {
                let message = format!("coordinator {url}: a URL begins with http:// or https://");
                return Err(CoordinatorError::refused(message));
            }
        };
        let mut coordinator = Self {
            name: named(url, of),
            url: endpoint.uri().clone(),
            tls,
            resolver: of.resolver.clone(),
            channels: Mutex::default(),
        };
        let place = coordinator.place(None).map_err(|error| refused(&error))?;
        coordinator.channels.get_mut().push(place);
        Ok(coordinator)
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// The number of addresses of its host, as known.
    pub(super) fn addresses(&self) -> usize {
        self.channels.lock().len()
    }

    /// A connection to one of its addresses, each in turn.
    pub(super) fn channel(&self, turn: usize) -> Channel {
        let channels = self.channels.lock();
        channels[turn % channels.len()].channel.clone()
    }

    /// Finds the present addresses of its host.
    pub(super) async fn look_up(&self) {
        let host = self.url.host().unwrap_or_default();
        if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
            return;
        }
        let (resolver, host) = (self.resolver.clone(), host.to_owned());
        let port = self.url.port_u16().unwrap_or(DEFAULT_PORT);
        let found = spawn_blocking(move || resolver(&host, port));
        let Ok(Ok(Ok(mut addresses))) = timeout(LOOK_UP_WITHIN, found).await else {
            return;
        };
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        let places = match &addresses[..] {
            [] => return,
            [_] => vec![None],
            several => several.iter().copied().map(Some).collect(),
        };
        let mut channels = self.channels.lock();
        if channels
            .iter()
            .map(|place| place.address)
            .eq(places.iter().copied())
        {
            return;
        }
        let mut former = std::mem::take(&mut *channels);
        for address in places {
            let known = former.iter().position(|place| place.address == address);
            let place = match known {
                Some(index) => former.swap_remove(index),
                None => self
                    .place(address)
                    .expect("an address is a URL, and the settings of TLS were used before"),
            };
            channels.push(place);
        }
    }

    /// A connection to `address`, or to whatever address its host has then. It is made when it is used.
    fn place(&self, address: Option<SocketAddr>) -> Result<Place, Error> {
        let scheme = self.url.scheme_str().unwrap_or_default();
        let mut endpoint = match address {
            // What the coordinator reads, and what its certificate has to be for, stays the name.
            Some(address) => {
                Endpoint::from_shared(format!("{scheme}://{address}"))?.origin(self.url.clone())
            }
            None => Endpoint::from(self.url.clone()),
        };
        if let Some(tls) = &self.tls {
            let tls = match address {
                Some(_) => tls.clone().domain_name(self.url.host().unwrap_or_default()),
                None => tls.clone(),
            };
            endpoint = endpoint.tls_config(tls)?;
        }
        let channel = endpoint
            .connect_timeout(CONNECT_WITHIN)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PONG_WITHIN)
            .keep_alive_while_idle(true)
            .connect_lazy();
        Ok(Place { address, channel })
    }
}

/// The coordinator at `url` in messages. One that requires a certificate ends a connection without one, often before its
/// reason can be read.
fn named(url: &str, of: &Coordinators) -> String {
    match &of.identity {
        None if url.starts_with("https:") => format!("{url} (without a client certificate)"),
        _ => url.to_owned(),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// `url` with a scheme and a port: plain, and a coordinator's default.
fn whole(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match authority.rsplit_once(':') {
        Some((_, port)) if is_port(port) => format!("{scheme}://{rest}"),
        _ => format!("{scheme}://{authority}:{DEFAULT_PORT}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_coordinator_has_a_scheme_and_a_port_in_the_end() {
        for (given, expected) in [
            ("host", "http://host:7420"),
            ("host:1", "http://host:1"),
            ("10.0.0.1", "http://10.0.0.1:7420"),
            ("[::1]", "http://[::1]:7420"),
            ("[::1]:1", "http://[::1]:1"),
            ("https://host", "https://host:7420"),
            ("http://host:1/", "http://host:1/"),
        ] {
            assert_eq!(whole(given), expected, "{given}");
        }
    }
}
