//! The clean configurations: all rules on, and everything must hold.

use super::{
    Budget, Configuration, Event, Survival,
    configurations::{BOTH, FIRST, LOST, SECOND, budget},
};

const ONCE: Budget = budget(1, 0);
const TWICE: Budget = budget(2, 0);
const HOLDER: Budget = budget(1, 1);
const LONG_HOLDER: Budget = budget(1, 2);

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [
        moves(),
        chains(),
        aborts(),
        restarts(),
        restarts_in_moves(),
        removals(),
    ]
    .concat()
}

fn new(name: &'static str, processes: &[Budget]) -> Configuration {
    Configuration::new(name, processes)
}

fn moves() -> Vec<Configuration> {
    use Event::{Adopted, FinishedUnderHolder, GrantAfterMove, ListedGrant, ProvenGrant};
    let all = &[Adopted, FinishedUnderHolder, ProvenGrant, GrantAfterMove];
    vec![
        new("move", &[HOLDER, ONCE]).moving().reaching(all),
        new("move-three-processes", &[HOLDER, ONCE, ONCE])
            .moving()
            .at_once()
            .reaching(all),
        new("move-acquiring-again", &[LONG_HOLDER, TWICE])
            .moving()
            .reaching(&[Adopted, ProvenGrant, GrantAfterMove]),
        new("move-repeating", &[LONG_HOLDER, ONCE])
            .moving()
            .repeating()
            .at_once()
            .reaching(all),
        new("move-listing", &[HOLDER, ONCE])
            .moving()
            .listing()
            .reaching(&[Adopted, ListedGrant, ProvenGrant]),
        new("move-healthy-holder", &[ONCE, budget(2, 1)])
            .moving()
            .prompt()
            .reaching(all),
        new("move-raising", &[HOLDER, ONCE])
            .moving()
            .raising()
            .at_once()
            .reaching(all),
        new("repeating", &[budget(2, 1), ONCE]).repeating(),
    ]
}

fn chains() -> Vec<Configuration> {
    let reaches = &[Event::Adopted, Event::FinishedAgainUnderHolder];
    let there_and_back = Configuration {
        plan: &[(0, 1), (1, 0)],
        ..new("there-and-back", &[HOLDER, ONCE])
    };
    vec![
        new("chain", &[LONG_HOLDER, ONCE])
            .chained()
            .at_once()
            .reaching(reaches),
        new("chain-healthy-holder", &[ONCE, ONCE])
            .chained()
            .prompt()
            .reaching(reaches),
        there_and_back.at_once().reaching(reaches),
    ]
}

fn aborts() -> Vec<Configuration> {
    use Event::{Adopted, ProvenGrant, TakenBackUnderHolder};
    let grants = &[Adopted, ProvenGrant];
    let again = Configuration {
        plan: &[(0, 1), (0, 1)],
        ..new("abort-and-move-again", &[HOLDER, TWICE]).aborting()
    };
    vec![
        new("abort", &[HOLDER, ONCE])
            .aborting()
            .at_once()
            .reaching(grants),
        new("abort-renewing", &[LONG_HOLDER, ONCE])
            .aborting()
            .at_once()
            .reaching(&[Adopted, ProvenGrant, TakenBackUnderHolder]),
        new("abort-healthy-holder", &[ONCE, ONCE])
            .aborting()
            .prompt()
            .reaching(&[Adopted, TakenBackUnderHolder]),
        again.at_once().reaching(grants),
        new("abort-and-restart", &[HOLDER, ONCE])
            .aborting()
            .restarting(BOTH, LOST)
            .at_once()
            .reaching(grants),
        new("abort-and-lagging-failover", &[HOLDER, ONCE])
            .aborting()
            .restarting(FIRST, &[Survival::AllButTheLast, Survival::Nothing])
            .behind()
            .at_once()
            .reaching(grants),
    ]
}

fn restarts() -> Vec<Configuration> {
    let reaches = &[Event::Reclaimed];
    vec![
        new("restart", &[HOLDER, TWICE])
            .restarting(FIRST, LOST)
            .reaching(reaches),
        new("two-restarts", &[HOLDER, HOLDER])
            .restarting(FIRST, Survival::EVERY)
            .twice()
            .at_once()
            .reaching(reaches),
        new("failover-clock-behind", &[HOLDER, HOLDER])
            .restarting(FIRST, Survival::EVERY)
            .behind()
            .repeating()
            .reaching(reaches),
        new("restart-healthy-holder", &[ONCE, budget(2, 1)])
            .restarting(FIRST, Survival::EVERY)
            .prompt()
            .reaching(reaches),
    ]
}

fn restarts_in_moves() -> Vec<Configuration> {
    use Event::{Adopted, ListedGrant, ProvenGrant, ReclaimedInMove};
    let reaches = &[Adopted, ReclaimedInMove, ProvenGrant];
    let holds = &[Adopted, ReclaimedInMove];
    vec![
        new("move-restart", &[HOLDER, ONCE])
            .moving()
            .restarting(BOTH, LOST)
            .at_once()
            .reaching(reaches),
        new("move-restart-renewing", &[LONG_HOLDER, ONCE])
            .moving()
            .restarting(BOTH, LOST)
            .at_once()
            .reaching(reaches),
        new("move-restart-three-processes", &[HOLDER, ONCE, ONCE])
            .moving()
            .restarting(BOTH, LOST)
            .at_once()
            .reaching(reaches),
        new("move-failover-clock-behind", &[HOLDER, ONCE])
            .moving()
            .restarting(BOTH, Survival::EVERY)
            .behind()
            .at_once()
            .reaching(reaches),
        new("move-two-restarts", &[LONG_HOLDER, ONCE])
            .moving()
            .restarting(BOTH, LOST)
            .twice()
            .at_once()
            .reaching(holds),
        new("move-listing-restart", &[HOLDER, ONCE])
            .moving()
            .listing()
            .restarting(BOTH, LOST)
            .at_once()
            .reaching(&[Adopted, ListedGrant, ReclaimedInMove]),
        new("move-raising-restart", &[ONCE, ONCE])
            .moving()
            .listing()
            .raising()
            .restarting(SECOND, LOST)
            .at_once()
            .reaching(&[ListedGrant, ProvenGrant]),
        new("move-restart-healthy-holder", &[ONCE, HOLDER])
            .moving()
            .restarting(BOTH, Survival::EVERY)
            .prompt()
            .at_once()
            .reaching(holds),
        new("chain-restart", &[LONG_HOLDER, ONCE])
            .chained()
            .restarting(&[0, 1, 2], LOST)
            .at_once()
            .reaching(holds),
    ]
}

fn removals() -> Vec<Configuration> {
    use Event::{Adopted, GrantAfterRemoval, ReclaimedElsewhere};
    let reaches = &[ReclaimedElsewhere, GrantAfterRemoval];
    vec![
        new("removal", &[HOLDER, HOLDER])
            .removing()
            .reaching(reaches),
        new("removal-acquiring-again", &[budget(2, 1), ONCE])
            .removing()
            .at_once()
            .reaching(reaches),
        new("removal-and-restart", &[HOLDER, ONCE])
            .removing()
            .leasing(2)
            .viewing(1)
            .restarting(SECOND, LOST)
            .at_once()
            .reaching(reaches),
        new("removal-in-a-move", &[HOLDER, HOLDER])
            .moving()
            .removing()
            .at_once()
            .reaching(&[Adopted]),
        new("removal-of-the-next-shard", &[HOLDER, ONCE])
            .removing_next()
            .at_once()
            .reaching(&[ReclaimedElsewhere]),
    ]
}
