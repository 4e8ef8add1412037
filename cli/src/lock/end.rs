//! When the command has to be gone.

use std::time::Duration;

use nix::sys::{signal::Signal, wait::WaitStatus};
use ringfence_client::{BootClock, Clock, Instant, MultiGuard};

use super::Group;

/// SIGKILL comes this part of the danger, which is a third of the lease, before the deadline, ...
const BEFORE_DEADLINE: (u32, u32) = (3, 10);
/// ... which is time enough for a process to be gone, and no more than that.
const BEFORE_DEADLINE_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(1));

/// The time between two checks of the remaining lease: this part of the danger.
const LOOK: (u32, u32) = (3, 8);

/// The time at which a group is killed, put off by every renewal of the lock it works under. The
/// group's guardian is told, and keeps to it even if this process is stopped.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) group: Group,
    pub(super) guard: &'a MultiGuard,
    /// A while before the last deadline that was looked at.
    pub(super) at: Instant,
}

impl<'a> End<'a> {
    pub(super) fn new(group: Group, guard: &'a MultiGuard) -> Self {
        Self {
            group,
            guard,
            at: Instant::default(),
        }
    }

    /// The time of the next check of the remaining lease.
    pub(super) fn next_look(&self) -> Instant {
        let look = part(self.danger(), LOOK);
        self.guard.danger_at().min(BootClock.now() + look)
    }

    /// Whether so little of the lease is left that the command is to end by itself; or the guardian
    /// has ended it, as this process was stopped, and no renewal since then can help.
    ///
    /// [`MultiGuard::danger`] would tell of the first renewal that failed: it is tried again, and a
    /// shard that restarts costs one.
    pub(super) fn is_near(&self) -> bool {
        let now = BootClock.now();
        now >= self.guard.danger_at() || now >= self.at || !self.guard.is_held()
    }

    /// Moves the end to the present deadline.
    pub(super) fn put_off(&mut self) {
        let (least, most) = BEFORE_DEADLINE_BOUNDS;
        let before = part(self.danger(), BEFORE_DEADLINE).clamp(least, most);
        self.set(self.guard.deadline() - before);
    }

    /// How long the danger lasts until the deadline.
    fn danger(&self) -> Duration {
        let begins = self.guard.danger_at();
        self.guard.deadline().since(begins)
    }

    /// Moves the end to `within` from now, if that is earlier.
    pub(super) fn bring_forward(&mut self, within: Duration) {
        self.set(self.at.min(BootClock.now() + within));
    }

    fn set(&mut self, at: Instant) {
        if at != self.at {
            self.at = at;
            self.group.kill_at(at);
        }
    }

    /// Whether the lock was lost, or the guardian killed the command while this process was
    /// stopped, by the time that the command had `ended`.
    pub(super) fn came(&self, ended: WaitStatus) -> bool {
        let killed = matches!(ended, WaitStatus::Signaled(_, Signal::SIGKILL, _));
        !self.guard.is_held() || (killed && BootClock.now() >= self.at)
    }
}

fn part(of: Duration, (parts, whole): (u32, u32)) -> Duration {
    of * parts / whole
}
