//! The controls: a configuration in which one rule is off, and the property that must then be violated.

use super::{
    Configuration, Participant, Rule, Survival,
    configurations::{FIRST, Want},
    properties::{
        COMES_TO_REST, FIRST_COME, GRANTED_WITH_ROOM, HEALTHY_GUARD, NEWER_THAN_WRITERS,
        NO_IDLE_ROOM, NO_MORE_THAN_HELD, TOKENS_RISE, WRITER_ALONE,
    },
};
use crate::ruled;

/// One rule off.
pub type Control = ruled::Control<Configuration, Rule>;

const READER: Participant = Participant::new(Want::Reader);
const WRITER: Participant = Participant::new(Want::Writer);
const ONE: Participant = Participant::new(Want::Permits(1));

/// The control of a rule.
pub fn control(rule: Rule) -> Control {
    let (violates, config) = match rule {
        Rule::RoomByTheTicketsCapacity => (
            GRANTED_WITH_ROOM,
            of(&[ONE, ONE, ONE]).queueing().resizing(),
        ),
        Rule::WriterTakesAConstant => (WRITER_ALONE, of(&[READER, WRITER]).resizing()),
        Rule::SharesEndAlone => {
            let config = of(&[READER.twice(), READER, WRITER]);
            (WRITER_ALONE, config.queueing().claiming_briefly())
        }
        Rule::ReleaseTakesItsShares => (WRITER_ALONE, of(&[READER, READER, WRITER])),
        Rule::ReadersAreCounted => (TOKENS_RISE, of(&[READER, WRITER])),

        Rule::NoBarging => (FIRST_COME, of(&[READER, WRITER, READER]).queueing()),
        Rule::PreferredGoFirst => (
            FIRST_COME,
            of(&[WRITER, READER, WRITER.preferred()]).queueing(),
        ),
        Rule::PreferredWaitForEachOther => (
            FIRST_COME,
            of(&[READER, WRITER.preferred(), READER.preferred()]).queueing(),
        ),
        Rule::PassStopsAtTheHead => (FIRST_COME, of(&[READER, WRITER, READER.twice()]).queueing()),
        Rule::PassGrantsWhileTheyFit => (NO_IDLE_ROOM, of(&[WRITER, READER, READER]).queueing()),

        Rule::LastHolderReleases | Rule::JoinsUntilTheDeadline => {
            (WRITER_ALONE, of(&[READER.joined(), WRITER]))
        }

        Rule::ReadersHandNothingOn => (WRITER_ALONE, of(&[WRITER.joined().downgrades(), READER])),
        Rule::DowngradeEndsBelief => (WRITER_ALONE, of(&[WRITER.downgrades(), READER])),
        Rule::DowngradePasses => (NO_IDLE_ROOM, of(&[WRITER.downgrades(), READER]).queueing()),

        Rule::RenewNeverAdds => (NO_MORE_THAN_HELD, of(&[WRITER.downgrades().renews(1)])),

        Rule::RoomCountsLeft | Rule::ProofAfterTheSeal => {
            (WRITER_ALONE, of(&[READER, WRITER.rechecks(1)]).moving())
        }
        Rule::LeftIsInShares => (WRITER_ALONE, of(&[WRITER, READER.rechecks(1)]).moving()),
        Rule::ListAfterTheSeal => (WRITER_ALONE, of(&[READER, WRITER]).moving().listing()),
        Rule::LeftFallsByProofOnly => {
            let config = of(&[ONE.twice().renews(1), ONE]).within(0);
            (GRANTED_WITH_ROOM, config.resizing().moving().listing())
        }
        Rule::AdoptNeedsNoRoom => {
            let config = of(&[READER, READER]).moving().listing();
            (COMES_TO_REST, config.resting())
        }
        Rule::OpenAfterEmpty => (WRITER_ALONE, of(&[READER, WRITER]).moving()),
        Rule::SealedNeverPasses => {
            let config = of(&[WRITER.twice(), READER.rechecks(1)]).brief().within(1);
            (WRITER_ALONE, config.queueing().moving().listing())
        }

        Rule::GraceAfterRestart => (WRITER_ALONE, lost(of(&[READER, WRITER]))),
        Rule::NoProofInGrace | Rule::NotEmptyInGrace => (
            WRITER_ALONE,
            lost(of(&[READER, WRITER.rechecks(1)]).moving()),
        ),
        Rule::NoPassInGrace => (WRITER_ALONE, lost(of(&[READER, WRITER, READER]).queueing())),
        Rule::ReclaimNeedsNoRoom => {
            let config = of(&[READER, WRITER]).queueing().prompt();
            (HEALTHY_GUARD, config.restarting(FIRST, Survival::LAGGING))
        }
        Rule::EntriesOfTheirLife => {
            let config = of(&[WRITER.renews(1), READER.rechecks(1)]).behind();
            let lagging = &[Survival::AllButTheLastTwo];
            (NEWER_THAN_WRITERS, config.restarting(FIRST, lagging))
        }
    };
    Control {
        rule,
        config,
        violates,
    }
}

fn of(participants: &[Participant]) -> Configuration {
    Configuration::new("control", participants)
}

fn lost(config: Configuration) -> Configuration {
    config.restarting(FIRST, &[Survival::Nothing])
}
