//! Money for several accounts at once, all or nothing.

use std::{ops::Deref, sync::Arc};

use crate::{
    Account, Amount,
    limits::{AMOUNT_MAX, LEGS_MAX},
};

/// One leg of a transfer or of a capture: the amount for one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The receiver.
    pub to: Account,
    /// The amount.
    pub amount: Amount,
}

/// The legs of one transfer or capture: 1 to [`LEGS_MAX`], each to another account, in the order of the names. Cheap to
/// clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legs(Arc<[Leg]>);

/// An error in legs. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegsError {
    /// None, or too many.
    #[error("there are {count} legs, must be 1 to {LEGS_MAX}")]
    Count {
        /// The number of legs.
        count: usize,
    },
    /// Two legs to one account.
    #[error("account {to} has two legs, must have one")]
    Twice {
        /// The account.
        to: Account,
    },
    /// A leg to the account that pays.
    #[error("account {account} pays the legs, so it cannot receive one")]
    ToSource {
        /// The account.
        account: Account,
    },
    /// The sum does not fit.
    #[error("the legs are {sum} together, must be at most {AMOUNT_MAX}")]
    TooLarge {
        /// The sum.
        sum: i128,
    },
}

impl Legs {
    /// Checks the legs, which may be in any order.
    ///
    /// # Errors
    ///
    /// As listed in [`LegsError`].
    pub fn new(mut legs: Vec<Leg>) -> Result<Self, LegsError> {
        let count = legs.len();
        if !(1..=LEGS_MAX).contains(&count) {
            return Err(LegsError::Count { count });
        }
        legs.sort_by(|one, other| one.to.cmp(&other.to));
        if let Some(pair) = legs.windows(2).find(|pair| pair[0].to == pair[1].to) {
            let to = pair[0].to.clone();
            return Err(LegsError::Twice { to });
        }
        let sum = legs.iter().map(|leg| i128::from(leg.amount.get())).sum();
        match sum > i128::from(AMOUNT_MAX) {
            true => Err(LegsError::TooLarge { sum }),
            false => Ok(Self(legs.into())),
        }
    }

    /// Whether `source` may pay them.
    pub(crate) fn paid_by(&self, source: &Account) -> Result<(), LegsError> {
        match self.iter().any(|leg| leg.to == *source) {
            false => Ok(()),
            true => Err(LegsError::ToSource {
                account: source.clone(),
            }),
        }
    }

    /// The sum of all amounts.
    pub fn sum(&self) -> Amount {
        let sum: i64 = self.iter().map(|leg| leg.amount.get()).sum();
        Amount::new(sum).expect("legs are positive, and their sum was checked")
    }

    /// Each amount (64 bits, little-endian), and the account, with a byte that no name has behind it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let each = self.iter().map(|leg| {
            let amount = leg.amount.get().to_le_bytes();
            [&amount[..], leg.to.as_str().as_bytes(), &[0xff]].concat()
        });
        each.collect::<Vec<_>>().concat()
    }
}

impl Deref for Legs {
    type Target = [Leg];

    fn deref(&self) -> &[Leg] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legs(legs: &[(&str, i64)]) -> Result<Legs, LegsError> {
        let leg = |&(to, amount): &(&str, i64)| Leg {
            to: Account::new(to).unwrap(),
            amount: Amount::new(amount).unwrap(),
        };
        Legs::new(legs.iter().map(leg).collect())
    }

    #[test]
    fn legs_are_a_few_to_different_accounts_with_a_sum_that_fits() {
        let two = legs(&[("a", 2), ("b", 3)]).unwrap();
        assert_eq!(two.sum().get(), 5);
        assert_eq!(legs(&[("b", 3), ("a", 2)]).unwrap(), two);
        let error = |wrong: &[(&str, i64)]| legs(wrong).unwrap_err().to_string();
        assert_eq!(error(&[]), "there are 0 legs, must be 1 to 16");
        let names: Vec<String> = (0..17).map(|nth| nth.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
        assert_eq!(error(&many), "there are 17 legs, must be 1 to 16");
        assert!(legs(&many[1..]).is_ok());
        assert_eq!(
            error(&[("a", 1), ("b", 1), ("a", 2)]),
            "account a has two legs, must have one"
        );
        assert_eq!(
            error(&[("a", i64::MAX), ("b", 1)]),
            "the legs are 9223372036854775808 together, must be at most 9223372036854775807"
        );
        let source = Account::new("a").unwrap();
        let paid = legs(&[("a", 1)]).unwrap().paid_by(&source);
        assert_eq!(
            paid.unwrap_err().to_string(),
            "account a pays the legs, so it cannot receive one"
        );
    }
}
