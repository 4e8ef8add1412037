//! The clean configurations: all rules on, and everything must hold.

use super::{Configuration, Event, Verb};

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [at_rest(), restarts(), moves(), removals(), leads()].concat()
}

fn new(name: &'static str) -> Configuration {
    Configuration::new(name)
}

fn at_rest() -> Vec<Configuration> {
    use Event::{HeldAfterConfirm, HeldAgain, HeldAsSuccessor, Installed, Taken};
    let reaches = &[HeldAfterConfirm, HeldAgain];
    vec![
        new("rest").reaching(reaches),
        new("rest-again").acquiring([2, 1]).reaching(reaches),
        new("rest-late").late().reaching(reaches),
        new("median").by_median().late().reaching(&[HeldAgain]),
        new("extending")
            .extending()
            .acquiring([2, 1])
            .reaching(&[HeldAgain]),
        new("installing")
            .installing()
            .late_at(&[Verb::Install, Verb::Acquire])
            .reaching(&[HeldAgain, Installed]),
        new("forced")
            .forcing()
            .reaching(&[HeldAgain, Installed, Taken]),
        new("successor")
            .superseding()
            .late()
            .reaching(&[HeldAsSuccessor]),
        new("successor-again")
            .superseding()
            .acquiring([2, 1])
            .reaching(&[HeldAsSuccessor]),
        new("giving-back")
            .giving_back()
            .late()
            .reaching(&[HeldAgain]),
    ]
}

fn restarts() -> Vec<Configuration> {
    use Event::{HeldAfterConfirm, HeldAgain, HeldAsSuccessor, Installed, Reclaimed};
    let reaches = &[HeldAfterConfirm, HeldAgain, Reclaimed];
    vec![
        new("restart").restarting(&[1]).reaching(reaches),
        new("restart-three-ticks")
            .restarting(&[1])
            .leasing(3)
            .reaching(reaches),
        new("restart-installing")
            .restarting(&[1, 2])
            .installing()
            .reaching(&[HeldAgain, Installed, Reclaimed]),
        new("restart-late")
            .restarting(&[1])
            .late()
            .reaching(reaches),
        new("restart-late-renewal-counts")
            .restarting(&[1])
            .late_at(&[Verb::Renew])
            .reviving()
            .reaching(reaches),
        new("restart-raising")
            .restarting(&[2])
            .raising(1)
            .reaching(reaches),
        new("restart-median")
            .restarting(&[1, 2])
            .by_median()
            .reaching(reaches),
        new("restart-extending")
            .restarting(&[1, 2])
            .extending()
            .installing()
            .reaching(&[HeldAgain, Installed, Reclaimed]),
        new("restart-successor")
            .restarting(&[1, 2])
            .superseding()
            .reaching(&[HeldAsSuccessor, Reclaimed]),
        new("restart-epochs-forgotten")
            .forgetting()
            .reaching(reaches),
    ]
}

fn moves() -> Vec<Configuration> {
    use Event::{Adopted, HeldAfterAdopt, HeldAgain, HeldAtNextShard, Installed, Reclaimed};
    let reaches = &[HeldAfterAdopt, HeldAgain, HeldAtNextShard, Adopted];
    vec![
        new("move").moving().reaching(reaches),
        new("move-again")
            .moving()
            .acquiring([2, 1])
            .reaching(reaches),
        new("move-three-ticks")
            .moving()
            .leasing(3)
            .reaching(reaches),
        new("move-installing")
            .moving()
            .installing()
            .reaching(&[Adopted, Installed]),
        new("move-late-adopt")
            .moving()
            .late_at(&[Verb::Adopt])
            .reaching(reaches),
        new("move-median").moving().by_median().reaching(reaches),
        new("move-extending").moving().extending().reaching(reaches),
        new("move-restart")
            .moving()
            .restarting(&[0, 1, 2, 3])
            .reaching(&[Adopted, HeldAgain, Reclaimed]),
    ]
}

fn removals() -> Vec<Configuration> {
    use Event::{HeldAfterRemoval, HeldAgain, Reclaimed};
    let reaches = &[HeldAfterRemoval, HeldAgain, Reclaimed];
    vec![
        new("removal").removing().reaching(reaches),
        new("removal-extending")
            .removing()
            .extending()
            .reaching(reaches),
        new("removal-raising")
            .removing()
            .raising(1)
            .reaching(reaches),
        new("removal-late")
            .removing()
            .late_at(&[Verb::Acquire, Verb::Renew])
            .reaching(&[HeldAgain]),
        new("removal-restart")
            .removing()
            .restarting(&[1, 2, 3])
            .reaching(reaches),
    ]
}

fn leads() -> Vec<Configuration> {
    use Event::{HeldAfterConfirm, HeldAgain, Installed, PassedOn, PassedOver};
    let reaches = &[HeldAfterConfirm, HeldAgain, PassedOn];
    vec![
        new("queue")
            .queueing()
            .late_at(&[Verb::Acquire])
            .reaching(reaches),
        new("queue-again")
            .queueing()
            .acquiring([2, 1])
            .reaching(reaches),
        new("queue-restart")
            .queueing()
            .restarting(&[1])
            .reaching(reaches),
        new("lead")
            .leading()
            .queueing()
            .reaching(&[HeldAgain, PassedOn, PassedOver]),
        new("lead-dead")
            .leading()
            .without_shard(1)
            .acquiring([2, 1])
            .reaching(&[HeldAgain]),
        new("lead-doubted")
            .leading()
            .without_shard(0)
            .acquiring([2, 1])
            .reaching(&[HeldAgain]),
        new("lead-step")
            .leading()
            .queueing()
            .stepping()
            .acquiring([2, 1])
            .reaching(&[HeldAgain, Installed, PassedOver]),
    ]
}
