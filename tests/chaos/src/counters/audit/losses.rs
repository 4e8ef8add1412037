//! What accounts may have in the end whose shards lost money, or went back in time.

use std::collections::HashSet;

use super::{
    Attempt, Rule, Violation, conserved,
    fate::{Fate, Memory, Outcome},
    fates, last_look, timelines, violation,
};
use crate::counters::{Deed, Order};

/// What an account lost with its shards, and what these forgot.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// How much was in segments that are gone. It does not come back.
    pub gone: i64,
    /// The account that went back is marked, too.
    pub went_back: bool,
    /// How much segments had lent to others, and forgot.
    pub lent: i64,
    /// The times of the ids of which a segment forgot a record, or a change of one.
    pub forgotten: HashSet<u64>,
    /// Layouts that a segment forgot.
    pub layouts: Vec<ForgottenLayout>,
}

/// A layout that a segment forgot. It goes by the former one until its loss is accepted.
#[derive(Clone, Copy, Debug)]
pub struct ForgottenLayout {
    /// The layout decides homes of requests that were created at this time or later, in ms since 1970.
    pub from_ms: u64,
    /// After the segment goes by it again.
    pub until_ns: u64,
}

impl Losses {
    /// Whether the account's segments remember an order that was asked for first at `asked_ns`.
    fn memory(&self, order: &Order, asked_ns: u64) -> Memory {
        if self.forgotten.contains(&order.time_ms) {
            Memory::Forgotten
        } else if self.decided_twice(order, asked_ns) {
            Memory::Twice
        } else {
            Memory::Kept
        }
    }

    /// Whether an order that was asked for first at `asked_ns` may have been decided in two homes.
    fn decided_twice(&self, order: &Order, asked_ns: u64) -> bool {
        self.layouts
            .iter()
            .any(|layout| order.time_ms >= layout.from_ms && asked_ns <= layout.until_ns)
    }
}

/// Checks what was asked of accounts that lost segments, or went back in time: no answer contradicts another, and in the
/// end no account has more than it may. Each says that it lost something.
///
/// # What a segment may do that went back
///
/// A server starts from an older copy of its files. Every segment there is as it was at the time of the copy, in all its
/// parts at once, since a script's changes are one unit of the log. What the segment did since is undone there, and
/// only there: callers have their answers, other segments the loans, other accounts the transfers. The segment notices
/// that if its server does not say that it syncs every write, if the server is at another place, or after a failover. Then
/// a segment with durability `memory` counts a loss, and goes on; with any other durability it is in doubt, until a person
/// accepts it, and then unknown ids are too old. The bounds below are those of `memory`; a segment that was in doubt stays
/// within them. A server at the same place that says that it syncs every write is believed: no promise covers its
/// older files, and no run has them.
///
/// So the account may have *more* than its orders come to by what left the segment since the copy, and is there again:
///
/// * Orders that take money: a deduction, a spent reservation, a sent transfer. The segment forgot each of their records,
///   or the change of one, so their ids are known. They count as nothing.
/// * Loans: the lender has the money, and so has the borrower, now or when the loan lands. They count once more.
///
/// What came in since the copy is missing, and may come again: a deposit that is repeated, a loan that is landed
/// again, a credit. So deposits count once. One whose money was lent or transferred before it was forgotten is in the account
/// twice, once by the repeat, and once by the loan or the transfer, which count above. Other rules that a segment forgets:
///
/// * A refusal of a credit is not always recorded: the mark decides, and goes back, too. So a transfer that came back to its
///   source may arrive at an account that went back.
/// * A segment that forgot a layout decides by the former one, for callers that do not know the layout either, until the loss
///   is accepted: ids of the layout's time may be decided there, and at their homes by the layout. So their deposits count
///   twice, and their reservations may be unknown at the other home.
///
/// There is no lower bound but nothing: a loan may land nowhere, where its receiver was replaced, or its lender forgot the
/// numbers between.
///
/// The upper bound has room for a little money that a rule makes. `lent` counts each loan that was forgotten, but the borrower
/// has only those that landed, and may have forgotten that, too: no log says which. And a request that was too old after a
/// loss counts as if it had put in its amount and taken nothing: after each loss about as many as were under way. So a rule
/// that lands loans of any number is found, and a loan that lands twice now and then is not.
///
/// Answers to an order that a segment forgot, or that was decided twice, may contradict each other, and its reservation may
/// be unknown. All others hold.
pub fn audit_losses(attempts: &[Attempt], losses: &[Losses]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let memory = |order: &Order, asked_ns| losses[order.account].memory(order, asked_ns);
    let fates = fates(attempts, memory, &mut violations);
    let mut most: Vec<i64> = timelines(fates.values(), losses.len())
        .iter()
        .zip(losses)
        .map(|(timeline, losses)| timeline.end().most + losses.lent - losses.gone)
        .collect();
    for fate in fates.values() {
        for (account, more) in counts_twice(fate, losses) {
            // One of the accounts is not there.
            if let Some(most) = most.get_mut(account) {
                *most += more;
            }
        }
    }
    for (account, (losses, most)) in losses.iter().zip(most).enumerate() {
        violations.extend(conserved(account, 0..=most, attempts));
        let said = last_look(account, attempts).map_or(0, |found| found.losses);
        if (losses.gone > 0 || losses.went_back) && said == 0 {
            let told = format!("account {account} says that it lost nothing: {losses:?}");
            violations.push(violation(Rule::Sound, told));
        }
    }
    violations.sort_by_key(|violation| violation.rule);
    violations
}

/// How much an order may have put into an account beside what it is told to have.
fn counts_twice(fate: &Fate, losses: &[Losses]) -> Vec<(usize, i64)> {
    let Order {
        account,
        amount,
        ref deed,
        ..
    } = fate.order;
    match *deed {
        Deed::Deposit if losses[account].decided_twice(&fate.order, fate.asked_ns) => {
            vec![(account, amount)]
        }
        Deed::Transfer(to) if may_have_arrived(fate, losses, &[to]) => vec![(to, amount)],
        Deed::Legs(to) => {
            let half = fate.order.amount_of_each();
            // A leg that its account forgot came back, though the request was done.
            let is_back = to.iter().any(|to| went_back(losses, *to));
            let back = is_back.then_some((account, half));
            let arrived = may_have_arrived(fate, losses, &to);
            let legs = to.into_iter().filter(|_| arrived).map(|to| (to, half));
            legs.chain(back).collect()
        }
        Deed::ReserveFor(_, to) => {
            let half = fate.order.amount_of_each();
            // As above; or it was spent at one home, and came back at the other.
            let back = went_back(losses, to).then_some((account, half));
            let is_twice = went_back(losses, to) || fate.memory == Memory::Twice;
            let arrived = is_twice.then_some((to, half));
            arrived.into_iter().chain(back).collect()
        }
        _ => Vec::new(),
    }
}

fn went_back(losses: &[Losses], account: usize) -> bool {
    losses.get(account).is_some_and(|losses| losses.went_back)
}

/// Whether a transfer that came back may be in the accounts that it went to.
fn may_have_arrived(fate: &Fate, losses: &[Losses], to: &[usize]) -> bool {
    matches!(fate.result, Some((_, Outcome::Returned)))
        && match fate.memory {
            Memory::Kept => to.iter().any(|to| went_back(losses, *to)),
            Memory::Twice => true,
            Memory::Forgotten => false,
        }
}
