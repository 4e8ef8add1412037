//! `ringfence ring init`: founds a topology.

use std::time::Duration;

use clap::Args;
use ringfence_client::{Constants, Removal, Token};
use ringfence_coordinator::{
    ids::ClientId,
    limits::EPOCH_MAX,
    random::Random,
    topology::{Namespaces, server::Founding},
};
use ringfence_ring::Zone;

use super::{
    ASK_WITHIN, RingError, check_zones, join,
    namespace::Declared,
    view::{Done, View},
};
use crate::seeds::Seeds;

#[derive(Args, Debug)]
pub(crate) struct Init {
    #[command(flatten)]
    seeds: Seeds,
    /// The maximum lease. A shard that restarts grants no new locks for this long
    #[arg(long, value_name = "LENGTH", default_value = "30s")]
    #[arg(value_parser = crate::length)]
    max_lease: Duration,
    /// Added to that recovery period. If clients can still reach a former primary after a failover:
    /// 3s, with min-replicas-to-write 1 and min-replicas-max-lag 1
    #[arg(long, value_name = "LENGTH", default_value = "0s")]
    #[arg(value_parser = crate::length)]
    replica_lag: Duration,
    /// How a dead shard is removed. supervised: a person attests that no client can reach it.
    /// leased: a client that cannot reach the topology's home sends nothing any more, and loses its
    /// locks
    #[arg(long, value_name = "HOW", default_value_t)]
    removal: Removal,
    /// With --removal leased: the time after which that happens [default: a sixth of --max-lease]
    #[arg(long, value_name = "LENGTH", value_parser = crate::length)]
    view_lease: Option<Duration>,
    /// The servers have never held a lock, so no recovery period is needed. If that is wrong, a
    /// lock can have two holders
    #[arg(long)]
    servers_are_new: bool,
    /// All tokens will be greater than TOKEN, the greatest that a resource has seen. For use after
    /// the loss of every server
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    after: Option<Token>,
    /// Each lock of this namespace gets N replicas, 1, 3 or 5, on as many shards, for good: a majority of
    /// them is the lock. Repeat it for further namespaces
    #[arg(long, value_name = "NAME=N")]
    namespace: Vec<Declared>,
    /// The zones of the servers, such as data centers, in their order: one for each server, or none.
    /// Repeat it, or separate zones by commas. A shard keeps its zone. The replicas of a lock are in
    /// distinct zones
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    zone: Vec<Zone>,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl Init {
    /// Founds the topology, then arms its shards, because only this command knows that they are new.
    pub(super) async fn found(&self) -> Result<View, RingError> {
        let servers = self.seeds.servers()?;
        let constants = Constants {
            max_lease_ms: millis(self.max_lease),
            replica_lag_ms: millis(self.replica_lag),
            removal: self.removal,
            view_lease_ms: self.view_lease.map(millis),
            ..Constants::default()
        };
        check_zones(&self.zone, servers.count())?;
        let mut namespaces = Namespaces::default();
        for Declared { name, replicas } in self.namespace.iter().cloned() {
            namespaces.declare(name, replicas)?;
        }
        let founding = Founding {
            after: self.after.map(Token::epoch).unwrap_or_default(),
            constants,
            zones: self.zone.clone(),
            namespaces,
            within: ASK_WITHIN,
            ..Founding::default()
        };
        for options in servers.options(ClientId(Random::from_os().id())) {
            options.prepare().await.map_err(RingError::Tables)?;
        }
        let joined = join(&servers, founding).await?;
        if let Some(token) = self.after
            && joined.topology.founded <= token.epoch()
        {
            return Err(RingError::TooLate(joined.topology.id.clone()));
        }
        let mut client = servers
            .client()
            .max_lease(self.max_lease)
            .replica_lag(self.replica_lag)
            .removal(self.removal);
        if let Some(length) = self.view_lease {
            client = client.view_lease(length);
        }
        let client = client.servers_are_new(self.servers_are_new).build().await?;
        let done = if joined.founded_now {
            Done::Founded
        } else {
            Done::ThereAlready
        };
        Ok(View::of(&client, done).await?)
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A token, as a resource wrote it down.
fn token(text: &str) -> Result<Token, String> {
    let number: u64 = text.parse().map_err(|_| "a token is a number".to_owned())?;
    let token = Token::from_number(number);
    // One more epoch is needed for each change to come.
    if token.epoch().0 + 1 >= EPOCH_MAX {
        return Err("a token is less than 2^63, and of an epoch that others can follow".to_owned());
    }
    Ok(token)
}
