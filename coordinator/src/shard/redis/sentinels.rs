//! Sentinels, which say at each new connection where the primary is.
//!
//! A failover is a restart: the promoted server has another life. The handshake refuses a server that is not a primary,
//! and a promoted replica that lacks the last writes costs a recovery period, and no lock. So an outdated answer is
//! harmless. The answer of most Sentinels is taken.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{AsyncConnectionConfig, ErrorKind, RedisError, RedisResult};
use tokio::time::timeout;

use super::address::Address;

/// Longest wait for one Sentinel.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

/// The port of a Sentinel, if the URL names none.
const PORT: u16 = 26379;

/// The Sentinels of one primary.
#[derive(Clone)]
pub(super) struct Sentinels {
    pub(super) each: Vec<Address>,
    /// Their name of the primary.
    pub(super) name: String,
}

/// A server's host and port.
type Place = (String, u16);

impl Sentinels {
    /// Where the primary is: the answer of a majority of the Sentinels, or of most that answer in time.
    pub(super) async fn primary(&self) -> RedisResult<Place> {
        let asked = self.each.iter().map(|sentinel| async move {
            let answer = timeout(ANSWER_WITHIN, self.ask(sentinel)).await;
            let late = RedisError::from((ErrorKind::Io, "no answer in time"));
            (sentinel, answer.unwrap_or(Err(late)))
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let majority = self.each.len() / 2 + 1;
        let mut named: BTreeMap<Place, usize> = BTreeMap::new();
        let (mut unknown, mut silent) = (false, Vec::new());
        while let Some((sentinel, answer)) = asked.next().await {
            match answer {
                Ok(Some(place)) => {
                    let count = named.entry(place.clone()).or_default();
                    *count += 1;
                    if *count == majority {
                        return Ok(place);
                    }
                }
                Ok(None) => unknown = true,
                Err(error) => silent.push(format!("{sentinel}: {error}")),
            }
        }
        let most = named.into_iter().max_by_key(|(_, count)| *count);
        match most {
            Some((place, _)) => Ok(place),
            None if unknown => Err((
                ErrorKind::InvalidClientConfig,
                "no Sentinel knows this name (SENTINEL MASTERS lists the names)",
                self.name.clone(),
            )
                .into()),
            None => Err((ErrorKind::Io, "no Sentinel answers", silent.join("; ")).into()),
        }
    }

    /// Where the primary is, by one Sentinel; `None` if it does not know the name.
    async fn ask(&self, sentinel: &Address) -> RedisResult<Option<Place>> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
        let (mut connection, pump) = sentinel.open(config).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        tokio::select! {
            biased;
            answer = command.query_async(&mut connection) => answer,
            () = pump => Err((ErrorKind::Io, "the connection was closed").into()),
        }
    }
}

/// The parts of a URL of Sentinels, as URLs of one server.
pub(super) struct Parts {
    pub(super) each: Vec<String>,
    /// Of a host that is not used.
    pub(super) primary: String,
    pub(super) name: String,
}

impl Parts {
    /// Splits `[login@]host[:port],…/name[/db][?parameters]`. `scheme`: of the servers.
    pub(super) fn of(scheme: &str, rest: &str) -> Result<Self, &'static str> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = rest
            .split_once('/')
            .ok_or("the name of the primary is missing: write …:26379/name")?;
        let (login, hosts) = match hosts.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), hosts),
        };
        let (name, db) = path.split_once('/').unwrap_or((path, ""));
        // A Sentinel takes no others.
        let is_taken = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        if name.is_empty() || !name.chars().all(is_taken) {
            return Err("the name of the primary must be of letters, digits and .-_");
        }
        let (mut user, mut password, mut files) = ("", "", String::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sentinel_user", value)) => user = value,
                Some(("sentinel_pass", value)) => password = value,
                _ => {
                    files.push(if files.is_empty() { '?' } else { '&' });
                    files.push_str(parameter);
                }
            }
        }
        let theirs = match (user, password) {
            ("", "") => String::new(),
            _ => format!("{user}:{password}@"),
        };
        let url = |host: &str| {
            let has_port = !host.ends_with(']') && host.contains(':');
            let port = match has_port {
                true => String::new(),
                false => format!(":{PORT}"),
            };
            format!("{scheme}://{theirs}{host}{port}{files}")
        };
        Ok(Self {
            each: hosts.split(',').map(url).collect(),
            primary: format!("{scheme}://{login}primary/{db}{files}"),
            name: name.to_owned(),
        })
    }
}
