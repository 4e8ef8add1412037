//! One request, until it is answered.

use std::{iter, sync::Arc, time::Duration};

use ringfence_segment_lock::{
    Effect, HashKey, StorageError,
    segment::{Refusal, Request},
};
use tokio::time::sleep;

use super::{
    super::{
        Inner,
        ring::{renewer::LeaseRenewer, routing::Route},
    },
    error::CounterFault,
};
use crate::{
    backoff::Backoff,
    driver::{Answered, CounterLane},
    limits::COUNTER_PATIENCE,
    name::LockKey,
    shard::{CounterOp, CounterReply, CounterRequest},
};

/// First and longest pause before shards are asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));

impl Inner {
    /// Sends `op` to the shard of `key`, and repeats it for [`COUNTER_PATIENCE`]: every request
    /// about counters takes effect once. `of`: the key of the account's hashes, and the lane.
    ///
    /// # Errors
    ///
    /// The error of the last attempt. Its effect is unknown if that of any attempt was: also if the
    /// last attempt was refused, because that refusal says nothing about an earlier attempt, which
    /// may be applied later. A read has none.
    pub(super) async fn ask_counter(
        &self,
        key: &LockKey,
        op: &CounterOp,
        of: (HashKey, CounterLane),
    ) -> Result<CounterReply, StorageError> {
        if self.coordinators.is_some() {
            return Err(CounterFault::NoShards.into());
        }
        if let Some((shard, address)) = self.routing.locks_only() {
            return Err(CounterFault::LocksOnly { shard, address }.into());
        }
        self.has_runtime().map_err(|error| CounterFault::Shard {
            shard: self.routing.route(key).renewer.driver.id().clone(),
            error,
        })?;
        let until = self.now() + COUNTER_PATIENCE;
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let mut unknown = false;
        loop {
            let fault = match self.ask_ends(key, op, of).await {
                Ok(CounterReply::Segment(Err(refusal))) if unknown && !goes_on(op, &refusal) => {
                    return Err(StorageError {
                        effect: Effect::Unknown,
                        is_retryable: refusal.is_retryable(),
                        source: Arc::new(refusal),
                    });
                }
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            unknown |= fault.effect() == Effect::Unknown && !op.only_reads();
            let pause = backoff.next(&self.around.random);
            if !fault.is_retryable() || self.now() + pause >= until {
                let effect = match unknown {
                    true => Effect::Unknown,
                    false => Effect::None,
                };
                return Err(StorageError {
                    effect,
                    ..fault.into()
                });
            }
            sleep(pause).await;
        }
    }

    /// Asks the shard of `key`; if the slot is migrating, both shards if necessary: one may be
    /// unreachable, and the other may have the key.
    async fn ask_ends(
        &self,
        key: &LockKey,
        op: &CounterOp,
        of: (HashKey, CounterLane),
    ) -> Result<CounterReply, CounterFault> {
        let (mut moves, mut away) = (None, None);
        for renewer in ends(self.routing.route(key)) {
            let shard = || renewer.driver.id().clone();
            let reply = match self.ask_at(&renewer, key, op, of).await {
                Ok(reply) => reply,
                Err(fault) => {
                    away = away.or(Some(fault));
                    continue;
                }
            };
            match reply {
                CounterReply::Moved { .. } => {
                    self.routing.refresh();
                    moves = Some(shard());
                }
                CounterReply::Moving { epoch } | CounterReply::Coming { epoch } => {
                    // Has the view refreshed if it knows no such move.
                    self.routing.migration(key, epoch);
                    moves = Some(shard());
                }
                CounterReply::NotOnDisk => return Err(CounterFault::NotOnDisk { shard: shard() }),
                CounterReply::TooFewReplicas { replicas, required } => {
                    return Err(CounterFault::TooFewReplicas {
                        shard: shard(),
                        replicas,
                        required,
                    });
                }
                CounterReply::OutOfMemory => {
                    return Err(CounterFault::OutOfMemory { shard: shard() });
                }
                CounterReply::Foreign => return Err(CounterFault::Foreign { shard: shard() }),
                reply => return Ok(reply),
            }
        }
        Err(away.unwrap_or_else(|| CounterFault::Moves {
            shard: moves.expect("a route has a shard, which was away or said that it moves"),
        }))
    }

    async fn ask_at(
        &self,
        renewer: &LeaseRenewer,
        key: &LockKey,
        op: &CounterOp,
        (hash_key, lane): (HashKey, CounterLane),
    ) -> Result<CounterReply, CounterFault> {
        let request = CounterRequest {
            key: key.clone(),
            map: renewer.map(key.slot()),
            hash_key,
            op: op.clone(),
        };
        match renewer.driver.submit_counter(request, lane).await {
            Ok(Ok(Answered { reply, .. })) => Ok(reply),
            Ok(Err(error)) => Err(CounterFault::Shard {
                shard: renewer.driver.id().clone(),
                error,
            }),
            Err(_) => Err(CounterFault::Closed),
        }
    }
}

/// Whether the counter repeats the request after that refusal; otherwise the refusal is the answer.
fn goes_on(op: &CounterOp, refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Layout { .. } | Refusal::Busy { .. } | Refusal::Conflict => true,
        // It is gone, as it was asked for.
        Refusal::Missing => matches!(op, CounterOp::Segment(Request::Remove(_))),
        _ => false,
    }
}

/// The shards to ask, in order.
fn ends(Route { renewer, migration }: Route) -> impl Iterator<Item = Arc<LeaseRenewer>> {
    let first = renewer.clone();
    let others = migration
        .into_iter()
        .flat_map(|migration| [migration.to, migration.from]);
    let others = others.filter(move |end| !Arc::ptr_eq(end, &first));
    iter::once(renewer).chain(others)
}
