//! Amounts of money, coins or stock, in the smallest unit.

use std::{fmt, str::FromStr};

use crate::limits::AMOUNT_MAX;

/// An error in an amount. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// Zero or negative.
    #[error("amount is {value}, must be 1 to {AMOUNT_MAX}")]
    NotPositive {
        /// The amount refused.
        value: i128,
    },
    /// More than fits.
    #[error("amount is {value}, must be 1 to {AMOUNT_MAX}")]
    TooLarge {
        /// The amount refused.
        value: i128,
    },
    /// Not a whole number in decimal digits.
    #[error("amount is {value:?}, must be a whole number of the smallest unit, 1 to {AMOUNT_MAX}")]
    NotANumber {
        /// The text refused, cut off after 40 characters.
        value: String,
    },
}

/// A number of the smallest unit (cents, coins, pieces): 1 to [`AMOUNT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// Checks `value`.
    ///
    /// # Errors
    ///
    /// Zero, negative, or more than [`AMOUNT_MAX`].
    pub fn new(value: impl Into<i128>) -> Result<Self, AmountError> {
        let value = value.into();
        if value < 1 {
            return Err(AmountError::NotPositive { value });
        }
        match i64::try_from(value) {
            Ok(fits) => Ok(Self(fits)),
            Err(_) => Err(AmountError::TooLarge { value }),
        }
    }

    /// The number of units.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        match text.parse::<i128>() {
            Ok(value) => Self::new(value),
            Err(_) => Err(AmountError::NotANumber {
                value: text.chars().take(40).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_the_greatest_i64_is_an_amount() {
        for value in [1, 2, i64::MAX] {
            assert_eq!(Amount::new(value).unwrap().get(), value);
            assert_eq!(value.to_string().parse(), Amount::new(value));
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_limit() {
        let refused = [i128::MIN, -1, 0, i128::from(i64::MAX) + 1];
        for value in refused {
            let error = Amount::new(value).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("amount is {value}, must be 1 to 9223372036854775807")
            );
        }
        for text in ["", "1.5", "1e3", "one"] {
            let error = text.parse::<Amount>().unwrap_err();
            assert!(matches!(error, AmountError::NotANumber { .. }), "{text}");
        }
    }
}
