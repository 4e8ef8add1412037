//! A change, as the command line describes it.

use std::{collections::BTreeSet, str::FromStr};

use ringfence_client::{BootClock, Clock as _, ShardId, Topology, Weight};
use ringfence_coordinator::{
    ids::Life,
    shard::ServerAddress,
    topology::{Change, Founder, ResizeError, server::ServerTopology, shard_id},
};
use ringfence_ring::Zone;

use super::RingError;
use crate::arguments::list;

/// Shards to add, to remove, and to weigh.
#[derive(Debug, Default)]
pub(super) struct RequestedChange {
    pub(super) add: Vec<Newcomer>,
    pub(super) remove: Vec<ShardId>,
    pub(super) weigh: Vec<Weighed>,
}

/// Servers to add as shards, separated by commas.
#[derive(Clone, Debug)]
pub(super) struct Newcomers(pub(super) Vec<Newcomer>);

/// A server to add as a shard: `URL[=WEIGHT]`, and its zone.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    pub(super) address: ServerAddress,
    pub(super) weight: Weight,
    /// `None`: the next free letter.
    pub(super) id: Option<ShardId>,
    pub(super) zone: Option<Zone>,
}

/// A shard and its new weight: `ID=WEIGHT`.
#[derive(Clone, Debug)]
pub(super) struct Weighed {
    id: ShardId,
    weight: Weight,
}

impl RequestedChange {
    /// The topology after this change of `topology`. New servers are not asked.
    pub(super) fn rehearsed(&self, topology: &Topology) -> Result<Topology, ResizeError> {
        let founder = |(index, (newcomer, id)): (usize, (&Newcomer, ShardId))| Founder {
            id,
            address: newcomer.address.to_string(),
            // A life that no server has, nor any other new shard.
            life: Life::new(format!("newcomer {index}")),
            weight: newcomer.weight,
            zone: newcomer.zone.clone(),
        };
        let newcomers = self.add.iter().zip(self.ids(topology)).enumerate();
        topology.begin(self.change(newcomers.map(founder)), BootClock.unix())
    }

    /// Checks that no shard has counters if a new one keeps none.
    pub(super) async fn check_counters(&self, store: &ServerTopology) -> Result<(), RingError> {
        let addresses = self.add.iter().map(|newcomer| newcomer.address.as_str());
        let checked = store.check_counters(addresses).await;
        checked.map_err(RingError::Newcomer)
    }

    /// The change to begin, after the new servers were taken in as `founders`.
    pub(super) fn change(&self, founders: impl IntoIterator<Item = Founder>) -> Change {
        let weigh = self.weigh.iter().cloned();
        Change {
            add: founders.into_iter().collect(),
            remove: self.remove.clone(),
            weigh: weigh.map(|weighed| (weighed.id, weighed.weight)).collect(),
        }
    }

    /// The ids of the new shards.
    pub(super) fn ids(&self, topology: &Topology) -> Vec<ShardId> {
        let members = topology.shards.keys().map(|name| name.0.clone());
        let chosen = self.add.iter().filter_map(|newcomer| newcomer.id.clone());
        let taken: BTreeSet<ShardId> = members.chain(chosen).collect();
        let mut free = (0..).map(shard_id).filter(|id| !taken.contains(id));
        let own = self.add.iter().map(|newcomer| newcomer.id.clone());
        own.map(|id| id.unwrap_or_else(|| free.next().expect("there is always another")))
            .collect()
    }
}

impl FromStr for Newcomers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let servers = list(text);
        let servers = servers.iter().map(|server| server.parse());
        servers.collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Newcomer {
    type Err = String;

    /// A suffix of `=` and a number is a weight: the parameters of a URL of Redis are file names. One of PostgreSQL
    /// or MariaDB with parameters has the weight 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_parameter = |url: &str| !url.starts_with("redis") && url.contains('?');
        let number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        let (url, weight) = match text.rsplit_once('=') {
            Some((url, digits)) if number(digits) && !is_parameter(url) => (url, weight(digits)?),
            _ => (text, Weight::ONE),
        };
        let address = url
            .parse::<ServerAddress>()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            address,
            weight,
            id: None,
            zone: None,
        })
    }
}

impl FromStr for Weighed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, digits) = text.split_once('=').ok_or("must be ID=WEIGHT")?;
        let id = ShardId::new(id).map_err(|error| error.to_string())?;
        let weight = weight(digits)?;
        Ok(Self { id, weight })
    }
}

fn weight(digits: &str) -> Result<Weight, String> {
    let number: u32 = digits
        .parse()
        .map_err(|_| format!("weight is {digits:?}, must be a number, 1 to 10000"))?;
    Weight::new(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_end_is_a_weight() {
        for (text, address, weight) in [
            ("redis://h", "redis://h:6379/0", 1),
            ("redis://h=3", "redis://h:6379/0", 3),
            ("redis://h:1/2=10000", "redis://h:1/2", 10_000),
            ("redis://u:p=a@h:1", "redis://h:1/0", 1),
            ("postgres://u@h/locks=2", "postgres://h:5432/locks", 2),
            (
                "postgres://u@h/a?connect_timeout=2",
                "postgres://h:5432/a",
                1,
            ),
        ] {
            let newcomer: Newcomer = text.parse().unwrap();
            assert_eq!(newcomer.address.to_string(), address);
            assert_eq!(newcomer.weight.get(), weight, "{text}");
        }
    }

    #[test]
    fn refusals_give_a_reason() {
        let newcomer = |text: &str| text.parse::<Newcomer>().unwrap_err();
        let weighed = |text: &str| text.parse::<Weighed>().unwrap_err();
        assert_eq!(newcomer("redis://h=0"), "weight is 0, must be 1 to 10000");
        assert!(newcomer("http://u:s3cret@h").starts_with("an address begins with redis://"));
        assert!(newcomer("redis://u:s3cret@:1").starts_with("redis address: "));
        assert_eq!(weighed("a=10001"), "weight is 10001, must be 1 to 10000");
        assert_eq!(
            weighed("a=-1"),
            "weight is \"-1\", must be a number, 1 to 10000"
        );
        assert_eq!(weighed("a"), "must be ID=WEIGHT");
        assert!(weighed("A=1").contains("shard id \"A\" must be"));
    }
}
