//! The view lease: how long the topology in use is valid if shards may be removed without a person
//! (protocol, "Gone for good").
//!
//! A dead shard is replaced after every engine has learnt of it or its view has expired: under a
//! view without a confirmation for so long, nothing is sent, no answer counts, and no guard is
//! held.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Release},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{
    clock::Instant,
    limits::{MARGIN, RHO_PERMILLE},
    topology::Constants,
};

/// Pause before a read is requested again, if it failed.
const READ_AGAIN: Duration = Duration::from_millis(100);

/// A lease on a process's view of the topology. With supervised removal it never ends.
#[derive(Debug)]
pub struct ViewLease {
    length: Option<Duration>,
    /// After that all earlier leases have ended.
    grace: Duration,
    /// When the last successful read was sent.
    read: watch::Sender<Instant>,
    wanted: Notify,
    until: AtomicU64,
    /// How often it ended before a confirmation.
    lapses: AtomicU64,
    /// When it last ended before a confirmation.
    ended: AtomicU64,
}

/// A view that was valid once. Grants made under it end with the lease, permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Believed(u64);

impl ViewLease {
    /// The lease of a topology with these constants, so far without a confirmation.
    pub fn new(constants: &Constants) -> Self {
        let length = constants.view_lease();
        Self {
            length,
            grace: constants.grace(),
            read: watch::Sender::new(Instant::from_nanos(0)),
            wanted: Notify::new(),
            until: AtomicU64::new(length.map_or(u64::MAX, |_| 0)),
            lapses: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// How long a new connection [waits](Self::read_since) at most.
    pub fn unread_within(&self) -> Duration {
        self.grace
    }

    /// How long a confirmation is valid.
    pub fn length(&self) -> Option<Duration> {
        self.length
    }

    /// The view was confirmed by an answer, processed at `now`, to a request sent at `sent`. Called
    /// by one task.
    pub fn confirm(&self, sent: Instant, now: Instant) {
        self.confirm_lease(sent, now);
        self.read.send_replace(sent);
    }

    /// The topology in use is the newest one of which the members have a copy. All but its home were asked for it at `sent`
    /// or later, and answered. Called by the task that confirms.
    pub fn surveyed(&self, sent: Instant) {
        self.read.send_replace(sent);
    }

    /// Waits until the topology was read by a request sent at `opened` or later: a connection opened then may lead to a
    /// server whose life was replaced while this process learned nothing. If it is not read, waits until all leases granted
    /// by another server before have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn read_since(&self, opened: Instant) {
        let mut read = self.read.subscribe();
        let is_read = async {
            while *read.borrow_and_update() < opened {
                self.wanted.notify_one();
                let _again = timeout(READ_AGAIN, read.changed()).await;
            }
        };
        let _unread = timeout(self.grace, is_read).await;
    }

    /// Waits until a [read](Self::read_since) is wanted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn confirm_lease(&self, sent: Instant, now: Instant) {
        let Some(length) = self.length else {
            return;
        };
        let until = (sent + believed(length)).as_nanos();
        if until <= self.until.load(Acquire) {
            return;
        }
        if !self.is_believed(now) {
            // Before the new end is visible: a reader of the new end also sees these.
            self.ended.store(self.until.load(Acquire), Release);
            self.lapses.fetch_add(1, Release);
        }
        self.until.store(until, Release);
    }

    /// The end, unless the view is confirmed before.
    pub fn until(&self) -> Instant {
        Instant::from_nanos(self.until.load(Acquire))
    }

    /// The end of `view`, unless it is confirmed before; a time that has passed, if it has ended.
    pub fn end_of(&self, view: Believed) -> Instant {
        let until = self.until();
        match Believed(self.lapses.load(Acquire)) == view {
            true => until,
            false => Instant::from_nanos(self.ended.load(Acquire)),
        }
    }

    /// The time when a third of it is left, unless it is confirmed before: every confirmation in
    /// time leaves more.
    pub fn danger_at(&self) -> Instant {
        let third = self.length.unwrap_or_default() / 3;
        self.until() - third
    }

    /// Whether the view may be acted on at `now`.
    pub fn is_believed(&self, now: Instant) -> bool {
        now < self.until()
    }

    /// The view, if it is valid at `now`.
    pub fn believed(&self, now: Instant) -> Option<Believed> {
        let lapses = self.lapses.load(Acquire);
        self.is_believed(now).then_some(Believed(lapses))
    }

    /// Whether `view` has been valid ever since.
    pub fn is_still(&self, view: Believed, now: Instant) -> bool {
        self.is_believed(now) && Believed(self.lapses.load(Acquire)) == view
    }
}

/// Clocks may differ in their rates.
fn believed(length: Duration) -> Duration {
    (length - length * RHO_PERMILLE / 1000).saturating_sub(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Removal;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Instant {
        Instant::from_nanos(0) + SECOND * seconds
    }

    fn five_seconds() -> ViewLease {
        ViewLease::new(&Constants {
            removal: Removal::Leased,
            view_lease_ms: Some(5_000),
            ..Constants::default()
        })
    }

    /// Five seconds, from the first confirmation on.
    fn confirmed() -> ViewLease {
        let lease = five_seconds();
        lease.confirm(at(0), at(0));
        lease
    }

    #[test]
    fn without_a_length_it_never_ends() {
        let lease = ViewLease::new(&Constants::default());
        let view = lease.believed(at(0)).unwrap();
        assert!(lease.is_still(view, at(1_000_000)));
    }

    #[test]
    fn nothing_is_believed_before_the_first_confirmation() {
        let lease = five_seconds();
        assert!(lease.believed(at(0)).is_none());
    }

    #[test]
    fn it_ends_in_time_and_a_confirmation_goes_on_with_it() {
        let lease = confirmed();
        let view = lease.believed(at(0)).unwrap();
        assert!(lease.is_still(view, at(4)) && !lease.is_still(view, at(5)));
        lease.confirm(at(3), at(4));
        assert!(lease.is_still(view, at(7)) && !lease.is_still(view, at(8)));
        lease.confirm(at(2), at(7));
        assert!(
            lease.is_still(view, at(7)),
            "an older answer takes nothing away"
        );
    }

    #[test]
    fn an_expired_view_is_not_valid_again() {
        let lease = confirmed();
        let view = lease.believed(at(0)).unwrap();
        assert!(lease.believed(at(6)).is_none());
        lease.confirm(at(5), at(6));
        let again = lease.believed(at(6)).unwrap();
        assert!(!lease.is_still(view, at(6)) && lease.is_still(again, at(6)));
        assert!(lease.end_of(view) < at(5), "nor does it end later");
        assert_eq!(lease.end_of(again), lease.until());
    }
}
