//! `ringfence ring namespace add | list`: namespaces and the number of replicas of their locks.

use std::{collections::BTreeMap, fmt, str::FromStr};

use clap::{Args, Subcommand};
use ringfence_client::Topology;
use ringfence_coordinator::{name::Namespace, topology::Namespaces};
use ringfence_ring::Replicas;
use serde::Serialize;

use super::{RingError, existing_only, join, print, run::MoveOptions};
use crate::{seeds::Seeds, table::Table};

/// Namespaces, and the number of replicas of their locks
///
/// Locks in a namespace that is not declared have one replica.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Add(Box<Add>),
    List(List),
}

/// Give each lock of a namespace several replicas, for good
///
/// The ring stays in use meanwhile. No lock of the namespace is granted for some seconds, and the command fails if one
/// is held. If it is interrupted, none is granted until it is run again. The replicas lie on
/// distinct shards, in distinct zones if shards have zones.
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
    /// The one that is being declared: none of its locks is granted meanwhile.
    declaring: BTreeMap<String, u32>,
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
        let declared = self
            .how
            .mover(store.clone(), false)
            .declare(name, *replicas)
            .await;
        declared?;
        self.how.move_slots(store, false, None).await
    }
}

impl List {
    async fn run(&self) -> Result<(), RingError> {
        let joined = join(&self.seeds.servers()?, existing_only()).await?;
        print(&Listed::of(&joined.topology), self.json)
    }
}

impl Listed {
    fn of(topology: &Topology) -> Self {
        let shown = |namespaces: &Namespaces| {
            let namespaces = namespaces.iter();
            namespaces
                .map(|(name, replicas)| (name.to_string(), replicas.get()))
                .collect()
        };
        Self {
            namespaces: shown(&topology.namespaces),
            declaring: shown(&topology.declaring),
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespaces.is_empty() {
            true => writeln!(out, "no namespace is declared: every lock has one replica")?,
            false => {
                let mut table = Table::new(&["namespace", "replicas"]);
                for (name, replicas) in &self.namespaces {
                    table.row([name.clone(), replicas.to_string()]);
                }
                write!(out, "{table}")?;
            }
        }
        for (name, replicas) in &self.declaring {
            writeln!(
                out,
                "\nbeing declared, and none of its locks is granted: {name}={replicas} (run ring namespace add again if it was interrupted)"
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
