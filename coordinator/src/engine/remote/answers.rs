//! What a coordinator tells. The local queues learn of it outside of the lock of the table: they may send at once.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        AcquireError, ReleaseAnswer,
        local::{Answer, Judged, Phase, Receiver, Tokens, Waiting, events},
    },
    lease::RemoteLease,
    messages::Told,
    session::Session,
    table::{About, Entry, Release, Stage, Todo},
};
use crate::clock::Instant;

/// What was refused is asked for again after about this long.
const RETRY: Duration = Duration::from_millis(200);

impl Session {
    pub(super) fn told(&self, told: Told) {
        match told {
            Told::Granted {
                id,
                handle,
                token,
                tokens,
                valid_for,
                counted_from,
            } => self.granted(
                id,
                handle,
                Tokens::new(token, tokens),
                (counted_from, valid_for),
            ),
            Told::Waits { id, because } => {
                if let Some(lease) = self.lease(id) {
                    self.waits(&lease, &because);
                }
            }
            Told::Contended { id } => {
                if let Some(lease) = self.lease(id) {
                    self.receiver().contended(&lease.state);
                }
            }
            Told::Lost { id } => self.lost(id),
            Told::Released { id, answer } => self.released(id, answer),
            Told::Downgraded { id, handle } => self.downgraded(id, handle),
            Told::Pong {
                id,
                valid_for,
                behind,
            } => self.pong(id, valid_for, &behind),
            Told::Refused { id, error } => self.refused(id, &error),
            Told::Drains => {}
        }
    }

    pub(super) fn receiver(&self) -> &dyn Receiver {
        &*self.requests.local
    }

    fn lease(&self, id: u64) -> Option<Arc<RemoteLease>> {
        let mut table = self.table.lock();
        Some(table.named(id)?.lease.clone())
    }

    fn granted(
        &self,
        id: u64,
        handle: Vec<u8>,
        tokens: Tokens,
        (counted_from, valid_for): (u64, Duration),
    ) {
        let mut table = self.table.lock();
        let sent = table.sent_at(counted_from);
        let (Some(sent), Some(entry)) = (sent, table.named(id)) else {
            return;
        };
        let lease = entry.lease.clone();
        match &mut entry.stage {
            // The release is on its way.
            Stage::Releasing(_) => {}
            Stage::Asked { .. } => {
                // Before the holder gets it, and may release it.
                entry.stage = Stage::Held {
                    handle,
                    is_here: true,
                    is_downgraded: false,
                };
                drop(table);
                self.deliver(id, &lease, tokens, (sent, valid_for));
            }
            Stage::Held {
                handle: its,
                is_here,
                ..
            } => {
                (*its, *is_here) = (handle, true);
                self.renewed(&lease, sent, valid_for);
                if entry.is_to_be_downgraded() {
                    self.send(&mut table, Todo::Downgrade(lease.sequence()));
                }
            }
        }
    }

    /// Gives a grant to the local queue.
    fn deliver(
        &self,
        id: u64,
        lease: &Arc<RemoteLease>,
        tokens: Tokens,
        (sent, valid_for): (Instant, Duration),
    ) {
        let answer = Answer {
            tokens,
            contended: false,
            sent,
            // It counts from an ask that may be older than the grant.
            claim: Some(valid_for),
        };
        let judged = self.receiver().granted(&lease.state, answer);
        let now = self.now();
        let left = lease.state.deadline().since(now);
        let mut table = self.table.lock();
        match judged {
            // A coordinator that falls silent now is left after two thirds of a lease: the next ping, and the wait for its
            // answer.
            Judged::Held if left < self.terms.0 * 5 / 6 => self.ping(&mut table, now),
            Judged::TooLate => {
                let sequence = lease.sequence();
                if let Some(entry) = table.named(id) {
                    entry.ask = None;
                    entry.stage = Stage::Asked { queues: true };
                    table.asked.remove(&id);
                    self.send(&mut table, Todo::GiveBack(id));
                    self.send(&mut table, Todo::Acquire(sequence));
                }
            }
            // If it is not wanted any more, it was given up, or is about to be.
            Judged::Held | Judged::Known => {}
        }
    }

    fn renewed(&self, lease: &RemoteLease, sent: Instant, valid_for: Duration) {
        let now = self.now();
        if lease.state.renewed_for(sent, now, valid_for) {
            events::renewed(&lease.state, false, sent, now);
        }
    }

    fn pong(&self, id: u64, valid_for: Option<Duration>, behind: &[(u64, Duration)]) {
        let mut table = self.table.lock();
        // Grants that were told first may count from later asks.
        let Some(ping) = table.ping.take_if(|ping| ping.id == id) else {
            return;
        };
        let sent = ping.since;
        let mut shortest = None;
        for entry in table.entries.values() {
            let (Stage::Held { is_here: true, .. }, Some(ask)) = (&entry.stage, entry.ask) else {
                continue;
            };
            let its = behind.iter().find(|(behind, _)| *behind == ask);
            if let Some(valid_for) = its.map(|(_, left)| *left).or(valid_for) {
                self.renewed(&entry.lease, sent, valid_for);
                // No renewal makes a fixed hold longer.
                if entry.lease.state.terms.hold_for.is_none() {
                    shortest =
                        Some(shortest.map_or(valid_for, |least: Duration| least.min(valid_for)));
                }
            }
        }
        table.valid_for = shortest;
    }

