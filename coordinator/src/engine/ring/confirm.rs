//! The replicas of a lock agree on its token.

use std::sync::Arc;

use super::{Requests, ShardLease, renewer::LeaseRenewer};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::Token,
    shard::{Op, Reply},
};

impl Requests {
    /// Asks again for `lease`, in the queue of its key for so many callers.
    pub(crate) fn ask_for(self: &Arc<Self>, lease: &Arc<ShardLease>, callers: u32) {
        lease.in_flight.lock().callers = callers;
        self.ask(lease);
    }

    /// Has the shard of `lease` confirm `token`, and `install` the grant if it has no record. `then` gets the time when
    /// the request left, if the shard has that record now. Returns whether it was sent: not while a renewal is out.
    pub(crate) fn confirm(
        &self,
        lease: &Arc<ShardLease>,
        token: Token,
        install: bool,
        then: impl FnOnce(Option<Instant>) + Send + 'static,
    ) -> bool {
        let at = lease.renewer().clone();
        let op = request(lease, token, install);
        let refused = {
            let mut in_flight = lease.in_flight.lock();
            // Under the lock that a release takes after it has ended the lease, as for a renewal.
            if lease.is_over() || in_flight.here.renewing.is_out() {
                return false;
            }
            in_flight.here.renewing.sent();
            let (asked, from) = (lease.clone(), at.clone());
            let respond = move |answer: Answer| then(confirmed(&asked, &from, install, &answer));
            at.submit(lease, op, Respond::Engine(Box::new(respond)))
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
        true
    }
}

/// A confirmation of `token`, which may `install` the grant.
pub(super) fn request(lease: &ShardLease, token: Token, install: bool) -> Op {
    Op::Confirm {
        nonce: lease.nonce,
        label: lease.terms.label.clone(),
        token,
        tokens: lease.tokens,
        lease: lease.lease_to_ask(),
        install,
    }
}

/// The shard of `from` answered to a confirmation.
fn confirmed(
    lease: &ShardLease,
    from: &Arc<LeaseRenewer>,
    install: bool,
    answer: &Answer,
) -> Option<Instant> {
    let mut in_flight = lease.in_flight.lock();
    let there = in_flight.at(&lease.renewer(), from);
    there.renewing.answered(answer);
    match answer {
        Ok(Answered {
            reply: Reply::Renewed { .. },
            sent,
        }) => {
            if install {
                there.comes();
            }
            Some(*sent)
        }
        _ => None,
    }
}
