//! Namespaces whose locks have several replicas. Pure.

use std::{collections::BTreeMap, fmt, time::Duration};

use ringfence_ring::{Replicas, RingError, Slot, Table};
use ringfence_segment_lock::{Effect, impl_failure};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{Opening, ShardName, Topology, TopologyError};
use crate::{
    ids::{Epoch, MapVersion},
    limits::NAMESPACES_MAX,
    name::Namespace,
};

/// The number of replicas of each declared namespace. Locks of all others have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(BTreeMap<Namespace, Replicas>);

/// The reason why a namespace cannot be declared.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// Replicas are fixed for the life of a topology.
    #[error("namespace {name} has {declared} replicas, for good; asked for {replicas}")]
    Declared {
        /// The namespace.
        name: Namespace,
        /// Its replicas.
        declared: Replicas,
        /// The replicas asked for.
        replicas: Replicas,
    },
    /// Every process reads every declaration.
    #[error("namespaces is {0}, must be at most {NAMESPACES_MAX}")]
    TooMany(usize),
    /// One at a time: it is to be finished first, by declaring it again.
    #[error(
        "namespace {other} is being declared with {replicas} replicas: finish that, then declare namespace {name}"
    )]
    Another {
        /// The namespace.
        name: Namespace,
        /// The namespace that is being declared.
        other: Namespace,
        /// Its replicas.
        replicas: Replicas,
    },
    /// Slots migrate, or wait to be opened.
    #[error("a resize is under way: wait for it, then declare namespace {0}")]
    UnderWay(Namespace),
    /// There are fewer shards, or zones, than replicas.
    #[error("namespace {name}: {error}")]
    Ring {
        /// The namespace.
        name: Namespace,
        /// The error.
        error: RingError,
    },
    /// Every epoch has been allotted.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl DeclareError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnderWay(_) => true,
            Self::Topology(error) => error.is_retryable(),
            Self::Declared { .. } | Self::TooMany(_) | Self::Another { .. } | Self::Ring { .. } => {
                false
            }
        }
    }

    /// Whether the record may have been changed.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Topology(error) => error.effect(),
            Self::Declared { .. }
            | Self::TooMany(_)
            | Self::Another { .. }
            | Self::UnderWay(_)
            | Self::Ring { .. } => Effect::None,
        }
    }

    /// The topology does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl_failure!(DeclareError);

impl Namespaces {
    /// The replicas of each lock of `namespace`.
    pub fn replicas(&self, namespace: &Namespace) -> Replicas {
        self.0.get(namespace).copied().unwrap_or_default()
    }

    /// The replicas of each lock of the namespace called `name`.
    pub fn of_name(&self, name: &str) -> Replicas {
        let mut declared = self
            .0
            .iter()
            .filter(|(namespace, _)| namespace.as_str() == name);
        declared
            .next()
            .map_or_else(Replicas::default, |(_, replicas)| *replicas)
    }

    /// The declared namespaces, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Namespace, Replicas)> {
        self.0.iter().map(|(name, &replicas)| (name, replicas))
    }

    /// Whether none is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The greatest number of replicas.
    pub(super) fn most(&self) -> Replicas {
        self.0.values().copied().max().unwrap_or_default()
    }

    /// Declares `name`.
    ///
    /// # Errors
    ///
    /// [`DeclareError::Declared`]: with another number. [`DeclareError::TooMany`].
    pub fn declare(&mut self, name: Namespace, replicas: Replicas) -> Result<(), DeclareError> {
        if let Some(&declared) = self.0.get(&name) {
            return match declared == replicas {
                true => Ok(()),
                false => Err(DeclareError::Declared {
                    name,
                    declared,
                    replicas,
                }),
            };
        }
        if self.0.len() == NAMESPACES_MAX {
            return Err(DeclareError::TooMany(NAMESPACES_MAX + 1));
        }
        self.0.insert(name, replicas);
        Ok(())
    }
}

impl fmt::Display for Namespaces {
    /// `coins=3, ledger=5`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self
            .iter()
            .map(|(name, replicas)| format!("{name}={replicas}"));
        formatter.write_str(&all.collect::<Vec<_>>().join(", "))
    }
}

impl Serialize for Namespaces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter()
                .map(|(name, replicas)| (name.as_str(), replicas.get())),
        )
    }
}

