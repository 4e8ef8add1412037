//! What happens to a key at its shard.

use super::{
    Rule, SetsModel, World,
    state::{Entry, Stray},
};
use crate::words::Nonce;

impl SetsModel {
    /// A try: it joins no queue. Whether it is granted.
    pub(super) fn try_key(&self, world: &mut World, key: u8, nonce: Nonce) -> bool {
        let ends = world.now + self.config.lease;
        let key = &mut world.keys[usize::from(key)];
        let is_free = key.record.is_none() && key.queue.is_empty();
        if is_free {
            key.record = Some(Entry { nonce, ends });
        }
        is_free
    }

    /// A request of a waiter: it is granted, or has its place in the queue.
    pub(super) fn ask_for_key(&self, world: &mut World, key: u8, nonce: Nonce) {
        let ends = world.now + self.config.lease;
        let queue = &mut world.keys[usize::from(key)].queue;
        if !queue.iter().any(|ticket| ticket.nonce == nonce) {
            queue.push(Entry { nonce, ends });
        }
        self.pass(world, key);
    }

    /// A request of a call that is over arrives.
    pub(super) fn stray(&self, world: &mut World, stray: Stray) {
        self.try_key(world, stray.key, stray.nonce);
        if stray.released {
            self.release_key(world, stray.key, stray.nonce);
        }
    }

    /// A release takes record and ticket of its acquisition away.
    pub(super) fn release_key(&self, world: &mut World, key: u8, nonce: Nonce) {
        let entry = &mut world.keys[usize::from(key)];
        entry.queue.retain(|ticket| ticket.nonce != nonce);
        entry.record = entry.record.filter(|record| record.nonce != nonce);
        self.pass(world, key);
    }

    /// Grants a free key to the first in the queue.
    fn pass(&self, world: &mut World, key: u8) {
        let ends = world.now + self.config.lease;
        let key = &mut world.keys[usize::from(key)];
        if key.record.is_none() && !key.queue.is_empty() {
            let nonce = key.queue.remove(0).nonce;
            key.record = Some(Entry { nonce, ends });
        }
    }

    /// Records that nobody renewed end, and tickets of those that ask no more.
    pub(super) fn expire(&self, world: &mut World) {
        let now = world.now;
        for key in 0..self.config.keys {
            let entry = &mut world.keys[usize::from(key)];
            entry.queue.retain(|ticket| now < ticket.ends);
            if self.holds(Rule::LeasesEnd) {
                entry.record = entry.record.filter(|record| now < record.ends);
            }
            self.pass(world, key);
        }
    }
}
