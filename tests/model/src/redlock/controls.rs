//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Rule, Verb,
    configurations::LATER_EQUAL,
    properties::{FIRST_SERVED, NOT_STUCK, ONE_HOLDER, TAKEN_FOR_GOOD, TOKENS_RISE},
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let new = || Configuration::new("control");
    let (violates, config) = match rule {
        Rule::GreatestIsConfirmed | Rule::ConfirmOnItsOwnRecord => (TOKENS_RISE, new()),
        Rule::ConfirmInAnOpenSlot | Rule::AdoptRaises => (TOKENS_RISE, new().moving()),
        Rule::InstallInAnOpenSlot => (ONE_HOLDER, new().moving().installing()),
        Rule::InstallAfterGrace => (ONE_HOLDER, new().installing().restarting(&[1])),
        Rule::ReclaimRaises => (TOKENS_RISE, new().restarting(&[2]).raising(1)),
        Rule::SecondEpochAfterRemoval => (TOKENS_RISE, new().removing().raising(1)),
        Rule::SupersedeTheReleased => (ONE_HOLDER, new().superseding().acquiring([1, 2])),
        Rule::GraceAfterRestart => (ONE_HOLDER, new().restarting(&[1])),
        Rule::ReclaimBeforeItsDeadline => (ONE_HOLDER, new().restarting(&[1])),
        Rule::ConfirmBeforeItsDeadline => (ONE_HOLDER, new().restarting(&[1])),
        Rule::AdoptedBeforeItsDeadline => (TOKENS_RISE, new().moving().late_at(&[Verb::Adopt])),
        Rule::AdoptTheAcknowledged => (ONE_HOLDER, new().moving()),
        Rule::AdoptComparesItsOwn => (
            ONE_HOLDER,
            Configuration {
                tokens: LATER_EQUAL,
                ..new()
                    .moving()
                    .leasing(1)
                    .without_crashes()
                    .late_at(&[Verb::Adopt])
                    .acquiring([2, 1])
            },
        ),
        Rule::AcquireBehindItsRelease => (ONE_HOLDER, new().giving_back().late_release()),
        Rule::GiveBackEndsRequests => (ONE_HOLDER, new().giving_back().late_at(&[Verb::Acquire])),

        Rule::FenceAnswersTokenEpochs => (TOKENS_RISE, new().forgetting()),
        Rule::TakeTheHoldersAlone => (ONE_HOLDER, new().forcing().acquiring([2, 1])),
        Rule::TakenFromAMajority | Rule::InstallOnceRenewed => (TAKEN_FOR_GOOD, new().forcing()),

        Rule::TurnFromItsRequest => (ONE_HOLDER, new().queueing().acquiring([2, 1])),
        Rule::TurnHasAFreshToken => (TOKENS_RISE, new().queueing()),
        Rule::WaiterGoesFirst | Rule::MajorityWithTheLead => {
            (FIRST_SERVED, new().queueing().acquiring([2, 1]))
        }
        Rule::PassOverADeadLead => (NOT_STUCK, new().leading().without_shard(1)),
        Rule::ReturnToTheLead => (NOT_STUCK, new().leading().without_shard(0)),
        Rule::GiveAUselessLeadBack => (ONE_HOLDER, new().leading().stepping()),
    };
    Control {
        rule,
        config,
        violates,
    }
}
