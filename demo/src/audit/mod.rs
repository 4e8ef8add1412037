//! Checks that every coin is accounted for, by comparing the journal with the balances.
//!
//! Pure. It trusts neither the workers nor the locks, only the bank's records.

mod violation;

use super::bank::{Books, Deduction};
pub(super) use violation::Violation;
use violation::{Finding, Stamp};

/// Recomputes every balance, and checks every deduction. No violation: every coin is accounted for.
pub(super) fn audit(books: &Books) -> Vec<Violation> {
    let mut histories: Vec<Vec<&Deduction>> = vec![Vec::new(); books.balances.len()];
    for deduction in &books.journal {
        histories[deduction.account as usize].push(deduction);
    }
    let mut violations = doubled(&books.journal);
    for ((number, deductions), &closing) in (0..).zip(histories).zip(&books.balances) {
        let account = Account {
            number,
            opening: books.opening,
            closing,
            deductions,
        };
        violations.extend(account.violations());
    }
    violations
}

/// Deductions that are in the journal more than once.
fn doubled(journal: &[Deduction]) -> Vec<Violation> {
    let mut by_op: Vec<&Deduction> = journal.iter().collect();
    by_op.sort_by_key(|deduction| deduction.op);
    let pairs = by_op.windows(2).filter(|pair| pair[0].op == pair[1].op);
    let violation = |pair: &[&Deduction]| {
        let (first_account, account) = (pair[0].account, pair[1].account);
        let (first, of) = (pair[0].into(), pair[1].into());
        let finding = Finding::Doubled {
            of,
            first_account,
            first,
        };
        Violation { account, finding }
    };
    pairs.map(violation).collect()
}

/// One account, from its opening to its last balance.
struct Account<'a> {
    number: u32,
    opening: i64,
    closing: i64,
    deductions: Vec<&'a Deduction>,
}

impl<'a> Account<'a> {
    fn violations(&self) -> impl Iterator<Item = Violation> {
        let findings = self.lost().into_iter().chain(self.overwritten());
        let findings = findings.chain(self.out_of_order()).chain(self.negative());
        findings.map(|finding| Violation {
            account: self.number,
            finding,
        })
    }

    /// The balance did not fall by the sum of the deductions.
    fn lost(&self) -> Option<Finding> {
        let amounts = self
            .deductions
            .iter()
            .map(|deduction| deduction.before - deduction.after);
        let (deducted, fell) = (amounts.sum(), self.opening - self.closing);
        if deducted == fell {
            return None;
        }
        let overwritten = self.overwritten().find_map(|finding| match finding {
            Finding::Overwritten { of, .. } => of,
            _ => None,
        });
        let last = self.deductions.last().map(|&last| last.into());
        Some(Finding::Lost {
            deducted,
            fell,
            of: overwritten.or(last),
        })
    }

    /// Deductions made from another balance than the one that the deduction before left.
    fn overwritten(&self) -> impl Iterator<Item = Finding> {
        self.steps().filter_map(|(former, by)| {
            let left = former.map_or(self.opening, |former| former.after);
            let (of, read) = (former.map(Stamp::from), by.before);
            (read != left).then(|| Finding::Overwritten {
                of,
                left,
                by: by.into(),
                read,
            })
        })
    }

    /// Tokens that do not rise. The same deduction twice is [`doubled`], not two holders.
    fn out_of_order(&self) -> impl Iterator<Item = Finding> {
        let stamped = self
            .deductions
            .iter()
            .filter(|deduction| deduction.token.is_some());
        let next = stamped.clone().skip(1);
        let falls = |(former, late): &(&&Deduction, &&Deduction)| {
            late.token < former.token || (late.token == former.token && late.op != former.op)
        };
        let pairs = stamped.zip(next).filter(falls);
        pairs.map(|(&after, &of)| Finding::OutOfOrder {
            of: of.into(),
            after: after.into(),
        })
    }

    /// Deductions of more coins than there were.
    fn negative(&self) -> impl Iterator<Item = Finding> {
        let negative = self
            .deductions
            .iter()
            .filter(|deduction| deduction.after < 0);
        negative.map(|&of| Finding::Negative {
            of: of.into(),
            left: of.after,
        })
    }

    /// Each deduction, and the one before it.
    fn steps(&self) -> impl Iterator<Item = (Option<&'a Deduction>, &'a Deduction)> {
        let formers =
            std::iter::once(None).chain(self.deductions.iter().map(|&former| Some(former)));
        formers.zip(self.deductions.iter().copied())
    }
}

#[cfg(test)]
mod tests;
