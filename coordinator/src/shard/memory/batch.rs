//! Batches of requests about locks.

use super::{locks::Locks, state::Memory};
use crate::{
    ids::Token,
    shard::{
        Answers, Notification, Op, Reply, Request, ShardError, ShardTime,
        rules::{Armed, Context, Slots, TokenBlock},
    },
};

/// The documents of a batch that is being applied.
struct Batch<'a> {
    armed: &'a mut Armed,
    slots: &'a mut Slots,
    locks: &'a mut Locks,
    notifications: &'a mut Vec<Notification>,
    /// There is no memory for new locks.
    full: bool,
    now_ms: u64,
}

impl Memory {
    /// Applies a batch, or nothing of it.
    pub(super) fn call(&mut self, batch: &[Request], now_ms: u64) -> Result<Answers, ShardError> {
        let armed = self.head.armed_mut()?;
        let quiet = batch.first().is_some_and(|first| armed.is_quiet(first.map));
        let could_grant = !self.full && batch.iter().any(is_acquire);
        let mut applying = Batch {
            armed,
            slots: &mut self.slots,
            locks: &mut self.locks,
            notifications: &mut self.notifications,
            full: self.full,
            now_ms,
        };
        let replies = applying.apply(batch);
        let counter = if could_grant { armed.tokens.counter } else { 0 };
        let token_epoch = armed.tokens.epoch;
        self.head.see_epoch(token_epoch);
        Ok(Answers {
            now: Some(ShardTime(now_ms)),
            quiet,
            counter,
            replies,
        })
    }
}

impl Batch<'_> {
    /// Applies `requests` in their order.
    fn apply(&mut self, requests: &[Request]) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(requests.len());
        let together = |one: &Request, next: &Request| {
            one.map.takes_along(next.map) && is_acquire(one) == is_acquire(next)
        };
        for run in requests.chunk_by(together) {
            // Not sooner: waiters that got a key in an earlier run must have the lower tokens.
            let (count, floors) = self.tokens_for(run);
            let mut block = self.armed.tokens.set_aside_from(count, floors);
            replies.extend(
                run.iter()
                    .map(|request| self.apply_one(request, &mut block)),
            );
        }
        replies
    }

    /// The number of tokens to set aside for a run of requests, whether they are granted or not, and the floors among
    /// them.
    fn tokens_for(&self, run: &[Request]) -> (u64, Vec<(u64, Token)>) {
        let (mut count, mut floors) = (0, Vec::new());
        for request in run {
            if let Op::Acquire { tokens, floor, .. } = request.op
                && !self.full
            {
                floors.extend(floor.map(|floor| (count + 1, floor)));
                count += u64::from(tokens);
            }
        }
        (count, floors)
    }

    fn apply_one(&mut self, request: &Request, block: &mut TokenBlock) -> Reply {
        if self.full && is_acquire(request) {
            return Reply::OutOfMemory;
        }
        let Request { key, map, op } = request;
        let Self {
            armed,
            slots,
            notifications,
            now_ms,
            ..
        } = self;
        let (slot, quiet) = (slots.get(key.slot()), armed.is_quiet(*map));
        self.locks.change(key, *now_ms, |lock| {
            let mut context = Context {
                armed,
                slot,
                import: slots.import(key.slot()),
                key,
                lock,
                notifications,
                quiet,
                now_ms: *now_ms,
            };
            context.apply(op, block)
        })
    }
}

fn is_acquire(request: &Request) -> bool {
    matches!(request.op, Op::Acquire { .. })
}
