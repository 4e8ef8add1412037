//! Whether what tellers were told can be true.

mod effects;
mod fate;
mod handovers;
mod losses;
mod timeline;
mod visitors;

use std::{collections::HashMap, fmt, ops::RangeInclusive};

use self::{
    fate::{Fate, Memory, Outcome},
    timeline::{Change, Timeline},
};
use super::{Answer, Attempt, Balance, Call, Order};
pub use handovers::Handover;
pub use losses::{ForgottenLayout, Losses, audit_losses};
pub use visitors::{Visitor, audit_visitors};

/// What must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// In the end an account has what was put in and not taken out, and nothing is set aside.
    Conservation,
    /// An exact balance was so at some instant of its call.
    Exact,
    /// An account that was said to be short was so at some instant of the request.
    Insufficient,
    /// Nothing is delivered to an account that is not there.
    Nowhere,
    /// Every answer to a request is the first one.
    Agreement,
    /// Every request is answered in the end.
    Answered,
    /// Nothing is negative, and nothing in doubt or said to be lost where it is not.
    Sound,
    /// What fails does so for a reason that there was.
    Failure,
    /// The log of an account is its money, and has each effect of an order once.
    Log,
    /// A latch has as many counts left as requests did not count it down.
    Latch,
    /// A run has seen enough of everything.
    Minimum,
}

/// Something that cannot be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What should be true.
    pub rule: Rule,
    /// What was seen instead.
    pub told: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.rule, self.told)
    }
}

/// Checks all that was asked of so many accounts, new at first and left alone in the end; the last look at each
/// was an exact one. A handover loses no change that was acknowledged.
pub fn audit(attempts: &[Attempt], accounts: usize, handovers: &[Handover]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let fates = fates(attempts, |_, _| Memory::Kept, &mut violations);
    let done = |fate: &&Fate| !handovers::is_undone(fate, handovers);
    let timelines = timelines(fates.values().filter(done), accounts);
    for attempt in attempts {
        let Some(order) = attempt.call.order() else {
            continue;
        };
        if let Some((at_ns, Answer::TooOld)) = attempt.answered
            && !handovers
                .iter()
                .any(|handover| handover.may_refuse(order, at_ns))
        {
            let told = format!("too old: {:?}", attempt.call);
            violations.push(violation(Rule::Failure, told));
        }
    }
    for fate in fates.values() {
        violations.extend(short(fate, &timelines));
    }
    for attempt in attempts {
        violations.extend(looked(attempt, &timelines, handovers));
    }
    for (account, timeline) in timelines.iter().enumerate() {
        let (least, most) = (timeline.end().least, timeline.end().most);
        violations.extend(conserved(account, least..=most, attempts));
        violations.extend(effects::logged(account, attempts, &fates));
    }
    violations.sort_by_key(|violation| violation.rule);
    violations
}

/// How much each account can have had, by the `fates` of the orders.
fn timelines<'a>(fates: impl Iterator<Item = &'a Fate>, accounts: usize) -> Vec<Timeline> {
    let mut changes: Vec<Vec<Change>> = vec![Vec::new(); accounts];
    for (account, change) in fates.flat_map(Fate::changes) {
        // Nobody has an account after the last: what arrives there is missing elsewhere.
        if let Some(changes) = changes.get_mut(account) {
            changes.push(change);
        }
    }
    changes.iter().map(|all| Timeline::of(all)).collect()
}

type Fates<'a> = HashMap<(usize, &'a str), Fate>;

fn violation(rule: Rule, told: String) -> Violation {
    Violation { rule, told }
}

/// The fate of every order, by its account and name. `memory`: of an order that was asked for first at that time.
fn fates<'a>(
    attempts: &'a [Attempt],
    memory: impl Fn(&Order, u64) -> Memory,
    violations: &mut Vec<Violation>,
) -> Fates<'a> {
    let mut fates = HashMap::new();
    let mut in_order: Vec<_> = attempts.iter().collect();
    in_order.sort_by_key(|attempt| attempt.asked_ns);
    for attempt in in_order {
        if let Some((_, Answer::Failed(why))) = &attempt.answered {
            violations.push(violation(
                Rule::Failure,
                format!("{:?}: {why}", attempt.call),
            ));
        }
        let Some(order) = attempt.call.order() else {
            continue;
        };
        let key = (order.account, order.name.as_str());
        let fate = fates
            .entry(key)
            .or_insert_with(|| Fate::new(order, memory(order, attempt.asked_ns)));
        violations.extend(fate.add(attempt).err());
    }
    for fate in fates.values() {
        if !fate.is_over() {
            violations.push(violation(Rule::Answered, format!("{fate:?}")));
        }
        if fate.was_unseen() {
            let told = format!("what was answered was never seen: {fate:?}");
            violations.push(violation(Rule::Agreement, told));
        }
        if fate.was_denied() {
            let told = format!("a repeat was told that nothing was done: {fate:?}");
            violations.push(violation(Rule::Agreement, told));
        }
    }
    fates
}

/// An account was said to be short: was it ever?
fn short(fate: &Fate, timelines: &[Timeline]) -> Option<Violation> {
    let (by_ns, Outcome::Insufficient) = fate.result? else {
        return None;
    };
    let timeline = &timelines[fate.order.account];
    let was = timeline.ever(fate.asked_ns, by_ns, |bounds| {
        bounds.least < fate.order.amount
    });
    (!was).then(|| violation(Rule::Insufficient, format!("{fate:?}")))
}

/// Was a balance ever so?
fn looked(attempt: &Attempt, timelines: &[Timeline], handovers: &[Handover]) -> Option<Violation> {
    let (to_ns, Answer::Balance(balance)) = attempt.answered.as_ref()? else {
        return None;
    };
    let Balance {
        available,
        held,
        losses,
    } = *balance;
    let may_be_marked = handovers.iter().any(|handover| handover.from_ns < *to_ns);
    if available < 0 || held < 0 || (losses > 0 && !may_be_marked) {
        return Some(violation(Rule::Sound, format!("{attempt:?}")));
    }
    let Call::Exact(account) = attempt.call else {
        return None;
    };
    let can_be = |bounds: &timeline::Bounds| (bounds.least..=bounds.most).contains(&available);
    // Others come and go.
    let timeline = timelines.get(account)?;
    let was = timeline.ever(attempt.asked_ns, *to_ns, can_be);
    (!was).then(|| violation(Rule::Exact, format!("{attempt:?}")))
}

/// The last exact balance of an account is what its orders come to.
fn conserved(
    account: usize,
    should: RangeInclusive<i64>,
    attempts: &[Attempt],
) -> Option<Violation> {
    let (least, most) = (should.start(), should.end());
    let expected = format!("account {account} should have {least} to {most}");
    let told = match last_look(account, attempts) {
        None => format!("{expected}, and nobody looked"),
        Some(found) if found.held != 0 || !should.contains(&found.available) => {
            format!("{expected} and nothing set aside, and has {found:?}")
        }
        Some(_) => return None,
    };
    Some(violation(Rule::Conservation, told))
}

/// The last exact balance of an account.
fn last_look(account: usize, attempts: &[Attempt]) -> Option<&Balance> {
    let looks = attempts
        .iter()
        .filter_map(|attempt| match &attempt.answered {
            Some((at_ns, Answer::Balance(balance))) if attempt.call == Call::Exact(account) => {
                Some((at_ns, balance))
            }
            _ => None,
        });
    let last = looks.max_by_key(|(at_ns, _)| **at_ns);
    last.map(|(_, balance)| balance)
}
