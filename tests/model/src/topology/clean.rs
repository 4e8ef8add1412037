//! The clean configurations: all rules on, and everything must hold.

use super::{
    Configuration,
    Event::{
        self, ArmedAfresh, ArmedAnew, FinishedAfter, GrantAfter, KeptThrough, Outrun, Restored,
        RestoredElsewhere, RestoredInMove,
    },
    Survival,
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
    [by_the_clock(), clockless(), armed_anew()].concat()
}

fn new(name: &'static str) -> Configuration {
    Configuration::new(name)
}

/// Epochs follow a clock, and no copy is needed.
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

/// A life goes on, and the shard is armed anew: its address leads elsewhere and back, it was flushed, or its clock stepped.
fn armed_anew() -> Vec<Configuration> {
    let beside = |name| Configuration {
        owner: 1,
        home_restarts: 0,
        ..new(name)
    };
    vec![
        Configuration {
            retargets: 2,
            ..beside("there-and-back")
        }
        .reaching(&[ArmedAnew]),
        Configuration {
            retargets: 3,
            grants: 3,
            moves: 0,
            lease: 2,
            ..beside("there-and-back-and-there")
        }
        .reaching(&[ArmedAnew]),
        Configuration {
            home_restarts: 1,
            retargets: 2,
            survives: &[Survival::All],
            ..beside("there-and-back-home")
        }
        .reaching(&[ArmedAnew, Restored, GrantAfter]),
        Configuration {
            flushes: 2,
            ..beside("flushed")
        }
        .reaching(&[ArmedAfresh]),
        Configuration {
            home_restarts: 1,
            flushes: 1,
            ..beside("flushed-home")
        }
        .reaching(&[ArmedAfresh, Restored, GrantAfter]),
        Configuration {
            rearms: 2,
            ..beside("armed-anew")
        }
        .reaching(&[ArmedAnew]),
        Configuration {
            home_restarts: 1,
            rearms: 1,
            ..beside("armed-anew-home")
        }
        .reaching(&[ArmedAnew, Restored, GrantAfter]),
    ]
}
