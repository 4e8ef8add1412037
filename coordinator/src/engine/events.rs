//! Requests to shards about grants, and their answers, as debug events: for logs, and for checkers
//! of histories.
//!
//! Times are nanoseconds on the engine's clock. `sent` is the time when the answered request left,
//! `judged` the time when its answer was handled, `deadline` the holder's deadline from then on.

use ringfence_ring::ShardId;

use super::{grant::Grant, hold::Hold};
use crate::clock::Instant;

/// The target of these events.
const TARGET: &str = "ringfence::lease";

pub(super) fn asking(hold: &Hold, sent: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        sent = sent.as_nanos(),
        "asking"
    );
}

pub(super) fn queued(hold: &Hold, position: u32, sent: Instant, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        position,
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        "queued"
    );
}

/// The slot is in motion. `left`: the request goes on to the next shard, and has given up its place
/// at this one.
pub(super) fn moving(hold: &Hold, left: bool, sent: Instant, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        left,
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        "moving"
    );
}

/// `handed`: passed on within the process, with the next token of the acquisition.
pub(super) fn granted(grant: &Grant, handed: bool, judged: Instant) {
    let Grant { hold, token, .. } = grant;
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        token = token.get(),
        sent = hold.sent().as_nanos(),
        judged = judged.as_nanos(),
        deadline = hold.deadline().as_nanos(),
        turn = hold.is_claimed(),
        handed,
        "granted"
    );
}

pub(super) fn gave_up(hold: &Hold) {
    tracing::debug!(target: TARGET, key = %hold.key, nonce = %hold.nonce, "gave up");
}

pub(super) fn renewing(hold: &Hold) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        token = hold.token().get(),
        "renewing"
    );
}

pub(super) fn renewed(hold: &Hold, reclaimed: bool, sent: Instant, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        token = hold.token().get(),
        sent = sent.as_nanos(),
        judged = judged.as_nanos(),
        deadline = hold.deadline().as_nanos(),
        reclaimed,
        "renewed"
    );
}

pub(super) fn lost(hold: &Hold, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        token = hold.token().get(),
        judged = judged.as_nanos(),
        "lost"
    );
}

pub(super) fn not_renewed(hold: &Hold, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        key = %hold.key,
        nonce = %hold.nonce,
        token = hold.token().get(),
        judged = judged.as_nanos(),
        deadline = hold.deadline().as_nanos(),
        "not renewed"
    );
}

pub(super) fn clock_stepped(shard: &ShardId, by_ms: i64, judged: Instant) {
    tracing::debug!(
        target: TARGET,
        %shard,
        by_ms,
        judged = judged.as_nanos(),
        "clock stepped"
    );
}
