//! The servers named on the command line, in a file or in the environment.

use std::{env, fmt, fs, io, path::PathBuf};

use clap::Args;
use ringfence_client::{Builder, Client};
use ringfence_coordinator::{
    ids::ClientId,
    name::KeyPrefix,
    shard::{ServerAddress, ServerAddressError, ServerOptions},
};

use crate::{arguments::list, redact};

/// The variable that names servers if the command line does not.
const VARIABLE: &str = "RINGFENCE_REDIS";
/// The variable that names the topology's server if the command line does not.
const TOPOLOGY: &str = "RINGFENCE_TOPOLOGY";

/// Servers to ask.
#[derive(Args, Clone)]
pub(crate) struct Seeds {
    /// A server: redis://[user:password@]host[:port][/db]; rediss:// for TLS; the primary that
    /// Sentinels watch: redis+sentinel://[user:password@]host[:port],host…/name[/db];
    /// postgres:// or mysql://, then user[:password]@host[:port]/database; or a cluster:
    /// etcd://[user:password@]host[:port],host…, etcds:// for TLS; zookeeper://[user:password@]host[:port],host…[/path]. Repeat it, or separate URLs by commas
    /// [default: the URLs in RINGFENCE_REDIS, separated by commas or spaces]
    #[arg(long, visible_alias = "server", value_name = "URL")]
    redis: Vec<String>,
    /// A file with one URL per line and # comments: keeps passwords out of the process list
    #[arg(long, value_name = "FILE", conflicts_with = "redis")]
    redis_file: Option<PathBuf>,
    /// The topology's record is on this server instead of on a shard: etcd://[user:password@]host[:port],host…,
    /// etcds:// for TLS, or a URL as for --redis. ring init puts it there; later commands find it by the
    /// shards, and need this only to log in [default: the URL in RINGFENCE_TOPOLOGY]
    #[arg(long, value_name = "URL")]
    pub(crate) topology: Option<String>,
}

/// The reason why no servers are known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedsError {
    /// No server is named.
    #[error("no server is named: give --redis URL or --redis-file FILE, or set {VARIABLE}")]
    None,
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file has no URL.
    #[error("{0} has no URL in it")]
    Empty(PathBuf),
    /// The variable is not text.
    #[error("{0} is not UTF-8")]
    NotText(&'static str),
    /// A URL cannot be used.
    #[error("{url}{place}")]
    Url {
        /// The URL, without credentials.
        url: String,
        /// The place that names it, if it is not the command line.
        place: Place,
        /// The cause.
        source: ServerAddressError,
    },
}

/// The servers that are named.
#[derive(Clone)]
pub(crate) struct Servers {
    named: Vec<Named>,
    /// The server of the topology's record, if it is named.
    topology: Option<Box<Named>>,
}

#[derive(Clone)]
struct Named {
    url: String,
    place: Place,
    parsed: ServerAddress,
    /// As in errors, without credentials.
    address: String,
}

/// The place that names a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    CommandLine,
    File { path: PathBuf, line: usize },
    Environment(&'static str),
}

impl fmt::Debug for Seeds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let Self {
            redis, redis_file, ..
        } = self;
        write!(formatter, "Seeds({} URLs, {redis_file:?})", redis.len())
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.named.iter().map(|named| &named.address);
        formatter.debug_list().entries(addresses).finish()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => Ok(()),
            Self::File { path, line } => write!(formatter, " ({}, line {line})", path.display()),
            Self::Environment(variable) => write!(formatter, " (in {variable})"),
        }
    }
}

impl Seeds {
    /// The same, with further servers of the command line.
    pub(crate) fn with(&self, urls: &[String]) -> Self {
        let mut seeds = self.clone();
        seeds.redis.extend_from_slice(urls);
        seeds
    }

    /// The URLs that are named on the command line, and those of the environment if there are none: these may be for others.
    ///
    /// # Errors
    ///
    /// [`SeedsError`].
    pub(crate) fn for_a_coordinator(&self) -> Result<(Vec<String>, Vec<String>), SeedsError> {
        let urls = match self.places() {
            Ok(places) => places.into_iter().map(|(url, _)| url).collect(),
            Err(SeedsError::None) => Vec::new(),
            Err(error) => return Err(error),
        };
        match self.redis.is_empty() && self.redis_file.is_none() {
            true => Ok((Vec::new(), urls)),
            false => Ok((urls, Vec::new())),
        }
    }

    /// The URLs, and where each is named.
    fn places(&self) -> Result<Vec<(String, Place)>, SeedsError> {
        match &self.redis_file {
            Some(path) => in_file(path),
            None if self.redis.is_empty() => in_environment(),
            None => {
                let urls = self.redis.iter().flat_map(|urls| list(urls));
                Ok(urls.map(|url| (url, Place::CommandLine)).collect())
            }
        }
    }

