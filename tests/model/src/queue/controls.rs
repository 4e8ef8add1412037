//! The controls: a configuration in which one rule is off, and what must then be found broken.

use super::{
    Configuration, Pace, Rule,
    configurations::{Budget, budget},
    properties::{
        FIRST_COME, HAND_OFFS_BOUNDED, HEALTHY_GUARD, NOTHING_LEFT, ONE_HOLDER, TOKENS_RISE,
        TOKENS_RISE_AT_SHARD, WAITS_END,
    },
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (violates, config) = match rule {
        Rule::TurnNeverFromReceipt
        | Rule::TurnNeverFromALaterSend
        | Rule::TurnNeverByTheShardsClock
        | Rule::RecheckExtends => (ONE_HOLDER, three_waiters()),
        Rule::TurnNeverFromTheLastHeld => (ONE_HOLDER, free(&[again(), budget(1, 2, 0, 0)])),
        Rule::TurnLastsItsClaimTime => (ONE_HOLDER, short_claim(three_waiters())),
        Rule::TurnMatchesItsNonce => (ONE_HOLDER, free(&[once(), again(), once()])),
        Rule::LateHeldIsIgnored => (HEALTHY_GUARD, first_prompt(free(&[once(), once()]))),
        Rule::QueueBeforeNewcomer => (FIRST_COME, free(&[once(), once(), once()])),
        Rule::ReleaseTakesTheTicket => (NOTHING_LEFT, prompt(&[once(), once(), once()])),
        Rule::ReleaseBehindItsRequests => (NOTHING_LEFT, prompt(&[again(), again()])),
        Rule::ReleaseByNonce => (ONE_HOLDER, at_once(&[again(), budget(1, 1, 0, 0)])),
        Rule::RenewItsOwnRecord => (ONE_HOLDER, at_once(&[budget(2, 0, 1, 0), once()])),

        Rule::GraceAfterRestart | Rule::NoTurnInGrace | Rule::NoGrantInGrace => (
            ONE_HOLDER,
            restart(&[budget(1, 0, 1, 0), budget(1, 1, 0, 0)]),
        ),
        Rule::FreshEpochAfterRestart => (TOKENS_RISE_AT_SHARD, restart(&[once(), once()])),
        Rule::ReclaimInGrace => {
            let both = [once(), budget(1, 1, 1, 0)];
            (HEALTHY_GUARD, first_prompt(restart(&both)))
        }
        Rule::SealedNeverPasses => (ONE_HOLDER, sealed(three_waiters())),

        Rule::BlockReservedAtTheShard | Rule::TokenPerHandOff => (TOKENS_RISE, local(1, 0, 2)),
        Rule::BlockDiesWithItsNonce => (TOKENS_RISE, local(2, 0, 2)),
        Rule::ReserveMatchesItsRequest => (TOKENS_RISE, slow_answers(local(2, 2, 1))),
        Rule::HandOffsAreBounded => (HAND_OFFS_BOUNDED, local(1, 1, 4)),
        Rule::NoLocalGrantPastTheDeadline | Rule::NoLocalGrantAfterTheRelease => {
            (ONE_HOLDER, local(1, 0, 2))
        }
        Rule::RenewTellsWhoWaits => {
            let config = prompt(&[budget(1, 0, 0, 6), once()]).lingering();
            (WAITS_END, config)
        }
    };
    Control {
        rule,
        config,
        violates,
    }
}

fn once() -> Budget {
    budget(1, 0, 0, 0)
}

fn again() -> Budget {
    budget(2, 0, 0, 0)
}

fn free(processes: &[Budget]) -> Configuration {
    Configuration::new("control", processes)
}

fn three_waiters() -> Configuration {
    free(&[once(), budget(1, 1, 0, 0), once()])
}

fn at_once(processes: &[Budget]) -> Configuration {
    Configuration {
        answers_at_once: true,
        ..free(processes)
    }
}

fn restart(processes: &[Budget]) -> Configuration {
    free(processes).restarting()
}

/// One process that hands off and lingers, and one that wants the lock, too.
fn local(acquisitions: u8, renewals: u8, local_grants: u8) -> Configuration {
    at_once(&[budget(acquisitions, 0, renewals, local_grants), once()]).lingering()
}

/// Pushes are lost, so that only answers count.
fn prompt(processes: &[Budget]) -> Configuration {
    Configuration {
        pushes: false,
        ticket: 6,
        ..free(processes).prompt(5)
    }
}

fn slow_answers(config: Configuration) -> Configuration {
    Configuration {
        answers_at_once: false,
        ..config
    }
}

fn short_claim(config: Configuration) -> Configuration {
    Configuration {
        lease: 3,
        claim: 2,
        ..config
    }
}

fn first_prompt(config: Configuration) -> Configuration {
    Configuration {
        pace: Pace::FirstPrompt,
        ..config
    }
}

fn sealed(config: Configuration) -> Configuration {
    Configuration {
        seals: true,
        answers_at_once: true,
        ..config
    }
}
