//! The clean configurations: all rules on, and everything must hold.

use super::{
    Configuration,
    Event::{
        Accepted, AllOk, Confirmed, Conflict, Doubtful, Expired, InFlight, Insufficient, NewHome,
        Refused, TooOld,
    },
    operations::{
        Operation, calls, cancels, confirms, deduct, deposit, differs, read, reserve, transfer,
    },
};

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [
        borrowing(),
        three(),
        reading(),
        layouts(),
        transfers(),
        reservations(),
        losses(),
        vanished(),
        manifest_losses(),
    ]
    .concat()
}

fn new(name: &'static str, values: &[i8]) -> Configuration {
    Configuration::new(name, values)
}

/// Two that take from either segment.
fn both() -> [Operation; 2] {
    [deduct(2, 0), deduct(1, 1)]
}

/// The same, and one that gives.
fn and_a_deposit() -> [Operation; 3] {
    [deduct(2, 0), deduct(1, 1), deposit(1, 1)]
}

/// Two segments.
fn borrowing() -> Vec<Configuration> {
    let fed = [deduct(2, 0), deposit(1, 1)];
    let other_content = [deduct(1, 0).or(2), deposit(1, 1)];
    let old = [deduct(1, 0), deposit(1, 1)];
    let sent_again = [calls(0), calls(0), calls(1)];
    vec![
        new("borrow", &[1, 0])
            .asking(&fed, &sent_again)
            .reaching(&[AllOk, Insufficient, InFlight]),
        new("borrow-both-ways", &[1, 1])
            .asking(&both(), &[calls(0), calls(1)])
            .rounds(3)
            .reaching(&[Insufficient, InFlight]),
        new("borrow-again", &[1, 1])
            .asking(&both(), &sent_again)
            .reaching(&[Insufficient, InFlight]),
        new("borrow-both-again", &[1, 1])
            .asking(&both(), &[calls(0), calls(0), calls(1), calls(1)])
            .rounds(3)
            .crashing(2),
        new("borrow-and-deposit", &[1, 1])
            .asking(&and_a_deposit(), &[calls(0), calls(1), calls(2)])
            .reaching(&[AllOk, Insufficient]),
        new("borrow-and-deposit-again", &[1, 1]).asking(
            &and_a_deposit(),
            &[calls(0), calls(0), calls(1), calls(2), calls(2)],
        ),
        new("other-content", &[1, 0])
            .asking(&other_content, &[calls(0), differs(0), calls(1)])
            .reaching(&[Conflict, Insufficient]),
        new("freeze", &[1, 1])
            .asking(&both(), &[calls(0), calls(1)])
            .freezing_from(1),
        new("freeze-at-once", &[1, 0])
            .asking(&fed, &[calls(0), calls(1)])
            .freezing_from(0),
        new("freeze-again", &[1, 1])
            .asking(&and_a_deposit(), &[calls(0), calls(0), calls(1), calls(2)])
            .freezing_from(1),
        new("purge", &[2, 0])
            .asking(&old, &sent_again)
            .purging(1)
            .reaching(&[TooOld]),
    ]
}

/// Three segments.
fn three() -> Vec<Configuration> {
    let spread = [deduct(2, 0), deduct(1, 2), deposit(1, 1)];
    let expiring = [reserve(1, 1), deduct(1, 0), deduct(1, 2)];
    vec![
        new("three", &[0, 1, 1])
            .asking(&both(), &[calls(0), calls(1)])
            .rounds(3)
            .reaching(&[Insufficient]),
        new("three-again", &[0, 1, 1]).asking(&spread, &[calls(0), calls(0), calls(1), calls(2)]),
        new("three-expiring", &[0, 1, 1])
            .asking(&expiring, &[calls(0), calls(1), calls(2)])
            .expiring()
            .reaching(&[Expired, Insufficient]),
    ]
}

fn reading() -> Vec<Configuration> {
    let one = [deduct(2, 0), deposit(1, 1), read()];
    let two = [deduct(2, 0), deduct(2, 1), read()];
    vec![
        new("read", &[1, 1])
            .asking(&one, &[calls(0), calls(1), calls(2)])
            .reaching(&[AllOk]),
        new("read-and-borrow", &[1, 2])
            .asking(&two, &[calls(0), calls(0), calls(1), calls(2)])
            .reaching(&[Insufficient]),
    ]
}

