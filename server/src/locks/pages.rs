//! The held locks of all shards, page by page.

use std::sync::Arc;

use futures_util::{Stream, stream};
use ringfence_api::v1::{HeldLock, ListResponse};
use ringfence_client::{Locks, LocksPage};
use tonic::Status;

use super::holder;
use crate::access::{Admitted, Caller};

/// The pages of `locks`. The next page is requested once the caller has taken the one before.
pub(super) fn of(
    locks: Locks,
    caller: Arc<Caller>,
    admitted: Admitted,
) -> impl Stream<Item = Result<ListResponse, Status>> {
    let begun = (locks, caller, admitted);
    stream::unfold(begun, |(mut locks, caller, admitted)| async {
        let page = caller.page(locks.next()).await?;
        Some((Ok(response(page)), (locks, caller, admitted)))
    })
}

fn response(LocksPage { shard, locks }: LocksPage) -> ListResponse {
    let shard = shard.to_string();
    match locks {
        Ok(locks) => ListResponse {
            shard,
            locks: locks.iter().map(held).collect(),
            error: String::new(),
        },
        Err(error) => ListResponse {
            shard,
            locks: Vec::new(),
            error: error.to_string(),
        },
    }
}

fn held(lock: &ringfence_client::HeldLock) -> HeldLock {
    HeldLock {
        namespace: lock.key.namespace().to_owned(),
        key: lock.key.key().to_vec(),
        holder: Some(holder(&lock.holder)),
        waiting: lock.waiting,
        others: lock.others,
    }
}
