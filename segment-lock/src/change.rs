//! The changes that a request can ask for.

use crate::{
    Account, Amount, Legs,
    id::{hash_of, hash_of_text},
    limits::ACCOUNT_NAME_LEN_MAX,
};

/// A change of an account, to be applied once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Money comes in.
    Deposit {
        /// The amount.
        amount: Amount,
    },
    /// Money goes out.
    Deduct {
        /// The amount.
        amount: Amount,
    },
    /// Money is set aside until it is confirmed or cancelled, or comes back at the deadline.
    Reserve {
        /// The amount.
        amount: Amount,
        /// The time at which it comes back by itself, in ms since 1970 on the segment's clock.
        deadline_ms: u64,
    },
    /// Money is set aside until the other account has received or refused it. It never comes back by itself.
    Transfer {
        /// The amount.
        amount: Amount,
        /// The receiver.
        to: Account,
    },
    /// Money is set aside for several accounts, which have promised to receive it. It never comes back by itself.
    TransferLegs {
        /// The amounts, and the receivers.
        legs: Legs,
    },
}

impl Change {
    /// The amount.
    pub fn amount(&self) -> Amount {
        match self {
            Self::Deposit { amount }
            | Self::Deduct { amount }
            | Self::Reserve { amount, .. }
            | Self::Transfer { amount, .. } => *amount,
            Self::TransferLegs { legs } => legs.sum(),
        }
    }

    /// The amount that it adds to the money that may be spent; below 0: that it takes.
    pub fn signed(&self) -> i64 {
        let amount = self.amount().get();
        match self {
            Self::Deposit { .. } => amount,
            Self::Deduct { .. }
            | Self::Reserve { .. }
            | Self::Transfer { .. }
            | Self::TransferLegs { .. } => -amount,
        }
    }

    /// A digest that identifies the content of a request: XXH3-64 over the kind (one byte, 1 to 5 in the order above),
    /// the amount and the deadline (0 if there is none; both 64 bits, little-endian), and the name of the other
    /// account. Of a transfer of several legs: over the kind and, for each leg, the amount, the name, and a byte 0xff. The caller
    /// computes it; a segment only compares it.
    pub fn digest(&self) -> u64 {
        let (kind, deadline_ms, to) = match self {
            Self::Deposit { .. } => (1, 0, ""),
            Self::Deduct { .. } => (2, 0, ""),
            Self::Reserve { deadline_ms, .. } => (3, *deadline_ms, ""),
            Self::Transfer { to, .. } => (4, 0, to.as_str()),
            Self::TransferLegs { legs } => {
                return hash_of_text(&[&[5], &legs.bytes()[..]].concat());
            }
        };
        let (amount, deadline) = (self.amount().get().to_le_bytes(), deadline_ms.to_le_bytes());
        hash_of::<{ 17 + ACCOUNT_NAME_LEN_MAX }>(&[&[kind], &amount, &deadline, to.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Leg;

    #[test]
    fn every_part_of_a_change_is_in_its_digest() {
        let amount = |value: i64| Amount::new(value).unwrap();
        let to = |name: &str| Account::new(name).unwrap();
        let transfer = |legs: &[(&str, i64)]| {
            let leg = |&(name, value): &(&str, i64)| Leg {
                to: to(name),
                amount: amount(value),
            };
            let legs = Legs::new(legs.iter().map(leg).collect()).unwrap();
            Change::TransferLegs { legs }
        };
        let changes = [
            Change::Deposit { amount: amount(1) },
            Change::Deposit { amount: amount(2) },
            Change::Deduct { amount: amount(1) },
            Change::Reserve {
                amount: amount(1),
                deadline_ms: 1,
            },
            Change::Reserve {
                amount: amount(1),
                deadline_ms: 2,
            },
            Change::Transfer {
                amount: amount(1),
                to: to("a"),
            },
            Change::Transfer {
                amount: amount(1),
                to: to("b"),
            },
            transfer(&[("a", 1)]),
            transfer(&[("a", 1), ("b", 1)]),
            transfer(&[("a", 1), ("b", 2)]),
            transfer(&[("b", 1), ("c", 1)]),
        ];
        for (at, one) in changes.iter().enumerate() {
            for other in &changes[..at] {
                assert_ne!(one.digest(), other.digest(), "{one:?} {other:?}");
            }
        }
    }
}
