//! Transfers to accounts that are not there all the time.

use super::{
    Attempt, Rule, Violation, conserved,
    fate::{Memory, Outcome},
    fates, violation,
};
use crate::counters::Deed;

/// An account that comes and goes; its number is one after those of the accounts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visitor {
    /// After it was gone, if it ever was.
    pub gone_ns: Option<u64>,
    /// Before and after it was created for the last time, if it is there in the end.
    pub created_ns: Option<(u64, u64)>,
}

/// Checks the transfers to `visitors`. The accounts that send are checked as others are: a transfer that came back counts
/// as nothing there.
///
/// A visitor has what was delivered since its last creation, and nothing of before. A transfer that is answered before it
/// is created is not in it; one that is asked for later, and delivered, is. To one that is gone for good nothing is
/// delivered.
pub fn audit_visitors(
    attempts: &[Attempt],
    accounts: usize,
    visitors: &[Visitor],
) -> Vec<Violation> {
    let mut violations = Vec::new();
    // Each is reported by the audit of the accounts.
    let fates = fates(attempts, |_, _| Memory::Kept, &mut Vec::new());
    let mut bounds = vec![(0, 0); visitors.len()];
    for fate in fates.values() {
        let Deed::Transfer(to) = fate.order.deed else {
            continue;
        };
        let Some(place) = to
            .checked_sub(accounts)
            .filter(|place| *place < visitors.len())
        else {
            continue;
        };
        let visitor = visitors[place];
        let delivered_ns = match fate.result {
            Some((by_ns, Outcome::Done)) => Some(by_ns),
            Some(_) => continue,
            None => None,
        };
        let Some((before_ns, after_ns)) = visitor.created_ns else {
            if delivered_ns.is_some() && visitor.gone_ns.is_none_or(|gone| fate.asked_ns > gone) {
                let told = format!("delivered to an account that is not there: {fate:?}");
                violations.push(violation(Rule::Nowhere, told));
            }
            continue;
        };
        if delivered_ns.is_none_or(|by_ns| by_ns > before_ns) {
            bounds[place].1 += fate.order.amount;
        }
        if delivered_ns.is_some() && fate.asked_ns > after_ns {
            bounds[place].0 += fate.order.amount;
        }
    }
    for (place, (visitor, (least, most))) in visitors.iter().zip(bounds).enumerate() {
        if visitor.created_ns.is_some() {
            violations.extend(conserved(accounts + place, least..=most, attempts));
        }
    }
    violations
}
