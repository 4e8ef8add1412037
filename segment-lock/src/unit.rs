//! The unit of an account's money.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::limits::UNIT_LEN_MAX;

/// A unit that is too long, or has other characters. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unit is {unit:?}, must be at most {UNIT_LEN_MAX} of A-Z, a-z, 0-9, '-', '_' and '.'")]
pub struct UnitError {
    /// The refused text, cut off after 40 characters.
    pub unit: String,
}

/// The code of a unit: `EUR`, `EUR-cent`, `coin`. Empty: the account has none, which differs from each other unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Unit {
    bytes: [u8; UNIT_LEN_MAX],
    len: u8,
}

impl Unit {
    /// No unit.
    pub const NONE: Self = Self {
        bytes: [0; UNIT_LEN_MAX],
        len: 0,
    };

    /// The code.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.len == 0
    }
}

impl FromStr for Unit {
    type Err = UnitError;

    fn from_str(code: &str) -> Result<Self, UnitError> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let refused = || UnitError {
            unit: code.chars().take(40).collect(),
        };
        let mut unit = Self::NONE;
        let (true, Some(place)) = (code.bytes().all(is_known), unit.bytes.get_mut(..code.len()))
        else {
            return Err(refused());
        };
        place.copy_from_slice(code.as_bytes());
        unit.len = u8::try_from(code.len()).map_err(|_| refused())?;
        Ok(unit)
    }
}

impl TryFrom<String> for Unit {
    type Error = UnitError;

    fn try_from(code: String) -> Result<Self, UnitError> {
        code.parse()
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.as_str().to_owned()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_short_code() {
        for code in ["", "EUR", "EUR-cent", "a.b_c-d.e_f-1234"] {
            let unit: Unit = code.parse().unwrap();
            assert_eq!((unit.as_str(), unit.is_none()), (code, code.is_empty()));
        }
        for code in ["a b", "a:b", "\u{20ac}", "a.b_c-d.e_f-12345"] {
            let error = code.parse::<Unit>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unit is {code:?}, must be at most 16 of")));
        }
    }
}
