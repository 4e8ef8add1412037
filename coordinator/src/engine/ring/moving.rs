//! A holder moves with its slot from shard to shard: no resize loses its lock.
//!
//! ```text
//! renewed at A, `moving` ─► adopt at B ─► adopted: it is at B ─► remove at A
//! ```

use std::sync::Arc;

use super::{super::local::events, hold::Hold, in_flight::InFlight, renewer::LeaseRenewer};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::Epoch,
    shard::{Op, Reply},
};

impl LeaseRenewer {
    /// The shard has sealed the slot of `hold`, which it has just renewed: asks the slot's next
    /// shard to adopt it. On anything but a clear yes the hold stays here, until the next renewal.
    pub(crate) fn bring_along(self: &Arc<Self>, hold: &Arc<Hold>, epoch: Epoch) {
        let Some(way) = self
            .requests
            .routing()
            .and_then(|routing| routing.way(&hold.key, epoch))
        else {
            return;
        };
        let to = way.to;
        let op = Op::Adopt {
            nonce: hold.nonce,
            label: hold.terms.label.clone(),
            token: hold.token(),
            lease: hold.lease_to_ask(),
            epoch,
        };
        let refused = {
            let mut in_flight = hold.in_flight.lock();
            // Under the lock that a release takes after it has ended the hold, as for a renewal.
            if hold.is_over() || !hold.is_at(self) || in_flight.at(self, &to).renewing.is_out() {
                return;
            }
            in_flight.at(self, &to).renewing.sent();
            let (from, asked, next) = (self.clone(), hold.clone(), to.clone());
            let respond = move |answer| from.adopted(&asked, &next, epoch, answer);
            to.submit(hold, op, Respond::Engine(Box::new(respond)))
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    /// The slot's next shard answered.
    fn adopted(self: &Arc<Self>, hold: &Arc<Hold>, to: &Arc<Self>, epoch: Epoch, answer: Answer) {
        let now = self.around.clock.now();
        let mut in_flight = hold.in_flight.lock();
        in_flight.at(&hold.renewer(), to).renewing.answered(&answer);
        let Ok(Answered {
            reply: Reply::Adopted { contended },
            sent,
        }) = answer
        else {
            return;
        };
        in_flight.at(&hold.renewer(), to).comes();
        // Past the deadline here it is gone, and the record there is released with all the rest.
        if !self.goes(hold, to, &mut in_flight, sent, now) {
            return;
        }
        drop(in_flight);
        events::renewed(hold, false, sent, now);
        to.keep(hold);
        self.remove(hold, epoch);
        if contended {
            self.requests.local.contended(hold);
        }
    }

    /// `hold` is at `to` from now on, for the lease that `to` answered to the request sent at
    /// `sent`. Returns whether it was here, and was held.
    fn goes(
        self: &Arc<Self>,
        hold: &Hold,
        to: &Arc<Self>,
        in_flight: &mut InFlight,
        sent: Instant,
        now: Instant,
    ) -> bool {
        let goes = hold.is_held(now) && hold.would_last(sent, now) && self.hand_over(hold, to);
        if goes {
            in_flight.goes(self, to);
            hold.adopted(sent);
        }
        goes
    }

    /// Removes the record of `hold` here, after it moved away. Nothing waits for that: a record
    /// that is not removed expires.
    fn remove(self: &Arc<Self>, hold: &Arc<Hold>, epoch: Epoch) {
        let (from, removed) = (self.clone(), hold.clone());
        let respond = move |answer: Answer| {
            if answer.is_ok() {
                let mut in_flight = removed.in_flight.lock();
                let here = removed.renewer();
                in_flight.removed(&here, &from);
            }
        };
        let op = Op::Remove {
            nonce: hold.nonce,
            epoch,
        };
        let sent = self.submit(hold, op, Respond::Engine(Box::new(respond)));
        if let Err((respond, error)) = sent {
            respond.respond(Err(error));
        }
    }

    /// The slot of `hold` has left this shard: looks for its present shard. Returns whether that is
    /// another.
    pub(crate) fn follow(self: &Arc<Self>, hold: &Arc<Hold>) -> bool {
        let Some(routing) = self.requests.routing() else {
            return false;
        };
        routing.refresh();
        let route = routing.route(&hold.key);
        // While it is in motion, it is held here until it is adopted there.
        route.way.is_none() && self.rehome(hold, &route.renewer)
    }

    /// Renews `hold` at the shard of `to` from now on. Returns whether that is another shard.
    pub(crate) fn rehome(self: &Arc<Self>, hold: &Arc<Hold>, to: &Arc<Self>) -> bool {
        let mut in_flight = hold.in_flight.lock();
        if Arc::ptr_eq(self, to) || hold.is_over() || !self.hand_over(hold, to) {
            return false;
        }
        in_flight.goes(self, to);
        drop(in_flight);
        to.tend_at(hold, self.around.clock.now());
        true
    }
}
