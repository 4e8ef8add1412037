//! The document of one lock.

use super::{
    end::End,
    head::Armed,
    queue::{Place, Queue, Stay, Stays, ToRead, Waiter},
    shares::Shares,
    sightings::Sightings,
};
use crate::{
    clock::Moment,
    ids::Nonce,
    shard::{LockKind, Record},
};

/// The document of one lock: the record of its grant, or those of its shares, and the queue of its waiters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockState {
    pub(super) record: Option<Entry>,
    /// The holders of a semaphore, or of a read-write lock. Boxed: most locks have none.
    pub(super) shares: Option<Box<Shares>>,
    /// Boxed: most locks have none.
    pub(super) queue: Option<Box<Queue>>,
    /// When the records were seen as they are,
    pub(super) records_seen: Sightings,
    /// and when the queue was.
    pub(super) queue_seen: Sightings,
    /// How often a record was extended and is as it was, since the clock stood still. So each extension is written, and no
    /// sighting from before it can be.
    pub(super) extensions: u64,
}

/// A record and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    /// How many shares it takes.
    pub(crate) shares: u32,
    /// The last millisecond of the record.
    pub(crate) expires: End,
    /// When its nonce was granted it.
    pub(crate) since_ms: u64,
}

impl LockState {
    /// Whether the document says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_record() && self.queue.is_none()
    }

    /// Whether others have no reason to write it soon: it is free, or a mutex that nobody waits for.
    pub(crate) fn may_be_recalled(&self) -> bool {
        self.shares.is_none() && self.queue.is_none()
    }

    /// The last millisecond at which the document says something.
    pub(crate) fn ends_ms(&self) -> Option<u64> {
        let queue = self.queue.as_ref().map(|queue| queue.ends().at_ms);
        self.record_ends_ms().max().max(queue)
    }

    /// Whether `nonce` is in the queue.
    pub(crate) fn is_awaited_by(&self, nonce: Nonce) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.has(nonce))
    }

    /// As [`Queue::unread`].
    pub(crate) fn unread(
        &self,
        stays: &Stays,
        to_read: ToRead,
        (now_ms, moment): (u64, Option<&Moment>),
    ) -> impl Iterator<Item = Nonce> {
        let outlasts = move |queue: &Queue| {
            moment.is_some_and(|moment| self.queue_seen.outlast(queue.ends(), moment))
        };
        self.queue.iter().flat_map(move |queue| {
            let all = to_read == ToRead::All || queue.is_full() || outlasts(queue);
            let some = all || to_read == ToRead::First;
            let queue = some.then_some(queue).into_iter();
            queue.flat_map(move |queue| queue.unread(stays, all, now_ms))
        })
    }

    /// As [`Queue::put_stays`]. A waiter that asked again was seen in vain.
    pub(crate) fn put_stays(&mut self, stays: &Stays) {
        let queue = self.queue.as_mut();
        if queue.is_some_and(|queue| queue.put_stays(stays)) {
            self.queue_seen = Sightings::default();
        }
    }

    /// As [`Queue::changed_stay`].
    pub(crate) fn changed_stay(&self, before: &Self) -> Option<(Nonce, Stay)> {
        let (queue, queue_before) = (self.queue.as_deref()?, before.queue.as_deref()?);
        let is_same = self.record == before.record
            && self.shares == before.shares
            && self.records_seen == before.records_seen
            && self.queue_seen == before.queue_seen
            && self.extensions == before.extensions;
        is_same.then(|| queue.changed_stay(queue_before))?
    }

    /// The last millisecond of each record.
    pub(crate) fn record_ends_ms(&self) -> impl Iterator<Item = u64> {
        let shares = self.shares.iter().flat_map(|shares| shares.entries());
        let entries = self.record.iter().chain(shares);
        entries.map(|entry| entry.expires.at_ms)
    }

    /// The number of waiters, including ended ones.
    pub(crate) fn waiters(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.len())
    }

    /// Whether the document has a record, which may have expired.
    pub(crate) fn has_record(&self) -> bool {
        self.record.is_some() || self.shares.is_some()
    }

    /// Drops expired records, and a queue in which all waiters have ended.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        self.record.take_if(|entry| entry.has_expired(now_ms));
        self.shares.take_if(|shares| shares.expire(now_ms));
        self.queue.take_if(|queue| queue.has_ended(now_ms));
    }

    /// Limits every end, as [`End::limit`] does.
    pub(crate) fn limit_ends(&mut self, now_ms: u64, slack_ms: u64) {
        let shares = self.shares.iter_mut();
        let shares = shares.flat_map(|shares| shares.entries_mut());
        for entry in self.record.iter_mut().chain(shares) {
            entry.expires.limit(now_ms, slack_ms);
        }
        if let Some(queue) = &mut self.queue {
            queue.limit_ends(now_ms, slack_ms);
        }
    }

    /// Ends what was seen as it is, until `moment`, for longer than it was to last.
    pub(crate) fn end_unchanged(&mut self, moment: &Moment) {
        let shares = self.shares.iter_mut();
        let shares = shares.flat_map(|shares| shares.entries_mut());
        for entry in self.record.iter_mut().chain(shares) {
            if self.records_seen.outlast(entry.expires, moment) {
                entry.expires.end();
            }
        }
        let queue = self.queue.as_deref();
        if queue.is_some_and(|queue| self.queue_seen.outlast(queue.ends(), moment)) {
            self.queue = None;
        }
    }

    /// Forgets when the records were seen, if one of them is not in `before`, or was extended: while the clock stands still, an
    /// extension may leave a record as it was. Likewise for the queue. A record or a ticket that ends leaves the others as they
    /// were. If `moment` saw them, keeps that.
    pub(crate) fn see(&mut self, before: &Self, is_extended: bool, moment: Option<&Moment>) {
        if is_extended && self == before {
            self.extensions = self.extensions.wrapping_add(1);
        }
        if is_extended || !self.records_are_left_of(before) {
            self.records_seen = Sightings::default();
        } else if let Some(moment) = moment {
            self.records_seen.add(moment);
        }
        let (queue, queue_before) = (self.queue.as_deref(), before.queue.as_deref());
        if !is_left_of(queue, queue_before, Queue::is_left_of) {
            self.queue_seen = Sightings::default();
        } else if let Some(moment) = moment.filter(|_| self.queue.is_some()) {
            self.queue_seen.add(moment);
        }
    }

    fn records_are_left_of(&self, before: &Self) -> bool {
        let (shares, shares_before) = (self.shares.as_deref(), before.shares.as_deref());
        is_left_of(self.record.as_ref(), before.record.as_ref(), Entry::is_as)
            && is_left_of(shares, shares_before, Shares::are_left_of)
    }

    /// The record, unless it has expired. It may be one of an earlier arming.
    pub(super) fn unexpired(&mut self, now_ms: u64) -> Option<&mut Entry> {
        let entry = self.record.as_mut();
        entry.filter(|entry| !entry.has_expired(now_ms))
    }

    /// The kind of the live records: the lock is held.
    pub(crate) fn held(&self, armed: &Armed, now_ms: u64) -> Option<LockKind> {
        if self.live(armed, now_ms).is_some() {
            return Some(LockKind::Mutex);
        }
        let shares = self.shares.as_deref()?;
        let held = shares.live(armed, now_ms).next().is_some();
        held.then_some(shares.kind)
    }

    /// The live record of a mutex.
    pub(crate) fn live(&self, armed: &Armed, now_ms: u64) -> Option<&Entry> {
        let entry = self.record.as_ref();
        entry.filter(|entry| entry.is_live(armed, now_ms))
    }

    /// The record of `nonce` that may be extended. That of a mutex may be of an earlier arming. A share may not:
    /// others may have been granted in its place.
    pub(super) fn own(&mut self, nonce: Nonce, armed: &Armed, now_ms: u64) -> Option<&mut Entry> {
        let Self { record, shares, .. } = self;
        let record = record.as_mut();
        let record = record.filter(|entry| !entry.has_expired(now_ms));
        let own = record.filter(|entry| entry.record.nonce == nonce);
        own.or_else(|| {
            let share = shares.as_mut()?.of(nonce);
            share.filter(|entry| entry.is_live(armed, now_ms))
        })
    }

    /// When `nonce` was granted the live record that it has; `now_ms`: it has none.
    pub(super) fn since(&mut self, nonce: Nonce, armed: &Armed, now_ms: u64) -> u64 {
        let own = self.own(nonce, armed, now_ms);
        let live = own.filter(|entry| entry.is_live(armed, now_ms));
        live.map_or(now_ms, |entry| entry.since_ms)
    }

    /// Deletes the record of `nonce`. Returns whether there was one.
    pub(super) fn delete(&mut self, nonce: Nonce, now_ms: u64) -> bool {
        let own = self.unexpired(now_ms);
        if own.is_some_and(|entry| entry.record.nonce == nonce) {
            self.record = None;
            return true;
        }
        let shares = self.shares.as_mut();
        let share = shares.and_then(|shares| shares.remove(nonce));
        self.shares.take_if(|shares| shares.expire(now_ms));
        share.is_some_and(|entry| !entry.has_expired(now_ms))
    }

    /// The queue, unless all waiters have ended.
    pub(super) fn queue(&self, now_ms: u64) -> Option<&Queue> {
        let queue = self.queue.as_deref();
        queue.filter(|queue| !queue.has_ended(now_ms))
    }

    /// As [`Queue::enter`].
    pub(super) fn enter(&mut self, waiter: Waiter, now_ms: u64) -> Option<Place> {
        self.queue.take_if(|queue| queue.has_ended(now_ms));
        self.queue.get_or_insert_default().enter(waiter, now_ms)
    }

    /// Removes `nonce` from the queue.
    pub(super) fn leave(&mut self, nonce: Nonce) {
        self.queue.take_if(|queue| {
            queue.remove(nonce);
            queue.is_empty()
        });
    }

    /// As [`Queue::first`].
    pub(super) fn first(&mut self, now_ms: u64) -> Option<&Waiter> {
        let queue = self.queue.as_mut();
        queue
            .filter(|queue| !queue.has_ended(now_ms))?
            .first(now_ms)
    }
}

