//! Batches of operations.

use super::{
    super::{head::Armed, lock_state::LockState, slots::Slots, tokens::TokenBlock},
    Context,
};
use crate::{
    name::LockKey,
    shard::{Answers, LockMode, Notification, Op, Reply, Request, ShardTime},
};

/// The documents of locks.
pub(crate) trait Locks {
    /// Lets `change` read and write the document of `key`.
    fn change<T>(
        &mut self,
        key: &LockKey,
        now_ms: u64,
        change: impl FnOnce(&mut LockState) -> T,
    ) -> T;
}

/// The documents of a batch, its time, and its effects.
pub(crate) struct Batch<'a, L> {
    pub(crate) armed: &'a mut Armed,
    pub(crate) slots: &'a mut Slots,
    pub(crate) locks: &'a mut L,
    /// Receives the notifications to send.
    pub(crate) notifications: &'a mut Vec<Notification>,
    /// There is no memory for new locks.
    pub(crate) full: bool,
    pub(crate) now_ms: u64,
    /// By how much the clock may be late: ends count from both together.
    pub(crate) slack_ms: u64,
}

impl<L: Locks> Batch<'_, L> {
    /// Applies `requests` in their order.
    pub(crate) fn apply(&mut self, requests: &[Request]) -> Answers {
        let is_quiet = |first: &Request| self.armed.is_quiet(first.map);
        let quiet = requests.first().is_some_and(is_quiet);
        let could_grant = !self.full && requests.iter().any(is_acquire);
        let mut replies = Vec::with_capacity(requests.len());
        let together = |one: &Request, next: &Request| {
            one.takes_along(next) && acquired(one) == acquired(next)
        };
        for run in requests.chunk_by(together) {
            // Not sooner: waiters that got a key in an earlier run must have the lower tokens.
            let mut block = self.armed.tokens.set_aside(self.tokens_for(run));
            replies.extend(
                run.iter()
                    .map(|request| self.apply_one(request, &mut block)),
            );
        }
        let counter = self.armed.tokens.counter;
        Answers {
            now: Some(ShardTime(self.now_ms)),
            quiet,
            counter: if could_grant { counter } else { 0 },
            replies,
        }
    }

    /// The number of tokens to set aside for a run of requests, whether they are granted or not.
    fn tokens_for(&self, run: &[Request]) -> u64 {
        let tokens = |request: &Request| match request.op {
            Op::Acquire { tokens, .. } if !self.full && !self.armed.is_outdated(request) => {
                u64::from(tokens)
            }
            _ => 0,
        };
        run.iter().map(tokens).sum()
    }

    fn apply_one(&mut self, request: &Request, block: &mut TokenBlock) -> Reply {
        if self.full && is_acquire(request) {
            return Reply::OutOfMemory;
        }
        let Request { key, map, op, .. } = request;
        let Self {
            armed,
            slots,
            notifications,
            now_ms,
            slack_ms,
            ..
        } = self;
        let (slot, quiet) = (slots.get(key.slot()), armed.is_quiet(*map));
        let outdated = armed.is_outdated(request);
        self.locks.change(key, *now_ms, |lock| {
            lock.limit_ends(*now_ms, *slack_ms);
            let mut context = Context {
                armed,
                slot,
                import: slots.import(key.slot()),
                key,
                lock,
                notifications,
                quiet,
                outdated,
                now_ms: *now_ms,
                slack_ms: *slack_ms,
            };
            context.apply(op, block)
        })
    }
}

fn is_acquire(request: &Request) -> bool {
    matches!(request.op, Op::Acquire { .. })
}

/// Whether an acquire takes the whole key; none: it is another operation.
fn acquired(request: &Request) -> Option<bool> {
    match request.op {
        Op::Acquire { mode, .. } => Some(mode == LockMode::Exclusive),
        _ => None,
    }
}
