//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Budget, Configuration, Rule, Survival,
    configurations::{BOTH, FIRST, LOST, SECOND, budget},
    properties::{
        HEALTHY_GUARD, HOLDER_IS_NEWEST, ONE_HOLDER, OWNER_IS_OPEN, RELEASED_STAYS_SO, TOKENS_RISE,
    },
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (violates, config) = match rule {
        Rule::ProofAfterTheSeal | Rule::OpenAfterEmpty => (ONE_HOLDER, moving()),
        Rule::ProofOfItsMove => (ONE_HOLDER, moving_again()),
        Rule::ProofOfItsKey => (ONE_HOLDER, moving()),
        Rule::ListAfterTheSeal => (ONE_HOLDER, moving().listing()),
        Rule::ListAfterGrace => {
            let config = free(&[renews(1), once()]).moving().listing().at_once();
            (ONE_HOLDER, lost(FIRST, config))
        }
        Rule::ImportRaisesTokens => (TOKENS_RISE, moving().raising()),
        Rule::ArmedImportWaits => (TOKENS_RISE, lost(SECOND, moving().raising())),
        Rule::StepsAreGuarded | Rule::AbortIsAMoveBack => (TOKENS_RISE, aborting(0)),
        Rule::PlannedOnceAtATime => (ONE_HOLDER, free(&[once(), once()]).chained()),
        Rule::FinishExpectsItsVersion => (OWNER_IS_OPEN, lost(SECOND, moving())),

        Rule::AdoptFindsInItsMove => (HEALTHY_GUARD, aborting(0).prompt()),
        Rule::AdoptNeverOverwrites => {
            let three = free(&[renews(1), once(), once()]);
            (ONE_HOLDER, three.moving().at_once())
        }
        Rule::AdoptedFromItsSend => (ONE_HOLDER, free(&[renews(1), once()]).moving()),
        Rule::RemoveInItsMove => (ONE_HOLDER, aborting(2)),
        Rule::NoReleaseUnderAGuard => (ONE_HOLDER, free(&[renews(2), once()]).moving()),

        Rule::GraceAfterRestart => (ONE_HOLDER, lost(FIRST, free(&[once(), once()]))),
        Rule::FreshEpochAtArm => (TOKENS_RISE, lost(FIRST, free(&[once(), once()]))),
        Rule::NoProofInGrace | Rule::NotEmptyInGrace => (ONE_HOLDER, lost(FIRST, moving())),
        Rule::OpenKeepsGrace => (
            ONE_HOLDER,
            lost(SECOND, free(&[renews(1), once()]).moving().at_once()),
        ),
        Rule::ImportKeepsGrace => (ONE_HOLDER, lost(BOTH, aborting(0))),
        Rule::ReclaimInGrace => (HEALTHY_GUARD, lost(FIRST, free(&[once(), once()]).prompt())),
        Rule::ReclaimOverOlder => (HEALTHY_GUARD, lagging(free(&[once(), once()]).prompt())),
        Rule::NoReclaimPastTheDeadline => (ONE_HOLDER, lost(FIRST, free(&[renews(1), renews(1)]))),
        Rule::RecordsOfItsLife => {
            let config = free(&[once(), once()]).repeating();
            (HOLDER_IS_NEWEST, lagging(config).behind())
        }
        Rule::NoGrantInGrace => {
            let config = free(&[renews(1), renews(1)]).repeating();
            (ONE_HOLDER, lagging(config).behind())
        }
        Rule::FreshEpochInAMove => (TOKENS_RISE, lost(SECOND, moving())),
        Rule::StepsNeedAnArmedShard => (ONE_HOLDER, lost(BOTH, moving())),
        Rule::HandshakePerConnection => {
            let config = free(&[renews(1), once()]);
            (ONE_HOLDER, config.restarting(FIRST, &[Survival::All]))
        }
        Rule::LifeNamesEveryFailover => (ONE_HOLDER, lagging(free(&[once(), once()]))),

        Rule::RemovalWaitsForViews | Rule::GraceAfterViews => (ONE_HOLDER, removing(1, 0)),
        Rule::NoReclaimBeforeViewsLapse | Rule::GuardsEndWithTheView => {
            (ONE_HOLDER, removing(1, 1))
        }
        Rule::ArmedHeirWaits => (ONE_HOLDER, lost(SECOND, removing(1, 0).leasing(2))),
        Rule::RemovedHolderWaits => {
            let config = free(&[renews(1), once()]).removing_next().at_once();
            (ONE_HOLDER, config.leasing(2))
        }
        Rule::RemovedIsNotBelieved => (ONE_HOLDER, removing(0, 1)),

        Rule::DeadlineFromItsSend | Rule::RepeatExtends => {
            (ONE_HOLDER, free(&[once(), once()]).repeating())
        }
        Rule::ReleaseByNonce => (ONE_HOLDER, free(&[budget(2, 0), once()]).at_once()),
        Rule::ReleaseBehindItsRequests => (RELEASED_STAYS_SO, free(&[once(), once()])),
    };
    Control {
        rule,
        config,
        violates,
    }
}

fn once() -> Budget {
    budget(1, 0)
}

fn renews(renewals: u8) -> Budget {
    budget(1, renewals)
}

fn free(processes: &[Budget]) -> Configuration {
    Configuration::new("control", processes)
}

fn moving() -> Configuration {
    free(&[once(), once()]).moving().at_once()
}

fn moving_again() -> Configuration {
    Configuration {
        plan: &[(0, 1), (0, 1)],
        ..aborting(0)
    }
}

fn aborting(renewals: u8) -> Configuration {
    free(&[renews(renewals), once()]).aborting().at_once()
}

fn lost(shards: &'static [u8], config: Configuration) -> Configuration {
    config.restarting(shards, LOST)
}

fn lagging(config: Configuration) -> Configuration {
    config.restarting(FIRST, Survival::LAGGING)
}

fn removing(first: u8, second: u8) -> Configuration {
    free(&[renews(first), renews(second)]).removing().at_once()
}