/// New layouts. The first operation is of before them, the second of after.
fn layouts() -> Vec<Configuration> {
    let takes = [deduct(1, 0), deduct(1, 0).at(2, 1)];
    let fed = [deduct(2, 0), deposit(1, 0).at(2, 1)];
    let shrinks = [deduct(1, 1), deduct(1, 1).at(2, 0)];
    let many = [deduct(2, 0), deduct(1, 0).at(2, 1), deposit(1, 0).at(3, 1)];
    let reads = [read(), deposit(1, 0).at(2, 1), deduct(1, 0)];
    let third = [deduct(3, 0), deposit(1, 0).at(2, 2), deduct(1, 1)];
    let new_again = [calls(0), calls(1), calls(1)];
    let shrink = Configuration {
        plans: &[2],
        ..new("shrink", &[1, 1]).asking(&shrinks, &[calls(0), calls(0), calls(1), calls(1)])
    };
    vec![
        new("grow", &[2, 0])
            .asking(&takes, &new_again)
            .growing(&[2, 3])
            .reaching(&[AllOk, NewHome]),
        new("grow-old-again", &[2, 0])
            .asking(&takes, &[calls(0), calls(0), calls(1)])
            .growing(&[2, 3])
            .reaching(&[AllOk, NewHome]),
        new("grow-short", &[1, 0])
            .asking(&fed, &new_again)
            .growing(&[2])
            .reaching(&[AllOk, Insufficient, NewHome]),
        shrink.rounds(1).crashing(0).reaching(&[AllOk]),
        new("grow-and-purge", &[2, 0])
            .asking(&takes, &new_again)
            .growing(&[2])
            .purging(2)
            .reaching(&[TooOld]),
        new("grow-borrow", &[2, 0])
            .asking(&many, &[calls(0), calls(1), calls(1), calls(2)])
            .growing(&[2, 3])
            .rounds(1)
            .crashing(0),
        Configuration {
            at_first: 2,
            ..new("grow-three", &[1, 1, 0])
                .asking(&third, &[calls(0), calls(1), calls(2)])
                .growing(&[2])
        }
        .reaching(&[Insufficient, NewHome]),
        new("grow-and-read", &[1, 0])
            .asking(&reads, &[calls(0), calls(1), calls(2)])
            .growing(&[2])
            .reaching(&[AllOk, NewHome]),
    ]
}

/// From the first account to a second, of one segment, or back.
fn transfers() -> Vec<Configuration> {
    let goes = [transfer(1, 0, 1)];
    let borrows = [transfer(2, 0, 2), deduct(1, 1)];
    let crosses = [transfer(1, 0, 1), transfer(2, 1, 0).from(1)];
    let twice = [calls(0), calls(0)];
    let ended = [calls(0), calls(0), confirms(0), cancels(0)];
    vec![
        new("transfer", &[1, 0])
            .of(&[0, 1])
            .asking(&goes, &twice)
            .crashing(2)
            .purging(2)
            .reaching(&[AllOk, TooOld]),
        new("transfer-ended", &[1, 0])
            .of(&[0, 1])
            .asking(&goes, &ended)
            .purging(1)
            .reaching(&[AllOk, Refused]),
        new("transfer-borrow", &[1, 1, 0])
            .of(&[0, 0, 1])
            .asking(&borrows, &[calls(0), calls(0), calls(1)])
            .rounds(1)
            .reaching(&[Insufficient]),
        Configuration {
            closed: Some(1),
            ..new("transfer-closed", &[1, 0])
                .of(&[0, 1])
                .asking(&goes, &twice)
                .crashing(2)
                .purging(1)
        }
        .reaching(&[Refused]),
        Configuration {
            absent: Some(1),
            ..new("transfer-to-nobody", &[1, 0])
                .of(&[0, 1])
                .asking(&goes, &twice)
                .crashing(2)
                .purging(1)
        }
        .reaching(&[Refused, AllOk]),
        new("transfer-both-ways", &[1, 1])
            .of(&[0, 1])
            .asking(&crosses, &[calls(0), calls(0), calls(1), calls(1)])
            .rounds(1)
            .reaching(&[AllOk]),
        new("transfer-grow-source", &[1, 0, 0])
            .of(&[0, 0, 1])
            .asking(&[transfer(1, 0, 2).at(2, 1)], &twice)
            .growing(&[2, 3])
            .rounds(2)
            .reaching(&[AllOk]),
        new("transfer-grow-destination", &[0, 0, 1])
            .of(&[0, 0, 1])
            .asking(&[transfer(1, 2, 0).from(1).to(2, 1)], &twice)
            .growing(&[2, 3])
            .reaching(&[AllOk]),
    ]
}

fn reservations() -> Vec<Configuration> {
    let two = [reserve(1, 0), deduct(1, 0)];
    let one = [reserve(1, 0)];
    let moves = [reserve(1, 0).at(2, 1)];
    vec![
        new("reserve", &[1, 0])
            .asking(
                &two,
                &[calls(0), calls(0), confirms(0), cancels(0), calls(1)],
            )
            .expiring()
            .rounds(1)
            .crashing(0)
            .reaching(&[Insufficient, Expired, Confirmed]),
        new("reserve-borrow", &[0, 1])
            .asking(&two, &[calls(0), confirms(0), confirms(0), calls(1)])
            .expiring()
            .rounds(1)
            .reaching(&[Insufficient, Expired, Confirmed]),
        new("reserve-purge", &[2, 0])
            .asking(&one, &[calls(0), calls(0), confirms(0), cancels(0)])
            .expiring()
            .purging(1)
            .rounds(1)
            .reaching(&[TooOld, Confirmed]),
        new("reserve-grow", &[1, 0])
            .asking(&moves, &[calls(0), confirms(0), cancels(0)])
            .expiring()
            .growing(&[2, 3])
            .rounds(1)
            .reaching(&[Confirmed]),
    ]
}

