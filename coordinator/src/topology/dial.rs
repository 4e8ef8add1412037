//! From an entry of the topology to its shard.

use std::{fmt, sync::Arc};

use ringfence_ring::ShardId;

use super::ShardEntry;
use crate::shard::{Shard, ShardError};

/// Creates the shard that a topology's entry names.
pub trait Dial: fmt::Debug + Send + Sync + 'static {
    /// The shard. Opens no connection yet.
    ///
    /// # Errors
    ///
    /// This engine cannot reach the entry's address.
    fn dial(&self, id: &ShardId, entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError>;
}