    fn lost(&self, id: u64) {
        let mut table = self.table.lock();
        let Some(entry) = table.named(id) else {
            return;
        };
        // A release on its way gets its own answer.
        if let Stage::Releasing(_) = entry.stage {
            return;
        }
        let lease = entry.lease.clone();
        table.remove(lease.sequence());
        drop(table);
        tracing::warn!(key = %lease.state.key, "lock lost: the coordinator has it no more");
        events::lost(&lease.state, self.now());
        self.over(&lease);
    }

    /// Ends belief in `lease`, of which nothing counts any more. Returns whether it was held.
    pub(super) fn over(&self, lease: &RemoteLease) -> bool {
        let before = lease.end_here();
        self.receiver().over(&lease.state);
        before == Phase::Held
    }

    /// The release by the ask `id` was answered.
    fn released(&self, id: u64, answer: ReleaseAnswer) {
        let mut table = self.table.lock();
        let Some((sequence, About::Release)) = table.asked.remove(&id) else {
            return;
        };
        let entry = table.remove(sequence);
        drop(table);
        self.end_release(entry, Some(answer));
    }

    /// A release has an answer, or will have none.
    pub(super) fn end_release(&self, entry: Option<Entry>, answer: Option<ReleaseAnswer>) {
        let Some(Entry {
            lease,
            stage: Stage::Releasing(release),
            ..
        }) = entry
        else {
            return;
        };
        let Release {
            sent, tell, yields, ..
        } = release;
        let answer = match answer {
            Some(ReleaseAnswer::Lost) if sent > 1 => ReleaseAnswer::Unknown,
            Some(answer) => answer,
            None => ReleaseAnswer::Unknown,
        };
        if let Some(tell) = tell {
            // A caller that does not wait any more needs no answer.
            let _ = tell.send(answer);
        }
        if yields {
            self.receiver().over(&lease.state);
        }
    }

    fn downgraded(&self, id: u64, its: Vec<u8>) {
        let mut table = self.table.lock();
        let Some((sequence, About::Downgrade)) = table.asked.remove(&id) else {
            return;
        };
        let entry = table.entries.get_mut(&sequence);
        if let Some(Stage::Held {
            handle,
            is_downgraded,
            ..
        }) = entry.map(|entry| &mut entry.stage)
        {
            (*handle, *is_downgraded) = (its, true);
        }
    }

    fn refused(&self, id: u64, error: &AcquireError) {
        let again_at = self.again_at(error);
        let mut table = self.table.lock();
        let Some((sequence, about)) = table.asked.remove(&id) else {
            return;
        };
        let Some(entry) = table.entries.get_mut(&sequence) else {
            return;
        };
        let lease = entry.lease.clone();
        entry.again_at = error.is_retryable().then_some(again_at);
        match (about, &entry.stage) {
            (About::Lock, Stage::Asked { .. }) if entry.ask == Some(id) => {
                entry.ask = None;
                entry.again_at = None;
                drop(table);
                self.refuse(&lease, error);
            }
            (About::Lock, _) if entry.ask == Some(id) => {
                entry.ask = None;
                lease.state.renewal_failed();
            }
            (About::Release, _) if !error.is_retryable() => {
                let entry = table.remove(sequence);
                drop(table);
                self.end_release(entry, None);
            }
            (About::Lock | About::Release | About::Downgrade, _) => {}
        }
    }

    /// The request for `lease` is refused.
    fn refuse(&self, lease: &Arc<RemoteLease>, error: &AcquireError) {
        let passes = match error {
            AcquireError::Coordinator(error) => error.passes,
            error => error.is_retryable(),
        };
        if !passes {
            return self.receiver().refused(&lease.state, error);
        }
        let Some(is_patient) = self.waits(lease, error) else {
            return;
        };
        let again_at = self.again_at(error);
        let mut table = self.table.lock();
        let sequence = lease.sequence();
        let Some(entry) = table.entries.get_mut(&sequence) else {
            return;
        };
        if let Stage::Asked { queues } = &mut entry.stage
            && entry.ask.is_none()
        {
            // The waiters came while a request that is answered at once was out.
            let at_once = is_patient && !std::mem::replace(queues, is_patient);
            match at_once {
                true => self.send(&mut table, Todo::Acquire(sequence)),
                false => entry.again_at = Some(again_at),
            }
        }
    }

    /// Tells the waiters why `lease` is not granted yet. Returns whether one waits for more than an answer; none if the
    /// request is not wanted any more.
    pub(super) fn waits(&self, lease: &RemoteLease, because: &AcquireError) -> Option<bool> {
        let waiting = || Waiting::new(because, &self.shard, Duration::ZERO);
        let callers = self
            .receiver()
            .waits(&lease.state, because, true, &waiting)?;
        Some(callers > 0)
    }

    fn again_at(&self, error: &AcquireError) -> Instant {
        let pause = self.requests.around.random.jitter(RETRY);
        self.now() + error.retry_after().unwrap_or_default().max(pause)
    }
}
