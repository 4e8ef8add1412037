//! A batch of operations on locks, as script calls.

use std::time::Duration;

use redis::Cmd;

use super::{
    Script,
    batch::{Call, Verb},
    connection::{Keys, fcall},
    link::RedisLink,
    scripts,
};
use crate::{
    limits::{COUNTER_MAX, TICKET_KEEP, WAITERS_MAX},
    name::{push_decimal, push_digits},
    shard::{Op, Request},
};

/// A slow server must not lose its connections because leases are very short.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// The greatest number with ten digits. A claim time that is cut to it is reported to its receiver.
const CLAIM_MS_MAX: u128 = 9_999_999_999;

impl RedisLink {
    /// The script call for `call`.
    pub(super) fn command(&mut self, call: &Call, batch: &[Request]) -> Cmd {
        let keys = &self.connection.keys;
        let replid = &self.connection.server.replid;
        let map = call.map(batch).0;
        let count = call.places.len();
        let Keys {
            quiet,
            ctr,
            state,
            slots,
            queues,
            ..
        } = keys;
        let all = [quiet, ctr, state, slots, queues];
        let (script, named): (&Script, &[&String]) = match call.verb {
            Verb::Acquire => (&scripts::ACQUIRE, &all),
            Verb::Renew => (&scripts::RENEW, &all),
            Verb::Release => (&scripts::RELEASE, &all),
            Verb::Adopt => (&scripts::ADOPT, &[quiet, state, slots, queues]),
            Verb::Remove => (&scripts::REMOVE, &[slots]),
        };
        let mut command = fcall(script, named.len() + count);
        for name in named {
            command.arg(name);
        }
        for &place in &call.places {
            self.scratch.clear();
            self.scratch.extend_from_slice(keys.prefix.as_bytes());
            self.scratch.push(b':');
            self.scratch.extend_from_slice(batch[place].key.text());
            command.arg(&self.scratch[..]);
        }
        command.arg(replid);
        if call.verb != Verb::Remove {
            command.arg(map);
        }
        if named == all {
            command.arg(call.by_map(batch)).arg(COUNTER_MAX);
        }
        if call.verb == Verb::Acquire {
            command
                .arg(call.tokens(batch))
                .arg(TICKET_KEEP.as_millis() as u64)
                .arg(WAITERS_MAX);
            self.push_more(&mut command, call, batch);
        }
        for (op, offset) in call.ops(batch) {
            self.push_op(&mut command, op, offset);
        }
        command
    }

    /// Appends the tickets and proofs of all operations as one argument: the server creates a string per argument, and
    /// needs these only if there are waiters, or a slot migrates.
    fn push_more(&mut self, command: &mut Cmd, call: &Call, batch: &[Request]) {
        self.scratch.clear();
        let mut any = false;
        for (op, _) in call.ops(batch) {
            let (ticket, proof) = match op {
                Op::Acquire { ticket, proof, .. } => (ticket.as_ref(), *proof),
                _ => (None, None),
            };
            any |= ticket.is_some() || proof.is_some();
            let (sent, claim) = ticket.map_or((0, 0), |ticket| {
                // 0 means that there is no ticket.
                let claim_ms = ticket.claim.as_millis().clamp(1, CLAIM_MS_MAX);
                (ticket.sent.as_nanos(), claim_ms as u64)
            });
            push_digits(&mut self.scratch, sent, 20);
            push_digits(&mut self.scratch, claim, 10);
            // 0 is the epoch of no migration.
            push_digits(&mut self.scratch, proof.map_or(0, |epoch| epoch.0), 10);
        }
        command.arg(if any { &self.scratch[..] } else { b"" });
    }

    /// Appends one operation's arguments; `offset` is that of its first token.
    fn push_op(&mut self, command: &mut Cmd, op: &Op, offset: u64) {
        self.scratch.clear();
        match op {
            Op::Acquire {
                nonce,
                label,
                lease,
                tokens,
                ticket: _,
                proof: _,
            } => {
                nonce.push_text(&mut self.scratch);
                self.scratch.push(b'|');
                self.scratch.extend_from_slice(label.as_str().as_bytes());
                self.scratch.push(b'|');
                push_decimal(&mut self.scratch, offset);
                self.scratch.push(b'|');
                push_decimal(&mut self.scratch, u64::from(*tokens));
                command.arg(&self.scratch[..]).arg(lease.as_millis() as u64);
            }
            Op::Renew {
                nonce,
                label,
                token,
                lease,
            } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]).arg(label.as_str());
                command
                    .arg(token.epoch().0)
                    .arg(token.counter())
                    .arg(lease.as_millis() as u64);
            }
            Op::Release { nonce } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]);
            }
            Op::Adopt {
                nonce,
                label,
                token,
                lease,
                epoch,
            } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]).arg(label.as_str());
                command
                    .arg(token.epoch().0)
                    .arg(token.counter())
                    .arg(lease.as_millis() as u64)
                    .arg(epoch.0);
            }
            Op::Remove { nonce, epoch } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]).arg(epoch.0);
            }
        }
    }
}

/// How long renewals wait for their answers, apart from the connection's own time-out: a peer that
/// vanished never answers, and there must be time to ask again before a lease expires.
pub(super) fn patience(batch: &[Request]) -> Option<Duration> {
    let leases = batch.iter().filter_map(|request| match request.op {
        Op::Renew { lease, .. } | Op::Adopt { lease, .. } => Some(lease),
        _ => None,
    });
    leases.min().map(|lease| (lease / 3).max(PATIENCE_MIN))
}
