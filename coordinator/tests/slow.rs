//! A shard by a way that takes long, and clocks that stand still.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_coordinator::{
    clock::{BootClock, Clock, Instant},
    shard::Shard,
};
use ringfence_test_support::Relay;

/// The way of a fixture to its shard, once a test slows it down.
#[derive(Default)]
pub(crate) struct Slow(OnceLock<(Arc<dyn Shard>, Relay)>);

impl Slow {
    /// The shard by that way; `direct` until then.
    pub(crate) fn or(&self, direct: Arc<dyn Shard>) -> Arc<dyn Shard> {
        self.0.get().map_or(direct, |(shard, _)| shard.clone())
    }

    /// From now on the way leads through a relay to `port`, at whose own port is the shard that `at` makes.
    pub(crate) async fn down(&self, port: u16, at: impl FnOnce(u16) -> Arc<dyn Shard> + Send) {
        self.down_by(Relay::to(port).await, at);
    }

    /// The same through `relay`.
    pub(crate) fn down_by(&self, relay: Relay, at: impl FnOnce(u16) -> Arc<dyn Shard>) {
        let slow = (at(relay.port()), relay);
        assert!(self.0.set(slow).is_ok(), "slow already");
    }
}

/// A process's clock that stands still.
#[derive(Debug)]
pub(crate) struct StoppedClock(Instant);

impl Default for StoppedClock {
    fn default() -> Self {
        Self(BootClock.now())
    }
}

impl Clock for StoppedClock {
    fn now(&self) -> Instant {
        self.0
    }

    fn unix(&self) -> Duration {
        BootClock.unix()
    }
}

/// The clock of a machine, which all of its processes read. It moves when a test moves it.
#[derive(Debug)]
pub(crate) struct MachineClock {
    name: Arc<str>,
    nanos: AtomicU64,
}

impl MachineClock {
    /// That of a machine that booted so long ago.
    pub(crate) fn up_for(name: &str, length: Duration) -> Arc<Self> {
        let clock = Self {
            name: name.into(),
            nanos: AtomicU64::new(0),
        };
        clock.advance(length);
        Arc::new(clock)
    }

    pub(crate) fn advance(&self, length: Duration) {
        self.nanos.fetch_add(length.as_nanos() as u64, Relaxed);
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Relaxed))
    }

    fn unix(&self) -> Duration {
        BootClock.unix()
    }

    fn shared(&self) -> Option<Arc<str>> {
        Some(self.name.clone())
    }
}