/// Whether there is nothing `now`, or what was `before` by `is`.
fn is_left_of<T>(now: Option<&T>, before: Option<&T>, is: impl Fn(&T, &T) -> bool) -> bool {
    now.is_none_or(|now| before.is_some_and(|before| is(now, before)))
}

impl Entry {
    /// Whether it is `known`, and was not extended.
    pub(super) fn is_as(&self, known: &Self) -> bool {
        let is_same = self.record == known.record && self.shares == known.shares;
        is_same && self.expires.is_within(known.expires)
    }

    /// Whether the record counts: it has not expired, and is of this arming. In grace, an earlier arming will do.
    pub(super) fn is_live(&self, armed: &Armed, now_ms: u64) -> bool {
        let of_arming = self.record.arm == armed.epoch || armed.earlier_armings_count(now_ms);
        of_arming && !self.has_expired(now_ms)
    }

    pub(super) fn has_expired(&self, now_ms: u64) -> bool {
        now_ms > self.expires.at_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Instant,
        ids::{ClientId, Epoch, Token},
        name::Label,
        shard::rules::end::End,
    };

    fn moment(nanos: u64) -> Moment {
        Moment {
            clock: "machine".into(),
            at: Instant::from_nanos(nanos),
        }
    }

    fn entry(sequence: u64) -> Entry {
        let nonce = Nonce {
            client: ClientId(1),
            sequence,
        };
        Entry {
            record: Record {
                nonce,
                label: Label::default(),
                token: Token::from_number(sequence),
                tokens: 1,
                arm: Epoch(1),
                told: false,
            },
            shares: 1,
            expires: End::after(4_000 * sequence, 0),
            since_ms: 0,
        }
    }

