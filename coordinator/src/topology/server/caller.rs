//! The caller's identity and means for requests about a topology.

use std::{sync::Arc, time::Duration};

use super::{Observer, members::Members};
use crate::{
    clock::Clock,
    ids::{ClientId, Epoch, Incarnation},
    random::Random,
    topology::TopologyError,
};

/// The caller's identity and means for requests about a topology.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) engine: ClientId,
    pub(super) members: Arc<Members>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<Random>,
    /// How often a watcher reads a record again.
    pub(super) watch_every: Duration,
    pub(super) observer: Observer,
}

impl Caller {
    /// A new incarnation of this caller, above everything of which `seen` is the greatest.
    pub(super) fn next_incarnation(&self, seen: Epoch) -> Result<Incarnation, TopologyError> {
        let number = Epoch::after(seen, self.clock.unix()).ok_or(TopologyError::NoEpochs)?;
        Ok(Incarnation {
            number: number.0,
            engine: self.engine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::BootClock, shard::redis::RedisOptions};

    #[test]
    fn no_two_engines_choose_one_incarnation() {
        let caller = |engine| Caller {
            engine: ClientId(engine),
            members: Arc::new(Members::new(
                vec![
                    RedisOptions::new(
                        "redis://127.0.0.1:1".parse().expect("an address"),
                        ClientId(engine),
                    )
                    .into(),
                ],
                ClientId(engine),
                Arc::new(Random::seeded(1)),
            )),
            clock: Arc::new(BootClock),
            random: Arc::new(Random::seeded(1)),
            watch_every: Duration::ZERO,
            observer: Observer::default(),
        };
        let far = Epoch(1 << 27);
        let chosen = [1, 2].map(|engine| caller(engine).next_incarnation(far).expect("epochs"));
        assert_ne!(chosen[0], chosen[1]);
        assert_eq!(chosen.map(|n| n.number), [far.0 + 1; 2]);
    }
}