    /// The servers: from the command line, otherwise from its file, otherwise from the environment.
    ///
    /// # Errors
    ///
    /// [`SeedsError`].
    pub(crate) fn servers(&self) -> Result<Servers, SeedsError> {
        let named = self.places()?.into_iter();
        let named = named.map(|(url, place)| Named::new(url, place));
        let named = named.collect::<Result<_, _>>()?;
        let topology = match &self.topology {
            Some(url) => Some((url.clone(), Place::CommandLine)),
            None => {
                let url = variable(TOPOLOGY)?.trim().to_owned();
                (!url.is_empty()).then_some((url, Place::Environment(TOPOLOGY)))
            }
        };
        let topology = topology.map(|(url, place)| Named::new(url, place));
        Ok(Servers {
            named,
            topology: topology.transpose()?.map(Box::new),
        })
    }
}

impl Named {
    fn new(url: String, place: Place) -> Result<Self, SeedsError> {
        match url.parse::<ServerAddress>() {
            Ok(parsed) => Ok(Self {
                address: parsed.to_string(),
                parsed,
                url,
                place,
            }),
            Err(source) => Err(SeedsError::Url {
                url: redact::url(&url),
                place,
                source,
            }),
        }
    }
}

impl Servers {
    /// Their URLs, with credentials.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &String> {
        self.named.iter().map(|named| &named.url)
    }

    /// How many there are, without the topology's own.
    pub(crate) fn count(&self) -> usize {
        self.named.len()
    }

    /// A client of them, which founds no topology.
    pub(crate) fn client(&self) -> Builder {
        let client = Client::builder()
            .servers(self.urls())
            .existing_topology(true);
        match &self.topology {
            Some(named) => client.topology_at(&named.url),
            None => client,
        }
    }

    /// The server of the topology's record, if it is named.
    pub(crate) fn topology(&self) -> Option<ServerAddress> {
        let topology = self.topology.as_ref();
        topology.map(|named| named.parsed.clone())
    }

    /// How each is reached, by a process called `me`.
    pub(crate) fn options(&self, me: ClientId) -> Vec<ServerOptions> {
        let addresses = self.named.iter().map(|named| named.parsed.clone());
        let options = |address| ServerOptions::new(address, me, KeyPrefix::default());
        addresses.map(options).collect()
    }

    /// `text`, an error, with the place that names each server after its first mention.
    pub(crate) fn located(&self, text: &str) -> String {
        let mut located = text.to_owned();
        for Named { address, place, .. } in self.named.iter().chain(self.topology.as_deref()) {
            // Not database 15 for database 1.
            let whole =
                |end: usize| !located[end..].starts_with(|next: char| next.is_ascii_digit());
            let ends = located.match_indices(address.as_str());
            let mut ends = ends.map(|(start, _)| start + address.len());
            if let Some(end) = ends.find(|end| whole(*end)) {
                located.insert_str(end, &place.to_string());
            }
        }
        located
    }

    /// The command that founds a topology on them.
    pub(crate) fn init_command(&self) -> String {
        let mut command = "ringfence ring init".to_owned();
        match self.named.first().map(|named| &named.place) {
            Some(Place::File { path, .. }) => {
                command.push_str(&format!(" --redis-file {}", path.display()));
            }
            Some(Place::CommandLine) => {
                for Named { address, .. } in &self.named {
                    command.push_str(&format!(" --redis {address}"));
                }
            }
            Some(Place::Environment(_)) | None => {}
        }
        if let Some(Named {
            address,
            place: Place::CommandLine,
            ..
        }) = self.topology.as_deref()
        {
            command.push_str(&format!(" --topology {address}"));
        }
        command
    }
}

fn in_file(path: &PathBuf) -> Result<Vec<(String, Place)>, SeedsError> {
    let text = fs::read_to_string(path).map_err(|source| SeedsError::Unreadable {
        path: path.clone(),
        source,
    })?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let urls: Vec<_> = lines
        .filter(|(_, url)| !url.is_empty() && !url.starts_with('#'))
        .map(|(line, url)| {
            let path = path.clone();
            (url.to_owned(), Place::File { path, line })
        })
        .collect();
    if urls.is_empty() {
        Err(SeedsError::Empty(path.clone()))
    } else {
        Ok(urls)
    }
}

fn in_environment() -> Result<Vec<(String, Place)>, SeedsError> {
    let value = variable(VARIABLE)?;
    let urls = value.split_whitespace().flat_map(list);
    let urls: Vec<_> = urls
        .map(|url| (url, Place::Environment(VARIABLE)))
        .collect();
    if urls.is_empty() {
        Err(SeedsError::None)
    } else {
        Ok(urls)
    }
}

/// The value of a variable of the environment; empty if it is not set.
fn variable(name: &'static str) -> Result<String, SeedsError> {
    let value = env::var_os(name).unwrap_or_default();
    value.into_string().map_err(|_| SeedsError::NotText(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_each_server_is_named_once() {
        let named = |url: &str, line| {
            let path = PathBuf::from("servers");
            Named::new(url.to_owned(), Place::File { path, line }).unwrap()
        };
        let servers = Servers {
            named: vec![
                named("redis://a:1", 3),
                named("redis://u:s3cret@b", 5),
                named("redis://b/1", 6),
            ],
            topology: None,
        };
        assert_eq!(servers.located("redis://b:6379/15"), "redis://b:6379/15");
        assert_eq!(
            servers.located("redis://a:1/0 and redis://b:6379/0, not redis://a:1/0"),
            "redis://a:1/0 (servers, line 3) and redis://b:6379/0 (servers, line 5), not redis://a:1/0"
        );
    }
}
