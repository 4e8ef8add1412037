//! What a process makes of an answer.

use super::{
    Event, Rule, WitnessedModel, World,
    state::{Answer, Doing, LEASE, Seen, Sight, Told},
};

impl WitnessedModel {
    pub(super) fn hear(&self, world: &mut World, answer: Answer) {
        let Answer {
            to,
            nonce,
            sent,
            what,
        } = answer;
        let now = world.now;
        let its = *world.process(to);
        if its.nonce != nonce {
            return;
        }
        let doing = match (what, its.doing) {
            (Told::Granted | Told::Claim, Doing::Waiting(_)) if now < sent + LEASE => {
                if what == Told::Claim {
                    world.happened = Some(Event::Claimed);
                }
                Doing::Holding(sent + LEASE)
            }
            // The confirmation of a claim.
            (Told::Granted, Doing::Holding(until)) => Doing::Holding(until.max(sent + LEASE)),
            (Told::Kept, Doing::Holding(until)) => {
                let from = match self.holds(Rule::DeadlinesCountFromTheSending) {
                    true => sent,
                    false => now,
                };
                if from + LEASE > until {
                    world.happened = Some(Event::Extended);
                }
                Doing::Holding(until.max(from + LEASE))
            }
            (Told::Seen(seen), Doing::Waiting(sight)) => {
                let since = match self.holds(Rule::WaitsCountFromTheAnswer) {
                    true => now,
                    false => sent,
                };
                Doing::Waiting(Some(self.sight(sight, Sight { seen, since })))
            }
            (_, doing) => doing,
        };
        world.process_mut(to).doing = doing;
    }

    /// What a process goes by after `new`: the time counts on if nothing has changed.
    pub(super) fn sight(&self, old: Option<Sight>, new: Sight) -> Sight {
        let goes_by_beat = !new.seen.is_claim || !self.holds(Rule::ClaimsGoByTheDocument);
        let is_same =
            |old: Seen| old.stamp == new.seen.stamp && (!goes_by_beat || old.beat == new.seen.beat);
        match old {
            // An answer that comes late shows nothing new.
            Some(old) if is_same(old.seen) || old.seen.stamp > new.seen.stamp => old,
            _ => new,
        }
    }
}
