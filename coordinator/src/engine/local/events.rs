//! Requests to shards about grants, and their answers, as debug events: for logs, and for checkers
//! of histories.
//!
//! Times are nanoseconds on the engine's clock. `sent` is the time when the answered request left,
//! `judged` the time when its answer was handled, `deadline` the holder's deadline from then on.
//! Events of one replica of a lock have its `rank`, and the lock's nonce as `of`; the lock has its own events.

use ringfence_ring::ShardId;
use tracing::field::{DisplayValue, display};

use super::{LeaseState, grant::Grant};
use crate::{clock::Instant, ids::Nonce};

/// The target of these events.
const TARGET: &str = "ringfence::lease";

fn of(lease: &LeaseState) -> Option<DisplayValue<Nonce>> {
    lease.replica.map(|replica| display(replica.of))
}

fn rank(lease: &LeaseState) -> Option<u32> {
    lease.replica.map(|replica| replica.rank)
}

/// The deadline, then the request that it counts from: another thread may handle a later answer meanwhile.
fn deadline_and_sent(lease: &LeaseState) -> (Instant, Instant) {
    (lease.deadline(), lease.sent())
}

pub(crate) fn asking(lease: &LeaseState, sent: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        preferred = lease.terms.preferred,
        sent = sent.as_nanos(),
        "asking"
    );
}

pub(crate) fn queued(lease: &LeaseState, position: u32, sent: Instant, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        position,
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        "queued"
    );
}

/// The slot moves: the request goes to another shard, and has no place until that one answers.
pub(crate) fn moving(lease: &LeaseState, now: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        judged = now.as_nanos(),
        "moving"
    );
}

/// `handed`: passed on within the process, with the next token of the acquisition.
pub(crate) fn granted(grant: &Grant, handed: bool, judged: Instant) {
    let (lease, token) = (grant.lease(), grant.token);
    let (deadline, sent) = deadline_and_sent(lease);
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        token = token.get(),
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        deadline = deadline.as_nanos(),
        turn = lease.is_claimed(),
        handed,
        "granted"
    );
}

/// A replica has a grant: it was granted, confirmed or written where it was missing.
pub(crate) fn replica_granted(lease: &LeaseState, judged: Instant) {
    let (deadline, sent) = deadline_and_sent(lease);
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        token = lease.token().get(),
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        deadline = deadline.as_nanos(),
        turn = lease.is_claimed(),
        "replica granted"
    );
}

pub(crate) fn gave_up(lease: &LeaseState) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        "gave up"
    );
}

pub(crate) fn renewing(lease: &LeaseState) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        token = lease.token().get(),
        "renewing"
    );
}

pub(crate) fn renewed(lease: &LeaseState, reclaimed: bool, sent: Instant, judged: Instant) {
    let (deadline, last_sent) = deadline_and_sent(lease);
    let sent = sent.max(last_sent);
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        token = lease.token().get(),
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        deadline = deadline.as_nanos(),
        reclaimed,
        "renewed"
    );
}

pub(crate) fn lost(lease: &LeaseState, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        token = lease.token().get(),
        judged = judged.as_nanos(),
        "lost"
    );
}

pub(crate) fn not_renewed(lease: &LeaseState, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %lease.key,
        nonce = %lease.nonce,
        of = of(lease),
        rank = rank(lease),
        token = lease.token().get(),
        judged = judged.as_nanos(),
        deadline = lease.deadline().as_nanos(),
        "not renewed"
    );
}

pub(crate) fn clock_stepped(shard: &ShardId, by_ms: i64, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        %shard,
        by_ms,
        judged = judged.as_nanos(),
        "clock stepped"
    );
}
