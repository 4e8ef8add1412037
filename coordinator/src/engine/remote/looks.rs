//! What is due as time passes.

use std::time::Duration;

use super::{
    super::{AcquireError, local::Lease},
    session::Session,
    table::{Entry, Stage, Table, Todo},
};
use crate::{clock::Instant, limits::RECHECK_MAX};

impl Session {
    /// How often to look.
    pub(super) fn every(&self) -> Duration {
        let (min, max) = (Duration::from_millis(10), Duration::from_millis(250));
        (self.terms.0 / 24).clamp(min, max)
    }

    /// Sends what is due, and ends what has ended. Returns whether the stream gives no answers.
    pub(super) fn look(&self) -> bool {
        let now = self.now();
        self.end_locks(now);
        self.end_releases(now);
        self.tell_waiters(now);
        let lease = self.terms.0;
        let mut table = self.table.lock();
        self.ask_again(&mut table, now);
        let lasts = table.valid_for.map_or(lease, |left| left.min(lease));
        if !table.entries.is_empty() && now >= table.last_ping + lasts / 3 {
            self.ping(&mut table, now);
        }
        let ping = table.ping.as_ref().filter(|_| table.is_open);
        let is_overdue = ping.is_some_and(|ping| now >= ping.since + lease / 4);
        if is_overdue {
            fail_renewals(&table);
        }
        is_overdue
    }

    /// The stream has ended: its waits have ended, and its locks are not renewed until there is another one.
    pub(super) fn end_stream(&self, error: &AcquireError) {
        let mut table = self.table.lock();
        table.is_open = false;
        table.todo.clear();
        fail_renewals(&table);
        let asked = table.entries.values();
        let asked = asked.filter(|entry| matches!(entry.stage, Stage::Asked { .. }));
        let asked: Vec<_> = asked.map(|entry| entry.lease.clone()).collect();
        drop(table);
        for lease in asked {
            if let Some(is_patient) = self.waits(&lease, error)
                && let Some(entry) = self.table.lock().entries.get_mut(&lease.sequence())
                && let Stage::Asked { queues } = &mut entry.stage
            {
                *queues = is_patient;
            }
        }
    }

    /// Ends locks that were not renewed in time, or whose fixed hold is over.
    fn end_locks(&self, now: Instant) {
        let ended: Vec<_> = {
            let table = self.table.lock();
            let held = table.entries.values();
            let held = held.filter(|entry| matches!(entry.stage, Stage::Held { .. }));
            let leases = held.map(|entry| &entry.lease);
            leases
                .filter(|lease| !lease.state.is_held(now))
                .cloned()
                .collect()
        };
        for lease in ended {
            if self.over(&lease) {
                if lease.state.idle_until().is_none() && !lease.state.is_final() {
                    tracing::warn!(key = %lease.state.key, "lock lost: not renewed before its deadline");
                }
                self.release(&lease, false, None);
            }
        }
    }

    /// Ends releases without an answer whose records have ended.
    fn end_releases(&self, now: Instant) {
        let ended: Vec<_> = {
            let mut table = self.table.lock();
            let entries = table.entries.iter();
            let ended = entries.filter(|(_, entry)| match &entry.stage {
                Stage::Releasing(release) => release.until <= now,
                Stage::Asked { .. } | Stage::Held { .. } => false,
            });
            let ended: Vec<_> = ended.map(|(&sequence, _)| sequence).collect();
            ended
                .into_iter()
                .map(|sequence| table.remove(sequence))
                .collect()
        };
        for entry in ended {
            self.end_release(entry, None);
        }
    }

    /// Tells the waiters again why they wait: a coordinator tells it when it changes, and others have come since.
    fn tell_waiters(&self, now: Instant) {
        let waiting: Vec<_> = {
            let mut table = self.table.lock();
            if now < table.last_told + RECHECK_MAX {
                return;
            }
            table.last_told = now;
            let asked = table.entries.values();
            let asked = asked.filter(|entry| matches!(entry.stage, Stage::Asked { .. }));
            let why = |entry: &Entry| Some((entry.lease.clone(), entry.lease.refusal()?));
            asked.filter_map(why).collect()
        };
        for (lease, because) in waiting {
            self.waits(&lease, &because);
        }
    }

    /// Asks again for what was refused.
    fn ask_again(&self, table: &mut Table, now: Instant) {
        if !table.is_open {
            return;
        }
        let mut due = Vec::new();
        for (&sequence, entry) in &mut table.entries {
            if entry.again_at.take_if(|at| *at <= now).is_none() {
                continue;
            }
            due.extend(match entry.stage {
                Stage::Asked { .. } => Some(Todo::Acquire(sequence)),
                Stage::Held { .. } if entry.ask.is_none() => Some(Todo::Resume(sequence)),
                Stage::Held { .. } if entry.is_to_be_downgraded() => {
                    Some(Todo::Downgrade(sequence))
                }
                Stage::Held { .. } => None,
                Stage::Releasing(_) => Some(Todo::Release(sequence)),
            });
        }
        for todo in due {
            self.send(table, todo);
        }
    }
}

/// Their holders learn that they are in danger.
fn fail_renewals(table: &Table) {
    for entry in table.entries.values() {
        if let Stage::Held { .. } = entry.stage {
            entry.lease.state.renewal_failed();
        }
    }
}