impl<'de> Deserialize<'de> for Namespaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut namespaces = Self::default();
        for (name, replicas) in BTreeMap::<String, u32>::deserialize(deserializer)? {
            let name = Namespace::new(&name).map_err(D::Error::custom)?;
            let replicas = Replicas::new(replicas).map_err(D::Error::custom)?;
            namespaces
                .declare(name, replicas)
                .map_err(D::Error::custom)?;
        }
        Ok(namespaces)
    }
}

impl Topology {
    /// The record in which `namespace` is being declared to have `replicas` of each lock; `None` if it has them.
    ///
    /// Every shard's slots count as changed, and the shards have yet to [learn](crate::shard::Control::Declare) that
    /// views of before are outdated: then no lock of the namespace is acquired.
    ///
    /// # Errors
    ///
    /// [`DeclareError`]: names the namespace, the value and the limit.
    pub fn begin_declaration(
        &self,
        namespace: &Namespace,
        replicas: Replicas,
    ) -> Result<Option<Self>, DeclareError> {
        let mut all = self.namespaces.clone();
        all.declare(namespace.clone(), replicas)?;
        self.with_ranks_of(namespace, replicas)?;
        let mut declaring = Namespaces::default();
        declaring.declare(namespace.clone(), replicas)?;
        if all == self.namespaces {
            return Ok(None);
        }
        let mut others = self.declaring.iter();
        if let Some((other, replicas)) = others.find(|(other, _)| *other != namespace) {
            let (name, other) = (namespace.clone(), other.clone());
            return Err(DeclareError::Another {
                name,
                other,
                replicas,
            });
        }
        if self.is_under_way() {
            return Err(DeclareError::UnderWay(namespace.clone()));
        }
        let mut next = self.changed();
        next.declaring = declaring;
        next.declared = MapVersion(next.version);
        Ok(Some(next))
    }

    /// The record in which the namespace is declared whose declaration began with version `begun`; `None` if none is being
    /// declared. No lock of it may be held, and no slot may have moved since.
    ///
    /// Slots of ranks that no namespace had before go to shards, which have yet to open them.
    ///
    /// # Errors
    ///
    /// As [`begin_declaration`](Self::begin_declaration).
    pub fn finish_declaration(
        &self,
        begun: MapVersion,
        unix: Duration,
    ) -> Result<Option<Self>, DeclareError> {
        let Some((name, replicas)) = self.declaring.iter().next() else {
            return Ok(None);
        };
        let mut shards = self.shards.values();
        if self.declared != begun || shards.any(|entry| entry.changed > begun) {
            return Err(DeclareError::UnderWay(name.clone()));
        }
        let mut next = self.changed();
        next.declaring = Namespaces::default();
        next.namespaces.declare(name.clone(), replicas)?;
        if let Some(table) = self.with_ranks_of(name, replicas)? {
            next.table = table;
            next.last_epoch = self.next_epoch(unix)?;
            next.openings = next.first_openings(self.table.all_slots().len());
        }
        Ok(Some(next))
    }

    /// The record in which no namespace is being declared; `None` if none is. Its locks are acquired as before.
    pub fn undo_declaration(&self) -> Option<Self> {
        let mut next = self.changed();
        next.declaring = Namespaces::default();
        (self.declaring != next.declaring).then_some(next)
    }

    /// The next record, in which every shard's slots count as changed.
    fn changed(&self) -> Self {
        let mut next = self.clone();
        next.version += 1;
        for entry in next.shards.values_mut() {
            entry.changed = MapVersion(next.version);
        }
        next
    }

    /// The table with the ranks of `namespace`; `None` if it has them.
    fn with_ranks_of(
        &self,
        namespace: &Namespace,
        replicas: Replicas,
    ) -> Result<Option<Table>, DeclareError> {
        if replicas <= self.table.membership().replicas() {
            return Ok(None);
        }
        let refused = |error| DeclareError::Ring {
            name: namespace.clone(),
            error,
        };
        self.table.replicated(replicas).map(Some).map_err(refused)
    }

    /// Openings of all slots but the first `count`: no shard has had them.
    pub(super) fn first_openings(&self, count: usize) -> Vec<Opening> {
        let mut of_shard: BTreeMap<ShardName, Vec<Slot>> = BTreeMap::new();
        for slot in self.table.all_slots().skip(count) {
            let owner = ShardName(self.table.owner(slot).clone());
            of_shard.entry(owner).or_default().push(slot);
        }
        let epoch: Epoch = self.last_epoch;
        let opening = |(to, slots)| Opening {
            epoch,
            opens: Some(epoch),
            to,
            slots,
            first: true,
        };
        of_shard.into_iter().map(opening).collect()
    }
}