/// A segment restarts without its last change.
fn losses() -> Vec<Configuration> {
    let goes = [transfer(1, 0, 1)];
    let twice = [deduct(1, 0), deduct(1, 0)];
    let reads = [read(), deduct(2, 0), deposit(1, 1)];
    vec![
        new("loss", &[0, 2])
            .asking(&both(), &[calls(0), calls(0), calls(1)])
            .losing(1, 1)
            .rounds(1)
            .crashing(0)
            .reaching(&[Doubtful, Accepted]),
        new("loss-transfer", &[1, 0])
            .of(&[0, 1])
            .asking(&goes, &[calls(0), calls(0)])
            .losing(1, 1)
            .reaching(&[Doubtful, Accepted]),
        new("loss-tail", &[0, 3])
            .asking(&twice, &[calls(0), calls(1)])
            .losing(1, 3)
            .crashing(0)
            .reaching(&[Doubtful, Accepted, AllOk]),
        new("loss-tails", &[0, 2])
            .asking(&twice, &[calls(0), calls(1)])
            .losing(2, 2)
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted, AllOk]),
        new("loss-and-read", &[1, 1])
            .asking(&reads, &[calls(0), calls(1), calls(2)])
            .losing(1, 2)
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted, AllOk]),
        new("loss-late", &[0, 3])
            .asking(&[deduct(2, 0), deduct(1, 0)], &[calls(0), calls(1)])
            .losing(1, 1)
            .reaching(&[Accepted, AllOk]),
    ]
}

/// A server restarts without its segment.
fn vanished() -> Vec<Configuration> {
    let both = [deduct(2, 0), deduct(2, 1)];
    let each = [calls(0), calls(1)];
    let later = [deduct(1, 0), deposit(1, 1).at(2, 1), deduct(1, 0).at(2, 0)];
    let three = [deduct(2, 0), deduct(1, 1).at(2, 1)];
    let reserved = [reserve(1, 0), deduct(1, 0).at(2, 0)];
    vec![
        new("gone", &[1, 1])
            .asking(&both, &each)
            .vanishing(1)
            .reaching(&[Accepted, Insufficient]),
        new("gone-and-later", &[0, 1])
            .asking(&later, &[calls(0), calls(1), calls(2)])
            .vanishing(1)
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted, TooOld, AllOk]),
        new("gone-three", &[1, 1, 1])
            .asking(&three, &each)
            .vanishing(1)
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted, AllOk]),
        new("gone-both", &[1, 1])
            .asking(&both, &each)
            .vanishing(2)
            .reaching(&[Accepted, Insufficient]),
        new("gone-both-and-later", &[0, 1])
            .asking(&later, &[calls(0), calls(0), calls(1), calls(2)])
            .vanishing(2)
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted]),
        new("gone-and-loss", &[1, 1])
            .asking(&both, &each)
            .vanishing(1)
            .losing(1, 2)
            .reaching(&[Accepted]),
        new("gone-transfer", &[1, 0])
            .of(&[0, 1])
            .asking(&[transfer(1, 0, 1)], &[calls(0), calls(0)])
            .vanishing(1)
            .purging(1)
            .reaching(&[Accepted, TooOld, AllOk]),
        new("gone-reserve", &[1, 1])
            .asking(&reserved, &[calls(0), confirms(0), cancels(0), calls(1)])
            .vanishing(1)
            .expiring()
            .rounds(1)
            .crashing(0)
            .reaching(&[Accepted, Confirmed]),
    ]
}

/// The manifest of an account that gets new layouts goes back in time.
fn manifest_losses() -> Vec<Configuration> {
    let takes = [deduct(1, 0), deduct(1, 0).at(2, 1)];
    let fed = [deduct(2, 0), deposit(1, 0).at(2, 1)];
    let reads = [read(), deposit(1, 0).at(2, 1), deduct(1, 0)];
    let new_again = [calls(0), calls(1), calls(1)];
    vec![
        new("manifest-loss", &[2, 0])
            .asking(&takes, &new_again)
            .growing(&[2, 3])
            .losing_the_manifest()
            .reaching(&[AllOk, NewHome]),
        new("manifest-loss-short", &[1, 0])
            .asking(&fed, &new_again)
            .growing(&[2])
            .losing_the_manifest()
            .reaching(&[AllOk, Insufficient, NewHome]),
        new("manifest-loss-and-read", &[1, 0])
            .asking(&reads, &[calls(0), calls(1), calls(2)])
            .growing(&[2])
            .losing_the_manifest()
            .rounds(1)
            .reaching(&[AllOk, NewHome]),
        new("manifest-loss-and-purge", &[2, 0])
            .asking(&takes, &new_again)
            .growing(&[2])
            .purging(1)
            .losing_the_manifest()
            .rounds(1)
            .reaching(&[AllOk]),
    ]
}
