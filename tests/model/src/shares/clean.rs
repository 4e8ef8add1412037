//! The clean configurations: all rules on, and everything must hold.

use super::{
    Configuration, Event, Participant, Survival,
    configurations::{BOTH, FIRST, Want},
};

const READER: Participant = Participant::new(Want::Reader);
const WRITER: Participant = Participant::new(Want::Writer);
const ONE: Participant = Participant::new(Want::Permits(1));
const LOST: &[Survival] = &[Survival::Nothing];

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [at_rest(), restarts(), moves()].concat()
}

fn new(name: &'static str, participants: &[Participant]) -> Configuration {
    Configuration::new(name, participants)
}

fn at_rest() -> Vec<Configuration> {
    use Event::{
        GrantAfterDowngrade, HandedOn, HeldTogether, PreferredGrant, ReaderJoined, SmallerCapacity,
        TurnTaken, TwoTurns, WriterAfterReader,
    };
    vec![
        new("readers-and-a-writer", &[READER.renews(1), READER, WRITER])
            .reaching(&[HeldTogether, WriterAfterReader]),
        new("queue", &[WRITER, READER, READER])
            .queueing()
            .resting()
            .reaching(&[HeldTogether, TurnTaken, TwoTurns]),
        new(
            "readers-together",
            &[READER.joined().renews(1), READER, WRITER],
        )
        .queueing()
        .reaching(&[HeldTogether, ReaderJoined, TurnTaken]),
        new("preferred-readers", &[READER, WRITER, READER.preferred()])
            .queueing()
            .resting()
            .reaching(&[HeldTogether, PreferredGrant, TurnTaken]),
        new("preferred-writers", &[WRITER, READER, WRITER.preferred()])
            .queueing()
            .resting()
            .reaching(&[PreferredGrant, TurnTaken]),
        new(
            "preferred-sides",
            &[READER, WRITER.preferred(), READER.preferred()],
        )
        .queueing()
        .reaching(&[HeldTogether, TurnTaken]),
        new("downgrade", &[WRITER.downgrades().renews(1), READER])
            .queueing()
            .resting()
            .reaching(&[HeldTogether, TurnTaken, GrantAfterDowngrade]),
        new(
            "writers-hand-on",
            &[WRITER.joined().downgrades().renews(1), READER],
        )
        .queueing()
        .reaching(&[HandedOn, HeldTogether, TurnTaken]),
        new("capacity-changed", &[ONE.renews(1), ONE, ONE])
            .resizing()
            .reaching(&[HeldTogether, SmallerCapacity]),
    ]
}

fn restarts() -> Vec<Configuration> {
    use Event::{Reclaimed, ReclaimedWithoutRoom};
    vec![
        new("restart", &[READER.renews(1), READER.renews(1), WRITER])
            .restarting(FIRST, LOST)
            .reaching(&[Reclaimed]),
        new("failover", &[WRITER.renews(1), READER.renews(1), READER])
            .queueing()
            .restarting(FIRST, Survival::LAGGING)
            .reaching(&[Reclaimed]),
        new(
            "failover-downgrade",
            &[WRITER.downgrades().renews(1), READER],
        )
        .queueing()
        .restarting(FIRST, Survival::LAGGING)
        .resting()
        .reaching(&[Reclaimed]),
        new(
            "failover-clock-behind",
            &[WRITER.renews(1), READER.rechecks(1)],
        )
        .queueing()
        .restarting(FIRST, Survival::EVERY)
        .behind()
        .resting()
        .reaching(&[Reclaimed]),
        new("failover-healthy-holder", &[READER, WRITER])
            .queueing()
            .restarting(FIRST, Survival::LAGGING)
            .prompt()
            .reaching(&[Reclaimed, ReclaimedWithoutRoom]),
    ]
}

fn moves() -> Vec<Configuration> {
    use Event::{
        Adopted, FinishedUnderHolder, GrantBesideLeft, HeldTogether, ReaderJoined, Reclaimed,
    };
    let all = &[Adopted, FinishedUnderHolder, GrantBesideLeft, HeldTogether];
    let moved = &[Adopted, FinishedUnderHolder];
    vec![
        new("move", &[READER.renews(1), READER.rechecks(1)])
            .moving()
            .resting()
            .reaching(all),
        new(
            "move-readers-together",
            &[READER.joined().renews(1), WRITER.rechecks(1)],
        )
        .moving()
        .reaching(&[Adopted, FinishedUnderHolder, ReaderJoined]),
        new("move-listing", &[READER.renews(1), READER])
            .moving()
            .listing()
            .reaching(all),
        new("move-downgrade", &[WRITER.downgrades().renews(1), READER])
            .moving()
            .resting()
            .reaching(&[Adopted, FinishedUnderHolder, HeldTogether]),
        new("move-queue", &[WRITER.renews(1), READER.rechecks(1)])
            .moving()
            .queueing()
            .resting()
            .reaching(moved),
        new("move-capacity-changed", &[ONE.renews(1), ONE.rechecks(1)])
            .moving()
            .resizing()
            .reaching(&[Adopted, HeldTogether]),
        new("move-healthy-holder", &[READER, READER.rechecks(1)])
            .moving()
            .prompt()
            .reaching(all),
        new(
            "move-three-processes",
            &[READER.renews(1), READER, WRITER.rechecks(1)],
        )
        .moving()
        .brief()
        .reaching(&[Adopted]),
        new("move-restart", &[READER.renews(1), WRITER.rechecks(1)])
            .moving()
            .restarting(BOTH, LOST)
            .reaching(&[Adopted, Reclaimed]),
        new("move-restart-healthy-holder", &[READER, READER.renews(1)])
            .moving()
            .restarting(BOTH, Survival::LAGGING)
            .prompt()
            .reaching(&[Adopted, Reclaimed]),
    ]
}
