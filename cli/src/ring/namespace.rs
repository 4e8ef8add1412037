//! `ringfence ring namespace add | list`: namespaces and the number of replicas of their locks.

use std::{collections::BTreeMap, fmt, str::FromStr};

use clap::{Args, Subcommand};
use ringfence_client::{BootClock, Clock as _, LocksPage, Topology};
use ringfence_coordinator::{name::Namespace, topology::TopologyStore as _};
use ringfence_ring::Replicas;
use serde::Serialize;

use super::{
    RingError, existing, existing_only, join, print,
    run::{MoveOptions, swapped},
};
use crate::{seeds::Seeds, table::Table};

/// Namespaces, and the number of replicas of their locks
///
/// Locks in a namespace that is not declared have one replica.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Add(Box<Add>),
    List(List),
}

/// Give each lock of an unused namespace several replicas, for good
///
/// Refused while a lock of the namespace is held; do not use the namespace meanwhile. The
/// replicas lie on distinct shards, in distinct zones if shards have zones. Preparation only: from then
/// on, this release refuses every lock in the namespace if it has 3 or 5 replicas. Declare namespaces
/// with ring init to use them.
#[derive(Args, Debug)]
pub(crate) struct Add {
    /// The namespace, and the number of replicas: 1, 3 or 5
    #[arg(value_name = "NAME=N")]
    declared: Declared,
    #[command(flatten)]
    how: MoveOptions,
}

/// Show the declared namespaces
#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A namespace and the replicas of its locks: `NAME=N`.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) name: Namespace,
    pub(super) replicas: Replicas,
}

/// The declared namespaces, by name.
#[derive(Debug, Serialize)]
struct Listed {
    namespaces: BTreeMap<String, u32>,
    /// Those whose locks are refused: they were added after the founding.
    refused: Vec<String>,
}

impl Command {
    pub(super) async fn run(&self) -> Result<(), RingError> {
        match self {
            Self::Add(add) => add.run().await,
            Self::List(list) => list.run().await,
        }
    }
}

impl Add {
    /// Declares the namespace, then has the shards open the slots of its replicas.
    async fn run(&self) -> Result<(), RingError> {
        let Declared { name, replicas } = &self.declared;
        let store = self.how.store().await?;
        loop {
            let topology = store.load().await?;
            let unix = BootClock.unix();
            let Some(next) = topology.declare(name.clone(), *replicas, unix)? else {
                break;
            };
            check_unused(self.how.seeds(), name).await?;
            if swapped(&store, &topology, &next).await? {
                break;
            }
        }
        self.how.move_slots(store, false, None).await
    }
}

impl List {
    async fn run(&self) -> Result<(), RingError> {
        let joined = join(&self.seeds.servers()?, existing_only()).await?;
        print(&Listed::of(&joined.topology), self.json)
    }
}

/// Refuses a namespace with a lock that is held.
async fn check_unused(seeds: &Seeds, name: &Namespace) -> Result<(), RingError> {
    let client = existing(seeds).await?;
    let locks = client.locks(Some(name.as_str()));
    let mut locks = locks.expect("the name of a namespace");
    let mut unused = Ok(());
    while let Some(LocksPage { shard, locks }) = locks.next().await {
        let name = name.clone();
        match locks {
            Ok(locks) if locks.is_empty() => {}
            Ok(_) => unused = Err(RingError::InUse { name, shard }),
            Err(error) => unused = Err(RingError::UseUnknown { name, shard, error }),
        }
    }
    client.close().await;
    unused
}

impl Listed {
    fn of(topology: &Topology) -> Self {
        let namespaces = topology.namespaces.iter();
        let added = topology.added.iter();
        let refused = added.filter(|(_, replicas)| *replicas > Replicas::One);
        Self {
            refused: refused.map(|(name, _)| name.to_string()).collect(),
            namespaces: namespaces
                .map(|(name, replicas)| (name.to_string(), replicas.get()))
                .collect(),
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespaces.is_empty() {
            return writeln!(out, "no namespace is declared: every lock has one replica");
        }
        let mut table = Table::new(&["namespace", "replicas"]);
        for (name, replicas) in &self.namespaces {
            table.row([name.clone(), replicas.to_string()]);
        }
        write!(out, "{table}")?;
        if !self.refused.is_empty() {
            writeln!(
                out,
                "\nadded after the founding, so that this release refuses their locks: {}",
                self.refused.join(", ")
            )?;
        }
        Ok(())
    }
}

impl FromStr for Declared {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once('=').ok_or("must be NAME=N")?;
        let name = Namespace::new(name).map_err(|error| error.to_string())?;
        let replicas = number
            .parse()
            .map_err(|_| format!("replicas is {number:?}, must be 1, 3 or 5"))?;
        let replicas = Replicas::new(replicas).map_err(|error| error.to_string())?;
        Ok(Self { name, replicas })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_value_and_the_limit() {
        let refused = |text: &str| text.parse::<Declared>().unwrap_err();
        assert_eq!(refused("ledger"), "must be NAME=N");
        assert_eq!(refused("ledger=2"), "replicas is 2, must be 1, 3 or 5");
        assert_eq!(
            refused("ledger=-1"),
            "replicas is \"-1\", must be 1, 3 or 5"
        );
        assert!(refused("Ledger=3").starts_with("namespace \"Ledger\": 1 to 64 of a-z"));
        let Declared { name, replicas } = "ledger=5".parse().unwrap();
        assert_eq!((name.as_str(), replicas), ("ledger", Replicas::Five));
    }
}
