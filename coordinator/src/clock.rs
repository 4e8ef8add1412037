//! The one source of time.
//!
//! Deadlines count on a clock that runs while the machine is suspended. Timers may not run then;
//! they only wake tasks, which look at the clock.

use std::{
    fmt, fs,
    ops::{Add, Sub},
    sync::{Arc, LazyLock},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

/// A timer sleeps at most this long before the clock is checked again, so that after a suspend no
/// holder believes in its lease for longer.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A point on the engine's clock: nanoseconds since the clock's own origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The point `nanos` after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    /// The clock's origin, if `length` goes back beyond it.
    fn sub(self, length: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// A source of time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now, on a clock that never goes back and runs during a suspend.
    fn now(&self) -> Instant;

    /// Wall time since 1970. Used only for numbers with an arbitrary start: it may jump.
    fn unix(&self) -> Duration;

    /// The name of the clock that [`now`](Self::now) reads, if other processes read the same one: an instant that one of
    /// them saw means the same to all of them.
    fn shared(&self) -> Option<Arc<str>> {
        None
    }
}

/// An instant on a clock that several processes read.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The clock's name.
    pub clock: Arc<str>,
    /// The instant.
    pub at: Instant,
}

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
impl Moment {
    /// Now, if other processes read `clock`.
    pub(crate) fn now(clock: &dyn Clock) -> Option<Self> {
        let at = clock.now();
        clock.shared().map(|clock| Self { clock, at })
    }
}

/// `CLOCK_BOOTTIME`, on macOS `CLOCK_MONOTONIC`: runs while the machine is suspended.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

#[cfg(not(target_os = "macos"))]
const SINCE_BOOT: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(target_os = "macos")]
const SINCE_BOOT: ClockId = ClockId::CLOCK_MONOTONIC;

/// The machine's boot, and the namespace of time, which shifts the clock. Kernels without such a namespace (before 5.6) have
/// no link.
static BOOT: LazyLock<Option<Arc<str>>> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(format!("{} {}", boot.trim_end(), namespace.display()).into())
});

impl Clock for BootClock {
    fn now(&self) -> Instant {
        let time = clock_gettime(SINCE_BOOT).expect("Linux has had it since 2.6.39");
        Instant::default() + Duration::from(time)
    }

    fn unix(&self) -> Duration {
        let time = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Unix has it");
        Duration::from(time)
    }

    fn shared(&self) -> Option<Arc<str>> {
        BOOT.clone()
    }
}

/// Tokio's clock, which a paused runtime moves by itself: for simulation.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: tokio::time::Instant,
    unix_at_origin: Duration,
}

impl TokioClock {
    /// A clock that starts now, with the wall time `unix` after 1970.
    pub fn starting_at(unix: Duration) -> Self {
        Self {
            origin: tokio::time::Instant::now(),
            unix_at_origin: unix,
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        Instant::default() + self.origin.elapsed()
    }

    fn unix(&self) -> Duration {
        self.unix_at_origin + self.origin.elapsed()
    }
}

/// Waits until `clock` shows `until`.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
pub async fn sleep_until(clock: &dyn Clock, until: Instant) {
    loop {
        let left = until.since(clock.now());
        if left.is_zero() {
            return;
        }
        sleep(left.min(SLEEP_MAX)).await;
    }
}
