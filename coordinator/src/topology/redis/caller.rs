//! Who asks servers for a topology, and by what means.

use std::{sync::Arc, time::Duration};

use super::{Observer, members::Members};
use crate::{
    clock::Clock,
    ids::{ClientId, Epoch, Incarnation},
    random::Random,
    topology::TopologyError,
};

/// Who asks servers for a topology, and by what means.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) engine: ClientId,
    pub(super) members: Arc<Members>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<Random>,
    /// How often a record is read again.
    pub(super) watch_every: Duration,
    pub(super) observer: Observer,
}

impl Caller {
    /// An incarnation of this caller's own, above everything that `seen` is the greatest of.
    pub(super) fn next_incarnation(&self, seen: Epoch) -> Result<Incarnation, TopologyError> {
        let number = Epoch::after(seen, self.clock.unix()).ok_or(TopologyError::NoEpochs)?;
        Ok(Incarnation {
            number: number.0,
            engine: self.engine,
        })
    }
}