    /// Otherwise a sighting from before it could be committed after it.
    #[test]
    fn an_extension_while_the_clock_stands_still_is_a_change() {
        let before = LockState::default();
        let mut seen = before.clone();
        seen.see(&before, false, Some(&moment(1)));
        assert_ne!(seen.records_seen, Sightings::default());
        let mut extended = before.clone();
        extended.see(&before, true, None);
        assert_ne!(extended, before);
        let mut again = extended.clone();
        again.see(&extended, true, None);
        assert_ne!(again, extended);
    }

    /// Dead holders of different leases, of which one after the other ends.
    #[test]
    fn shares_stay_seen_as_another_ends_and_not_as_one_comes_or_is_extended() {
        let mut shares = Shares::new(LockKind::Semaphore);
        (1..=2).for_each(|sequence| shares.write(entry(sequence)));
        let mut before = LockState {
            shares: Some(Box::new(shares)),
            ..LockState::default()
        };
        before.see(&before.clone(), false, Some(&moment(1)));
        let seen = |change: &dyn Fn(&mut Shares)| {
            let mut now = before.clone();
            change(now.shares.as_mut().unwrap());
            now.see(&before, false, None);
            now.records_seen
        };
        let one = entry(1).record.nonce;
        let kept = before.records_seen.clone();
        assert_eq!(seen(&|shares| drop(shares.remove(one))), kept);
        let limited = |shares: &mut Shares| shares.of(one).unwrap().expires.end();
        assert_eq!(seen(&limited), kept);
        let none = Sightings::default();
        assert_eq!(seen(&|shares| shares.write(entry(3))), none);
        let extended = |shares: &mut Shares| shares.of(one).unwrap().expires.at_ms += 1;
        assert_eq!(seen(&extended), none);
    }
}
