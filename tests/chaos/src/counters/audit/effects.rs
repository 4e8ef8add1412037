//! Whether the log of an account is what its orders came to.

use std::collections::HashMap;

use super::{
    Fates, Rule, Violation,
    fate::{Fate, Memory, Outcome},
    last_look, violation,
};
use crate::counters::{Answer, Attempt, Call, Deed, EffectWord, End, Logged, Order};

/// The effects of an order in a log, counted by their words.
#[derive(Debug, Default)]
struct Seen {
    counts: HashMap<EffectWord, usize>,
    amounts: Vec<(EffectWord, i64)>,
}

/// Checks the last history of `account`: it is its money, and each order that had an effect has it there once.
pub(super) fn logged(account: usize, attempts: &[Attempt], fates: &Fates<'_>) -> Vec<Violation> {
    let Some(Logged {
        effects,
        available,
        held,
        broken,
    }) = last_history(account, attempts)
    else {
        return Vec::new();
    };
    let mut found: Vec<_> = broken
        .iter()
        .map(|told| violation(Rule::Log, format!("account {account}: {told}")))
        .collect();
    let look = last_look(account, attempts);
    if let Some(look) = look.filter(|look| (look.available, look.held) != (*available, *held)) {
        let told = format!("account {account} has {look:?}, and logs {available} and {held}");
        found.push(violation(Rule::Log, told));
    }
    let mut seen: HashMap<(usize, &str), Seen> = HashMap::new();
    for effect in effects {
        let of = seen.entry((effect.account, &effect.name)).or_default();
        *of.counts.entry(effect.word).or_default() += 1;
        of.amounts.push((effect.word, effect.amount));
    }
    let none = Seen::default();
    for (key, seen) in &seen {
        if !fates.contains_key(key) {
            let told =
                format!("account {account} logs {seen:?} of {key:?}, which nobody asked for");
            found.push(violation(Rule::Log, told));
        }
    }
    for (key, fate) in fates.iter().filter(|(_, fate)| fate.memory == Memory::Kept) {
        let seen = seen.get(key).unwrap_or(&none);
        let is_same = seen
            .amounts
            .iter()
            .all(|(word, amount)| *amount == amount_of(&fate.order, *word, seen));
        if !is_same || !agrees(fate, account, seen) {
            let told = format!("account {account} logs {seen:?} of {fate:?}");
            found.push(violation(Rule::Log, told));
        }
    }
    found
}

/// The amount of an effect of an order.
fn amount_of(order: &Order, word: EffectWord, seen: &Seen) -> i64 {
    let is_spent = seen.counts.contains_key(&EffectWord::Delivered);
    match (&order.deed, word) {
        (Deed::ReserveFor(..), EffectWord::Reserved | EffectWord::Expired) => order.amount,
        (Deed::ReserveFor(..), EffectWord::Cancelled) if !is_spent => order.amount,
        _ => order.amount_of_each(),
    }
}

/// Whether an order has the effects that its answers say.
fn agrees(fate: &Fate, account: usize, seen: &Seen) -> bool {
    use EffectWord::{
        Cancelled, Confirmed, Deducted, Delivered, Deposited, Expired, Received, Reserved,
        Returned, Sent,
    };
    let count = |word| seen.counts.get(&word).copied().unwrap_or_default();
    let all: usize = seen.counts.values().sum();
    let outcome = fate.result.map(|(_, outcome)| outcome);
    let is_done = outcome == Some(Outcome::Done);
    // Without an answer it may have been done, once.
    let once = |word| match outcome {
        None => count(word) <= 1,
        Some(_) => count(word) == usize::from(is_done),
    };
    let is_own = fate.order.account == account;
    match fate.order.deed {
        Deed::Transfer(to) if to == account && !is_own => once(Received) && all == count(Received),
        Deed::Legs(to) if to.contains(&account) && !is_own => {
            once(Received) && all == count(Received)
        }
        Deed::ReserveFor(_, to) if to == account && !is_own => {
            let is_paid = fate.end.map(|(_, end)| end == End::Confirmed);
            let fits = match is_paid {
                None => count(Received) <= 1,
                Some(is_paid) => count(Received) == usize::from(is_paid),
            };
            fits && all == count(Received)
        }
        _ if !is_own => all == 0,
        Deed::Deposit => once(Deposited) && all == count(Deposited),
        Deed::Deduct => once(Deducted) && all == count(Deducted),
        Deed::Transfer(_) | Deed::Legs(_) => {
            let most = if let Deed::Legs(to) = fate.order.deed {
                to.len()
            } else {
                1
            };
            let ended = (count(Delivered), count(Returned));
            let is_ended = match outcome {
                None => ended.0 + ended.1 == count(Sent),
                Some(Outcome::Done) => (count(Sent), ended) == (most, (most, 0)),
                Some(_) => ended == (0, count(Sent)),
            };
            // All legs, or none.
            let is_whole = [0, most].contains(&count(Sent)) && [0, most].contains(&ended.0);
            is_whole && is_ended && all == count(Sent) + ended.0 + ended.1
        }
        Deed::Reserve(_) => {
            let ends = [Confirmed, Cancelled, Expired].map(count);
            let is_ended = match fate.end.map(|(_, end)| end) {
                Some(End::Confirmed) => ends == [1, 0, 0],
                Some(End::Expired) => ends == [0, 0, 1],
                // Perhaps before it came.
                Some(End::Cancelled) => ends == [0, count(Reserved), 0],
                None => ends.iter().sum::<usize>() == count(Reserved),
            };
            count(Reserved) <= 1 && is_ended && all == 2 * count(Reserved)
        }
        Deed::ReserveFor(..) => {
            // What is not spent comes back.
            const SPENT: [usize; 3] = [1, 1, 0];
            let ends = [Delivered, Cancelled, Expired].map(count);
            let is_ended = match fate.end.map(|(_, end)| end) {
                Some(End::Confirmed) => ends == SPENT,
                Some(End::Expired) => ends == [0, 0, 1],
                // Perhaps before it came.
                Some(End::Cancelled) => ends == [0, count(Reserved), 0],
                None => ends == SPENT || ends.iter().sum::<usize>() == count(Reserved),
            };
            let sum = ends.iter().sum::<usize>();
            count(Reserved) <= 1 && is_ended && all == count(Reserved) + sum
        }
    }
}

/// The last history of an account.
fn last_history(account: usize, attempts: &[Attempt]) -> Option<&Logged> {
    let read = attempts
        .iter()
        .filter_map(|attempt| match &attempt.answered {
            Some((at_ns, Answer::Logged(logged))) if attempt.call == Call::History(account) => {
                Some((at_ns, logged))
            }
            _ => None,
        });
    read.max_by_key(|(at_ns, _)| **at_ns)
        .map(|(_, logged)| logged)
}
