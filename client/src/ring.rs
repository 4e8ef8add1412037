//! The ring's shape: the shards and their weights, and how to change them while locks are held.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::BoxFuture;
use ringfence_coordinator::{
    engine::Engine,
    mover::{Mover, Pace, Progress, Resized},
    shard::{Effect, ServerAddressError, ShardError},
    topology::{Change, Founder, ResizeError, TopologyError, shard_id},
};
use ringfence_ring::{ShardId, Weight};
use ringfence_segment_lock::Failure;
use tokio::sync::watch;

use crate::{Client, builder::Grounds};

/// The ring of a [`Client`], to be resized.
///
/// A resize progresses as long as some process runs it, and pauses while none does. Its state is in
/// the topology, and nowhere else.
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

/// A shard that will join.
#[derive(Clone, Debug)]
pub struct NewShard {
    url: Option<String>,
    id: Option<ShardId>,
    weight: Weight,
}

/// A set of changes: shards that join, shards that leave, and new weights, all at once.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing changes until the ring is reshaped"]
pub struct Reshape {
    add: Vec<NewShard>,
    remove: Vec<ShardId>,
    weigh: BTreeMap<ShardId, Weight>,
}

/// A resize under way, which this process can run.
#[derive(Debug)]
#[must_use = "nothing moves unless it is run"]
pub struct Resize {
    engine: Engine,
    mover: Mover,
}

/// The reason why a ring is not reshaped.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReshapeError {
    /// The change is impossible, or impossible now: the message names the obstacle.
    #[error(transparent)]
    Refused(#[from] ResizeError),
    /// The URL of a new shard is invalid.
    #[error(transparent)]
    Address(#[from] ServerAddressError),
    /// A new shard cannot be reached or used.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A new shard cannot join the topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Embedded shards and servers do not mix.
    #[error("new shard {0}: a ring has either embedded shards or servers")]
    OtherKind(String),
}

impl ReshapeError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        self.failure().is_some_and(Failure::is_retryable)
    }

    /// Whether the resize may have begun all the same.
    pub fn effect(&self) -> Effect {
        self.failure().map_or(Effect::None, Failure::effect)
    }

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.failure().and_then(Failure::retry_after)
    }

    /// The error with its consequences; none if the change was refused at once.
    fn failure(&self) -> Option<&dyn Failure> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Shard(error) => Some(error),
            Self::Topology(error) => Some(error),
            Self::Address(_) | Self::OtherKind(_) => None,
        }
    }
}

impl NewShard {
    /// A shard in this process, for a client on embedded shards.
    pub fn embedded() -> Self {
        Self {
            url: None,
            id: None,
            weight: Weight::ONE,
        }
    }

    /// A Redis server.
    pub fn redis(url: impl Into<String>) -> Self {
        Self::server(url)
    }

    /// A server of any kind, as in [`Builder::servers`](crate::Builder::servers). One of PostgreSQL needs its tables
    /// first, and is refused while a shard has counters.
    pub fn server(url: impl Into<String>) -> Self {
        Self {
            url: Some(url.into()),
            ..Self::embedded()
        }
    }

    /// Sets the shard's name. Default: the next free letter.
    pub fn id(mut self, id: ShardId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the shard's weight, relative to the other shards. Default: 1.
    pub fn weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }
}

impl Reshape {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a shard.
    pub fn add_shard(mut self, shard: NewShard) -> Self {
        self.add.push(shard);
        self
    }

    /// Removes a shard, once its last slot has moved away.
    pub fn remove_shard(mut self, id: ShardId) -> Self {
        self.remove.push(id);
        self
    }

    /// Gives a remaining shard another weight.
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
    /// [`ReshapeError`]; then nothing has changed, except that a server may have a pointer to this
    /// topology.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the resize begun: [`resume`](Self::resume) continues it.
    pub fn reshape(&self, reshape: Reshape) -> BoxFuture<'_, Result<Resize, ReshapeError>> {
        Box::pin(async move {
            if let Some(goal) = &self.0.engine.refresh().await?.goal {
                // Checked before the first request to a server that will join.
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
        })
    }

    /// Turns the resize under way back; turning back twice continues it. The result is
    /// [run](Resize::run) like any other.
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

    /// The resize under way, begun by any process. If there is none, running it does nothing.
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
            (Grounds::Servers(store), Some(url)) => {
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
    /// Sets the pace; default: [`Pace::default`]. [`progress`](Self::progress) begins anew.
    pub fn pace(self, pace: Pace) -> Self {
        Self {
            mover: self.engine.mover(pace),
            ..self
        }
    }

    /// The progress. The receiver always has the latest state.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.mover.progress()
    }

    /// Moves slots until the ring has its new shape; returns at once if it has.
    ///
    /// # Errors
    ///
    /// [`TopologyError`], of a kind that does not pass by itself.
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
