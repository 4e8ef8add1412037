//! What is on its way for one nonce, so that nothing overtakes it.

use std::{sync::Arc, time::Duration};

use super::{AcquireError, keeper::Keeper};
use crate::{
    backoff::Backoff,
    driver::{Answer, Answered, LockLane},
    failpoint::{Rule, is_off},
    shard::{Effect, Proof, Reply, Waited},
};

/// First and longest pause before a shard in trouble is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Requests of one kind, of which one at most is out.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    out: bool,
    /// One got no answer and may still arrive: until its lane has answered another.
    unanswered: bool,
}

impl Exchange {
    pub(super) fn is_out(&self) -> bool {
        self.out
    }

    pub(super) fn sent(&mut self) {
        self.out = true;
    }

    pub(super) fn answered(&mut self, answer: &Answer) {
        self.out = false;
        self.unanswered = match answer {
            Ok(_) => false,
            Err(error) => self.unanswered || error.effect() == Effect::Unknown,
        };
    }

    fn is_in_doubt(&self) -> bool {
        self.out || self.unanswered
    }
}

/// What is on its way to one shard.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) asking: Exchange,
    /// Renewals, and what brings a lock along from another shard.
    pub(super) renewing: Exchange,
    /// A grant, or a ticket, may be there.
    left: bool,
}

/// How a release overtakes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// There, behind whatever is out on that lane.
    Lane(LockLane),
    /// On both lanes, one after the other: on each something may still arrive.
    Both,
}

impl Traffic {
    fn asked(&mut self, answer: &Answer, ticket: bool) {
        self.asking.answered(answer);
        self.left |= match answer {
            Ok(Answered { reply, .. }) => match reply {
                Reply::Granted { .. } => true,
                Reply::Held { .. } | Reply::Grace { .. } | Reply::NeedProof { .. } => ticket,
                _ => false,
            },
            Err(error) => error.effect() == Effect::Unknown,
        };
    }

    /// It was brought there.
    pub(super) fn comes(&mut self) {
        self.left = true;
    }

    fn is_in_doubt(&self) -> bool {
        self.asking.is_in_doubt() || self.renewing.is_in_doubt()
    }

    /// Whether something of it may be at the shard, or may yet come there.
    pub(super) fn may_be_there(&self) -> bool {
        self.left || self.is_in_doubt()
    }

    /// Where a release goes.
    pub(super) fn release_behind(&self) -> Behind {
        let renewing = self.renewing.is_in_doubt() && !is_off(Rule::ReleaseBehindRenewal);
        match (self.asking.is_in_doubt(), renewing) {
            (_, false) => Behind::Lane(LockLane::Work),
            (false, true) => Behind::Lane(LockLane::Renew),
            (true, true) => Behind::Both,
        }
    }
}

/// What is on its way for one nonce.
#[derive(Debug)]
pub(super) struct Flow {
    /// To the shard it is at.
    pub(super) here: Traffic,
    /// To others: its slot moves, or did.
    elsewhere: Vec<(Arc<Keeper>, Traffic)>,
    /// Whether the next request queues.
    pub(super) ticket: bool,
    /// What a slot's former shard answered, for the next.
    pub(super) proof: Option<Proof>,
    pub(super) search: Search,
    /// How often in a row it was sent where its slot is not: by a picture of the ring that is out of date.
    pub(super) misled: u8,
    /// Pauses between requests that met trouble.
    pub(super) retry: Backoff,
    /// Why it is not granted yet.
    pub(super) refusal: Option<AcquireError>,
}

/// How far a request has looked for the shard that may grant, since it paused last.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The slot's former shard holds the key, or somebody waits there.
    pub(super) held_there: bool,
    /// The slot's next shard needs a proof.
    pub(super) unproven: bool,
    /// How often it went from one to the other.
    pub(super) turns: u8,
}

impl Flow {
    /// Nothing is on its way yet.
    pub(super) fn new(ticket: bool) -> Self {
        Self {
            here: Traffic::default(),
            elsewhere: Vec::new(),
            ticket,
            proof: None,
            search: Search::default(),
            misled: 0,
            retry: Backoff::new(RETRY.0, RETRY.1),
            refusal: None,
        }
    }

    /// A request to acquire that was sent to `at`, while it is `here`, came to its end.
    pub(super) fn asked(&mut self, here: &Arc<Keeper>, at: &Arc<Keeper>, answer: &Answer) {
        let ticket = self.ticket;
        self.at(here, at).asked(answer, ticket);
    }

    /// What is on its way to `at`, while it is `here`.
    pub(super) fn at(&mut self, here: &Arc<Keeper>, at: &Arc<Keeper>) -> &mut Traffic {
        if Arc::ptr_eq(here, at) {
            return &mut self.here;
        }
        let known = self
            .elsewhere
            .iter()
            .position(|(its, _)| Arc::ptr_eq(its, at));
        let index = known.unwrap_or_else(|| {
            self.elsewhere.push((at.clone(), Traffic::default()));
            self.elsewhere.len() - 1
        });
        &mut self.elsewhere[index].1
    }

    /// The slot's former shard has given its proof. Who went on with the place it had there has left it.
    pub(super) fn proves(&mut self, Proof { epoch, waited }: Proof) {
        let came_along = self
            .proof
            .is_some_and(|known| known.epoch == epoch && known.waited != Waited::Nobody);
        let waited = match waited {
            Waited::Nobody if came_along => Waited::Alone,
            waited => waited,
        };
        self.proof = Some(Proof { epoch, waited });
    }

    /// It is at `to` from now on, and no longer at `from`.
    pub(super) fn goes(&mut self, from: &Arc<Keeper>, to: &Arc<Keeper>) {
        let there = std::mem::take(self.at(from, to));
        self.elsewhere.retain(|(its, _)| !Arc::ptr_eq(its, to));
        let here = std::mem::replace(&mut self.here, there);
        self.elsewhere.push((from.clone(), here));
    }

    /// Nothing of it is left at `at`, while it is `here`: it was taken away there.
    pub(super) fn removed(&mut self, here: &Arc<Keeper>, at: &Arc<Keeper>) {
        self.at(here, at).left = false;
    }

    /// Whether something may yet come to a shard that makes a record there.
    pub(super) fn is_in_doubt(&self) -> bool {
        let mut elsewhere = self.elsewhere.iter();
        self.here.is_in_doubt() || elsewhere.any(|(_, traffic)| traffic.is_in_doubt())
    }

    /// The other shards where something of it may be, or may yet come.
    pub(super) fn left_elsewhere(&self) -> Vec<Arc<Keeper>> {
        let left = self
            .elsewhere
            .iter()
            .filter(|(_, traffic)| traffic.may_be_there());
        left.map(|(keeper, _)| keeper.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Epoch;

    #[test]
    fn who_came_along_is_not_new_when_it_asks_again() {
        let proof = |epoch, waited| Proof {
            epoch: Epoch(epoch),
            waited,
        };
        let mut flow = Flow::new(true);
        for (said, known) in [
            (proof(1, Waited::Nobody), proof(1, Waited::Nobody)),
            (proof(1, Waited::First), proof(1, Waited::First)),
            (proof(1, Waited::Nobody), proof(1, Waited::Alone)),
            (proof(1, Waited::Nobody), proof(1, Waited::Alone)),
            (proof(2, Waited::Nobody), proof(2, Waited::Nobody)),
        ] {
            flow.proves(said);
            assert_eq!(flow.proof, Some(known));
        }
    }
}
