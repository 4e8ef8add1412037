//! Holders and waiters as values.

use std::future::Future;

use futures_util::{StreamExt, stream};
use ringfence_api::v1::{
    HeldLock, InspectResponse, ListResponse, LockHolder, LockKind, LockWaiter,
};
use ringfence_coordinator::{
    engine::{AcquireError, Locks, LocksPage},
    ids::{ClientId, Nonce, Token},
    name::{Label, LockKey, Namespace},
    shard::{self, Holder, Inspection, LockMode, QueuedWaiter, ShardError},
};
use ringfence_ring::{ShardId, SlotCount};
use tonic::{Status, Streaming};

use super::told::length;

/// The API does not tell the nonces of others.
const NONCE: Nonce = Nonce {
    client: ClientId(0),
    sequence: 0,
};

pub(super) fn inspection(found: InspectResponse) -> Inspection {
    let waiter = |waiter: LockWaiter| {
        let (kind, shares) = part(waiter.kind(), waiter.permits, waiter.exclusive);
        QueuedWaiter {
            nonce: NONCE,
            label: Label::new(&waiter.label),
            mode: LockMode::of(kind, shares, waiter.capacity),
            callers: waiter.callers,
        }
    };
    Inspection {
        holder: found.holder.map(holder),
        others: found.others.into_iter().map(holder).collect(),
        waiters: found.waiters.into_iter().map(waiter).collect(),
    }
}

pub(super) fn holder(holder: LockHolder) -> Holder {
    let (kind, shares) = part(holder.kind(), holder.permits, holder.exclusive);
    Holder {
        nonce: NONCE,
        label: Label::new(&holder.label),
        token: Token::from_number(holder.first_token),
        tokens: holder.tokens,
        kind,
        shares,
        remaining: length(holder.remaining),
        held_for: length(holder.held_for),
    }
}

/// The kind, and the shares.
fn part(kind: LockKind, permits: u32, exclusive: bool) -> (shard::LockKind, u32) {
    match kind {
        LockKind::Semaphore => (shard::LockKind::Semaphore, permits),
        LockKind::ReadWrite if exclusive => (shard::LockKind::ReadWrite, LockMode::Write.shares()),
        LockKind::ReadWrite => (shard::LockKind::ReadWrite, LockMode::Read.shares()),
        LockKind::Mutex | LockKind::Unspecified => (shard::LockKind::Mutex, 1),
    }
}

/// The pages that a coordinator sends. If the call or its stream fails, the last page has the error.
pub(super) fn locks(
    pages: impl Future<Output = Result<Streaming<ListResponse>, AcquireError>> + Send + 'static,
) -> Locks {
    let pages = stream::once(pages).flat_map(|pages| match pages {
        Ok(pages) => pages.map(of_message).left_stream(),
        Err(error) => stream::iter([failed(&error.to_string())]).right_stream(),
    });
    Locks::of_pages(pages.boxed())
}

fn of_message(page: Result<ListResponse, Status>) -> LocksPage {
    match page {
        Ok(page) => of_page(page),
        Err(status) => failed(status.message()),
    }
}

fn of_page(page: ListResponse) -> LocksPage {
    let locks = match &*page.error {
        "" => Ok(page.locks.into_iter().filter_map(lock).collect()),
        reason => Err(refused(reason)),
    };
    LocksPage {
        shard: ShardId::new(&page.shard).unwrap_or_else(|_| coordinator()),
        locks,
    }
}

fn failed(reason: &str) -> LocksPage {
    LocksPage {
        shard: coordinator(),
        locks: Err(refused(reason)),
    }
}

pub(super) fn refused(reason: &str) -> ShardError {
    let reason = reason.to_owned();
    ShardError::Unreachable { reason }
}

pub(super) fn coordinator() -> ShardId {
    ShardId::new("coordinator").expect("it is a name of a shard")
}

/// A lock whose names are not valid here is left out.
fn lock(lock: HeldLock) -> Option<shard::HeldLock> {
    let namespace = Namespace::new(&lock.namespace).ok()?;
    Some(shard::HeldLock {
        key: LockKey::new(&namespace, &lock.key, SlotCount::default()).ok()?,
        holder: lock.holder.map(holder)?,
        others: lock.others,
        waiting: lock.waiting,
    })
}
