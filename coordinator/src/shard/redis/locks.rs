//! A batch of operations on locks, as script calls.

use std::time::Duration;

use redis::Cmd;

use super::{
    Script,
    batch::{Call, Verb},
    connection::Keys,
    link::RedisLink,
    scripts,
};
use crate::{
    ids::Token,
    limits::{COUNTER_MAX, TICKET_KEEP, WAITERS_MAX},
    name::{Label, push_decimal, push_digits},
    shard::{LockMode, Op, Proof, Request, Ticket},
};

/// A slow server must not lose its connections because leases are very short.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// The greatest number with ten digits. A claim time that is cut to it is reported to its receiver.
const CLAIM_MS_MAX: u128 = 9_999_999_999;

impl RedisLink {
    /// The script call for `call`.
    pub(super) fn command(&mut self, call: &Call, batch: &[Request]) -> Cmd {
        let keys = &self.connection.keys;
        let server = &self.connection.server;
        let replid = &server.replid;
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
            Verb::Share => (&scripts::SHARE, &all),
            Verb::Renew => (&scripts::RENEW, &all),
            Verb::Release => (&scripts::RELEASE, &all),
            Verb::Confirm => (&scripts::CONFIRM, &all),
            Verb::Adopt => (&scripts::ADOPT, &[quiet, state, slots, queues, ctr]),
            Verb::Remove => (&scripts::REMOVE, &[slots]),
        };
        let mut command = server.call(script, named.len() + count);
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
            command.arg(call.by_map(batch));
        }
        if matches!(
            call.verb,
            Verb::Acquire | Verb::Share | Verb::Renew | Verb::Release
        ) {
            command.arg(COUNTER_MAX);
        }
        if matches!(call.verb, Verb::Acquire | Verb::Share) {
            command
                .arg(call.tokens(batch))
                .arg(TICKET_KEEP.as_millis() as u64)
                .arg(WAITERS_MAX)
                .arg(call.declared(batch).0);
        }
        if call.verb == Verb::Acquire {
            self.push_more(&mut command, call, batch);
        }
        for (op, offset) in call.ops(batch) {
            self.push_op(&mut command, op, offset);
        }
        command
    }

    /// Appends the tickets and proofs of all operations as one argument, which is empty if there are none: the server
    /// creates a string per argument, and needs these only if there are waiters, or a slot migrates.
    fn push_more(&mut self, command: &mut Cmd, call: &Call, batch: &[Request]) {
        let more = |op: &Op| match op {
            Op::Acquire { ticket, proof, .. } => {
                // An exclusive lock is granted only if no holder is left.
                let absent = proof.filter(|proof| proof.left == 0);
                (*ticket, absent.map(|proof| proof.epoch))
            }
            _ => (None, None),
        };
        let of_all = || call.ops(batch).map(|(op, _)| more(op));
        self.scratch.clear();
        if of_all().any(|more| more != (None, None)) {
            for (ticket, absent) in of_all() {
                // A claim of 0 means that there is no ticket.
                let (sent, claim, callers) = ticket.map_or((0, 0, 0), ticket_parts);
                push_digits(&mut self.scratch, sent, 20);
                push_digits(&mut self.scratch, claim, 10);
                push_digits(&mut self.scratch, callers, 5);
                // 0 is the epoch of no migration.
                push_digits(&mut self.scratch, absent.map_or(0, |epoch| epoch.0), 10);
            }
        }
        command.arg(&self.scratch[..]);
    }

    /// Appends the terms, the ticket and the proof of an acquire that takes shares.
    fn push_share(
        &mut self,
        command: &mut Cmd,
        (mode, preferred): (LockMode, bool),
        ticket: Option<Ticket>,
        proof: Option<Proof>,
    ) {
        if mode == LockMode::Exclusive {
            return;
        }
        let (share, capacity) = (share_of(mode), mode.capacity());
        command.arg(format!("{share}|{capacity}|{}", u8::from(preferred)));
        let ticket = ticket.map(ticket_parts);
        // Of one width, so that texts compare.
        let ticket = ticket.map(|(sent, claim, callers)| format!("{sent:020}|{claim}|{callers}"));
        command.arg(ticket.unwrap_or_default());
        let proof = proof.map(|proof| format!("{}|{}", proof.epoch.0, proof.left));
        command.arg(proof.unwrap_or_default());
    }

    /// Appends one operation's arguments; `offset` is that of its first token.
    fn push_op(&mut self, command: &mut Cmd, op: &Op, offset: u64) {
        let (Op::Acquire { nonce, .. }
        | Op::Renew { nonce, .. }
        | Op::Confirm { nonce, .. }
        | Op::Release { nonce }
        | Op::Adopt { nonce, .. }
        | Op::Remove { nonce, .. }) = op;
        self.scratch.clear();
        nonce.push_text(&mut self.scratch);
        if let Op::Acquire { label, tokens, .. } = op {
            self.scratch.push(b'|');
            self.scratch.extend_from_slice(label.as_str().as_bytes());
            self.scratch.push(b'|');
            push_decimal(&mut self.scratch, offset);
            self.scratch.push(b'|');
            push_decimal(&mut self.scratch, u64::from(*tokens));
        }
        command.arg(&self.scratch[..]);
        let millis = |lease: &Duration| lease.as_millis() as u64;
        match op {
            Op::Acquire {
                lease,
                mode,
                preferred,
                ticket,
                proof,
                ..
            } => {
                command.arg(millis(lease));
                self.push_share(command, (*mode, *preferred), *ticket, *proof);
            }
            Op::Renew {
                label,
                token,
                mode,
                lease,
                ..
            } => {
                let claim = push_token(command, label, *token).arg(millis(lease));
                claim.arg(share_of(*mode));
            }
            Op::Confirm {
                label,
                token,
                tokens,
                lease,
                install,
                ..
            } => {
                let block = push_token(command, label, *token).arg(*tokens);
                block.arg(millis(lease)).arg(u8::from(*install));
            }
            Op::Release { .. } => {}
            Op::Adopt {
                label,
                own,
                token,
                tokens,
                mode,
                lease,
                epoch,
                ..
            } => {
                let block = push_token(command, label, *token).arg(*tokens);
                let claim = block.arg(own.epoch().0).arg(own.counter());
                claim.arg(millis(lease)).arg(epoch.0).arg(share_of(*mode));
            }
            Op::Remove { epoch, .. } => _ = command.arg(epoch.0),
        }
    }
}

