//! The clean configurations: all rules on, and everything must hold.

use super::{
    Configuration,
    Event::{
        self, FinishedAfter, GrantAfter, KeptThrough, Outrun, Restored, RestoredElsewhere,
        RestoredInMove,
    },
};

const RECOVERED: &[Event] = &[
    Restored,
    RestoredInMove,
    GrantAfter,
    FinishedAfter,
    KeptThrough,
];

const RACED: &[Event] = &[Restored, RestoredInMove, Outrun, GrantAfter];

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [by_the_clock(), clockless()].concat()
}

fn new(name: &'static str) -> Configuration {
    Configuration::new(name)
}

/// Epochs follow a clock, and nobody has to have a copy.
fn by_the_clock() -> Vec<Configuration> {
    let two_moves = Configuration {
        moves: 2,
        ..new("three-shards-two-moves").three().racing()
    };
    let longer = Configuration {
        lease: 2,
        grants: 3,
        ..new("longer-lease").racing().restarting()
    };
    let death = Configuration {
        home_restarts: 0,
        deaths: 1,
        ..new("death").three().racing()
    };
    let loss = Configuration {
        home_restarts: 0,
        losses: 1,
        ..new("loss").racing()
    };
    vec![
        new("home").reaching(RECOVERED),
        new("home-and-shard").restarting().reaching(RECOVERED),
        new("race").racing().reaching(RACED),
        new("home-twice").twice().racing().reaching(RACED),
        Configuration {
            owner: 1,
            ..new("owner-not-home").racing().restarting()
        }
        .reaching(RACED),
        new("three-shards").three().racing().reaching(RACED),
        two_moves.reaching(RACED),
        new("three-shards-shard").three().racing().restarting(),
        longer,
        death.reaching(&[RestoredElsewhere]),
        loss.reaching(&[Restored, GrantAfter]),
    ]
}

/// Epochs follow nothing but the record.
fn clockless() -> Vec<Configuration> {
    vec![
        new("clockless-home").clockless().reaching(RECOVERED),
        new("clockless-race").clockless().racing().reaching(RACED),
        (new("clockless-home-twice").clockless().twice())
            .racing()
            .reaching(RACED),
        (new("clockless-three-shards").clockless().three())
            .racing()
            .reaching(RACED),
        Configuration {
            copies: 2,
            ..(new("clockless-shard").clockless().three()).restarting()
        }
        .reaching(&[Restored]),
    ]
}
