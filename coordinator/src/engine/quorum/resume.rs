//! A replicated lease that another engine was granted, for a holder outside of both: taken up, or released, at a majority.

use std::sync::Arc;

use futures_util::{FutureExt, stream::FuturesUnordered};
use ringfence_ring::ShardId;
use tokio::sync::mpsc;

use super::{
    super::{
        AcquireError, LeaseRef, ReleaseAnswer,
        local::{Terms, events},
        ring::{Declaration, Ring, ShardLease},
    },
    handle::released,
    lease::ReplicatedLease,
    vote::{deadline, majority},
};
use crate::ids::Token;

/// The answer of a rank: whether it has the record.
type Answered = (ShardId, Result<bool, AcquireError>);

impl ReplicatedLease {
    /// The lease `of` another engine, which has as many nonces as the lock has replicas. It is not held here yet.
    pub(crate) fn of_another(
        ring: &Arc<Ring>,
        declaration: Declaration,
        of: &LeaseRef,
        terms: Terms,
    ) -> Result<Arc<Self>, AcquireError> {
        let mut nonces = [of.nonce].into_iter().chain(of.replicas.iter().copied());
        let nonce = || nonces.next().expect("one per replica");
        let lease = Self::begin(ring, declaration, &of.key, terms, of.tokens, 0, nonce)?;
        lease.state.set_tokens_granted(of.tokens);
        let mut ranks = lease.ranks.lock();
        // It asks for nothing: no answer of a rank makes it held but those of `take_up`.
        ranks.is_decided = true;
        // A release goes to a rank that has not answered, too.
        for rank in &ranks.all {
            rank.lease.in_flight.lock().here.comes();
        }
        drop(ranks);
        Ok(lease)
    }

    /// Has every rank confirm its record, with `token`. Returns whether a majority has it; if not, so many have none that no majority can
    /// have it.
    ///
    /// A record of its nonces was written by the grant, or by an engine that believed in the lock, and two majorities have a
    /// rank in common. So nobody else has held the lock since.
    pub(crate) async fn take_up(self: &Arc<Self>, token: Token) -> Result<bool, AcquireError> {
        let leases = self.ranks.lock().leases();
        let (all, majority) = (leases.len(), majority(self.declaration.replicas));
        let (tell, mut told) = mpsc::channel(all);
        for (index, lease) in leases.into_iter().enumerate() {
            let (me, tell) = (self.clone(), tell.clone());
            let shard = lease.renewer().driver.id().clone();
            // Later answers count, too.
            let confirming = async move {
                let answer = me.confirm_at(index, &lease, token).await;
                let _ = tell.send((shard, answer)).await;
            };
            let around = &self.ring.requests.around;
            let stop = around.stop.clone();
            around
                .tasks
                .spawn(async move { stop.run_until_cancelled(confirming).await });
        }
        drop(tell);
        let (mut lost, mut doubts) = (0, Vec::new());
        while let Some((shard, answer)) = told.recv().await as Option<Answered> {
            match answer {
                Ok(true) if self.begins(token) => return Ok(true),
                Ok(true) => {}
                Ok(false) => lost += 1,
                Err(error) => doubts.push((shard, error)),
            }
            if lost > all - majority {
                return Ok(false);
            }
            if lost + doubts.len() > all - majority {
                break;
            }
        }
        Err(AcquireError::NoMajority {
            replicas: self.declaration.replicas,
            shards: doubts,
        })
    }

    /// Has the rank confirm its record. Returns whether it has one.
    async fn confirm_at(
        &self,
        index: usize,
        lease: &Arc<ShardLease>,
        token: Token,
    ) -> Result<bool, AcquireError> {
        let routing = &self.ring.routing;
        let at = lease.renewer().clone();
        let Some(sent) = lease.confirmed(routing, token, &at).await? else {
            return Ok(false);
        };
        let now = self.now();
        {
            let mut ranks = self.ranks.lock();
            let rank = &mut ranks.all[index];
            // Otherwise it was replaced, has ended, or the answer came too late.
            if !Arc::ptr_eq(&rank.lease, lease) || !lease.granted(token, sent, now, None) {
                return Err(AcquireError::TooLate);
            }
            events::replica_granted(lease, now);
            rank.granted(token, false);
        }
        at.keep(lease);
        Ok(true)
    }

    /// It is held from now on, if a majority confirmed it. Returns whether it is.
    fn begins(&self, token: Token) -> bool {
        let ranks = self.ranks.lock();
        let now = self.now();
        let deadline = deadline(self.declaration.replicas, &ranks.answers());
        let sent = deadline.map(|deadline| self.sent_for(deadline));
        let Some(sent) = sent.filter(|sent| self.state.granted(token, *sent, now, None)) else {
            return false;
        };
        events::renewed(&self.state, false, sent, now);
        true
    }

    /// Releases it at every rank, the lead last.
    pub(crate) async fn release_at_all(&self) -> ReleaseAnswer {
        self.state.end();
        let leases = self.ranks.lock().leases().into_iter().enumerate().rev();
        let releases: FuturesUnordered<_> = leases
            .map(|(index, lease)| {
                let released = lease.release_of_another(&self.ring.routing);
                released.map(move |answer| (index == 0, answer))
            })
            .collect();
        released(releases, majority(self.declaration.replicas)).await
    }
}