/// The sender's clock in nanoseconds, the claim in milliseconds, and the callers of a ticket: five digits.
fn ticket_parts(ticket: Ticket) -> (u64, u64, u64) {
    let claim_ms = ticket.claim.as_millis().clamp(1, CLAIM_MS_MAX);
    let callers = ticket.callers.clamp(1, 99_999);
    (ticket.sent.as_nanos(), claim_ms as u64, u64::from(callers))
}

/// The kind and the shares of a holder; empty for a mutex.
fn share_of(mode: LockMode) -> String {
    match mode {
        LockMode::Exclusive => String::new(),
        _ => format!("{}|{}", char::from(mode.kind().letter()), mode.shares()),
    }
}

fn push_token<'a>(command: &'a mut Cmd, label: &Label, token: Token) -> &'a mut Cmd {
    let named = command.arg(label.as_str());
    named.arg(token.epoch().0).arg(token.counter())
}

/// How long renewals wait for their answers, apart from the connection's own time-out: a peer that
/// vanished never answers, and there must be time to ask again before a lease expires.
pub(super) fn patience(batch: &[Request]) -> Option<Duration> {
    let leases = batch.iter().filter_map(|request| match request.op {
        Op::Renew { lease, .. } | Op::Confirm { lease, .. } | Op::Adopt { lease, .. } => {
            Some(lease)
        }
        _ => None,
    });
    leases.min().map(|lease| (lease / 3).max(PATIENCE_MIN))
}
