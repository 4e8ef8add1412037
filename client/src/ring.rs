//! The ring's shape: who is a shard, with what weight; and how that is changed while locks are held.

use std::collections::BTreeMap;

use ringfence_coordinator::{
    engine::Engine,
    mover::{Mover, Pace, Progress, Resized},
    shard::{ShardError, redis::AddressError},
    topology::{Change, Founder, ResizeError, TopologyError, shard_id},
};
use ringfence_ring::{ShardId, Weight};
use tokio::sync::watch;

use crate::{Client, builder::Grounds};

/// The ring of a [`Client`], to be resized.
///
/// A resize goes on by itself as long as some process runs it, and stays where it is while none does: it is
/// in the topology, and nowhere else.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ringfence_client::{Client, NewShard, Reshape};
///
/// let client = Client::builder().embedded(3).build().await?;
/// let guard = client.lock("order/42").acquire().await?;
/// let resize = client.ring().reshape(Reshape::new().add_shard(NewShard::embedded())).await?;
/// let resized = resize.run().await?;
/// assert_eq!(resized.slots_moved, 16_384 / 4);
/// assert!(guard.is_held());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a>(pub(crate) &'a Client);

/// A shard that is to join.
#[derive(Clone, Debug)]
pub struct NewShard {
    url: Option<String>,
    id: Option<ShardId>,
    weight: Weight,
}

/// Shards that come and go, and weights that change, all at once.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing changes until the ring is reshaped"]
pub struct Reshape {
    add: Vec<NewShard>,
    remove: Vec<ShardId>,
    weigh: BTreeMap<ShardId, Weight>,
}

/// A resize under way, which this process may run.
#[derive(Debug)]
#[must_use = "nothing moves unless it is run"]
pub struct Resize {
    engine: Engine,
    mover: Mover,
}

/// Why a ring is not reshaped.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReshapeError {
    /// It is not possible, or not now: the message names what is in the way.
    #[error(transparent)]
    Refused(#[from] ResizeError),
    /// The URL of a new shard is not one.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A new shard cannot be reached, or cannot be used.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A new shard cannot be taken in.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Embedded shards and servers do not mix.
    #[error("new shard {0}: the ring has embedded shards alone, or servers alone")]
    OtherKind(String),
}

impl NewShard {
    /// One in this process, for a client on embedded shards.
    pub fn embedded() -> Self {
        Self {
            url: None,
            id: None,
            weight: Weight::ONE,
        }
    }

    /// A Redis server.
    pub fn redis(url: impl Into<String>) -> Self {
        Self {
            url: Some(url.into()),
            ..Self::embedded()
        }
    }

    /// What it is called: by the next free letter if not said.
    pub fn id(mut self, id: ShardId) -> Self {
        self.id = Some(id);
        self
    }

    /// Its part of the slots, beside the others': 1 if not said.
    pub fn weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }
}

impl Reshape {
    /// Nothing, yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A shard joins.
    pub fn add_shard(mut self, shard: NewShard) -> Self {
        self.add.push(shard);
        self
    }

    /// A shard leaves, when its last slot has.
    pub fn remove_shard(mut self, id: ShardId) -> Self {
        self.remove.push(id);
        self
    }

    /// A shard that stays gets another weight.
    pub fn weigh_shard(mut self, id: ShardId, weight: Weight) -> Self {
        self.weigh.insert(id, weight);
        self
    }
}

impl Ring<'_> {
    /// Begins a resize. Nothing moves before it is [run](Resize::run).
    ///
    /// # Errors
    ///
    /// [`ReshapeError`]; nothing is changed then, but that a server may have a pointer to this topology.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the resize begun: [`resume`](Self::resume) goes on with it.
    pub async fn reshape(&self, reshape: Reshape) -> Result<Resize, ReshapeError> {
        if let Some(goal) = &self.0.engine.refresh().await?.goal {
            // Before anything is asked of a server that is to join.
            let goal = goal.to_string();
            return Err(ResizeError::UnderWay { goal }.into());
        }
        let mut change = Change {
            add: Vec::new(),
            remove: reshape.remove,
            weigh: reshape.weigh,
        };
        for shard in reshape.add {
            let taken = change
                .add
                .iter()
                .map(|founder: &Founder| founder.id.clone());
            let founder = self.take_in(shard, taken.collect()).await?;
            change.add.push(founder);
        }
        self.0.engine.begin(change).await?;
        Ok(self.resume())
    }

    /// Turns the resize under way back; one that was turned back goes on after all. It is
    /// [run](Resize::run) as any other.
    ///
    /// # Errors
    ///
    /// [`ReshapeError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it turned back or not.
    pub async fn abort(&self) -> Result<Resize, ReshapeError> {
        self.0.engine.turn_back().await?;
        Ok(self.resume())
    }

    /// The resize under way, whoever began it. Where there is none, running it does nothing.
    pub fn resume(&self) -> Resize {
        let engine = self.0.engine.clone();
        Resize {
            mover: engine.mover(Pace::default()),
            engine,
        }
    }

    async fn take_in(&self, shard: NewShard, taken: Vec<ShardId>) -> Result<Founder, ReshapeError> {
        let topology = self.0.topology();
        let is_free = |id: &ShardId| topology.shard(id).is_none() && !taken.contains(id);
        let NewShard { url, id, weight } = shard;
        let id = id.or_else(|| (0..).map(shard_id).find(is_free));
        match (&self.0.grounds, url) {
            (Grounds::Embedded(shards), None) => {
                let id = id.expect("there are more names than shards");
                Ok(shards.make(id, weight).await?)
            }
            (Grounds::Redis(store), Some(url)) => {
                let address: String = url;
                let options = store.options(&address)?;
                Ok(store.take_in(options, id, weight).await?)
            }
            (_, url) => Err(ReshapeError::OtherKind(
                url.map_or_else(|| "embedded".into(), |_| "on a server".into()),
            )),
        }
    }
}

impl Resize {
    /// Goes at `pace`; [`Pace::default`] otherwise. [`progress`](Self::progress) begins anew.
    pub fn pace(self, pace: Pace) -> Self {
        Self {
            mover: self.engine.mover(pace),
            ..self
        }
    }

    /// How far it has come: the latest, whenever it is looked at.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.mover.progress()
    }

    /// Moves slots until the ring has its new shape; at once if it has.
    ///
    /// # Errors
    ///
    /// [`TopologyError`], of a kind that does not pass.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the resize as it is; any process may [resume](Ring::resume) it.
    pub async fn run(&self) -> Result<Resized, TopologyError> {
        let resized = self.mover.run().await?;
        self.engine.refresh().await?;
        Ok(resized)
    }
}
