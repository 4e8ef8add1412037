//! A holder moves with its slot from shard to shard: no resize loses its lock.
//!
//! ```text
//! renewed at A, `moving` ─► adopt at B ─► adopted: it is at B ─► remove at A
//! ```

use std::sync::Arc;

use super::{
    super::local::events, in_flight::InFlight, renewer::LeaseRenewer, shard_lease::ShardLease,
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::Epoch,
    shard::{Op, Reply},
};

impl LeaseRenewer {
    /// The shard has sealed the slot of `lease`, which it has just renewed: asks the slot's next
    /// shard to adopt it. On anything but a clear yes the lease stays here, until the next renewal.
    pub(crate) fn bring_along(self: &Arc<Self>, lease: &Arc<ShardLease>, epoch: Epoch) {
        let Some(migration) = self
            .requests
            .routing()
            .and_then(|routing| routing.migration(&lease.key, epoch))
        else {
            return;
        };
        let to = migration.to;
        let op = Op::Adopt {
            nonce: lease.nonce,
            label: lease.terms.label.clone(),
            // There is no other replica.
            own: lease.token(),
            token: lease.token(),
            tokens: lease.tokens,
            mode: lease.mode(),
            lease: lease.lease_to_ask(),
            epoch,
        };
        let refused = {
            let mut in_flight = lease.in_flight.lock();
            // Under the lock that a release takes after it has ended the lease, as for a renewal.
            if lease.is_over() || !lease.is_at(self) || in_flight.at(self, &to).renewing.is_out() {
                return;
            }
            in_flight.at(self, &to).renewing.sent();
            let (from, asked, next) = (self.clone(), lease.clone(), to.clone());
            let respond = move |answer| from.adopted(&asked, &next, epoch, answer);
            to.submit(lease, op, Respond::Engine(Box::new(respond)))
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    /// The slot's next shard answered.
    fn adopted(
        self: &Arc<Self>,
        lease: &Arc<ShardLease>,
        to: &Arc<Self>,
        epoch: Epoch,
        answer: Answer,
    ) {
        let now = self.around.clock.now();
        let mut in_flight = lease.in_flight.lock();
        in_flight
            .at(&lease.renewer(), to)
            .renewing
            .answered(&answer);
        let Ok(Answered {
            reply: Reply::Adopted { contended },
            sent,
        }) = answer
        else {
            return;
        };
        in_flight.at(&lease.renewer(), to).comes();
        // Past the deadline here it is gone, and the record there is released with all the rest.
        if !self.goes(lease, to, &mut in_flight, sent, now) {
            return;
        }
        drop(in_flight);
        events::renewed(lease, false, sent, now);
        lease.receiver.renewed(lease, false);
        to.keep(lease);
        self.remove(lease, epoch);
        if contended {
            lease.receiver.contended(lease);
        }
    }

    /// `lease` is at `to` from now on, for the lease that `to` answered to the request sent at
    /// `sent`. Returns whether it was here, and was held.
    fn goes(
        self: &Arc<Self>,
        lease: &ShardLease,
        to: &Arc<Self>,
        in_flight: &mut InFlight<Self>,
        sent: Instant,
        now: Instant,
    ) -> bool {
        let goes = lease.is_held(now) && lease.would_last(sent, now) && self.hand_over(lease, to);
        if goes {
            in_flight.goes(self, to);
            lease.adopted(sent);
        }
        goes
    }

    /// Removes the record of `lease` here, after it moved away. Nothing waits for that: a record
    /// that is not removed expires.
    fn remove(self: &Arc<Self>, lease: &Arc<ShardLease>, epoch: Epoch) {
        let (from, removed) = (self.clone(), lease.clone());
        let respond = move |answer: Answer| {
            if answer.is_ok() {
                let mut in_flight = removed.in_flight.lock();
                let here = removed.renewer();
                in_flight.removed(&here, &from);
            }
        };
        let op = Op::Remove {
            nonce: lease.nonce,
            epoch,
        };
        let sent = self.submit(lease, op, Respond::Engine(Box::new(respond)));
        if let Err((respond, error)) = sent {
            respond.respond(Err(error));
        }
    }

    /// The slot of `lease` has left this shard: looks for its present shard. Returns whether that is
    /// another.
    pub(crate) fn follow(self: &Arc<Self>, lease: &Arc<ShardLease>) -> bool {
        let Some(routing) = self.requests.routing() else {
            return false;
        };
        routing.refresh();
        let route = routing.route(&lease.key);
        // While it is migrating, it is held here until it is adopted there.
        route.migration.is_none() && self.rehome(lease, &route.renewer)
    }

    /// Renews `lease` at the shard of `to` from now on. Returns whether that is another shard.
    pub(crate) fn rehome(self: &Arc<Self>, lease: &Arc<ShardLease>, to: &Arc<Self>) -> bool {
        let mut in_flight = lease.in_flight.lock();
        if Arc::ptr_eq(self, to) || lease.is_over() || !self.hand_over(lease, to) {
            return false;
        }
        in_flight.goes(self, to);
        in_flight.here.to_put_back = true;
        drop(in_flight);
        to.tend_at(lease, self.around.clock.now());
        true
    }
}
