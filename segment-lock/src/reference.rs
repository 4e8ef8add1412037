//! References: the callers' own names for the causes of requests.

use std::{fmt, str::FromStr};

use crate::{RequestId, limits::REFERENCE_LEN};

/// Not 32 hexadecimal digits. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reference is {text:?}, must be 32 hexadecimal digits, a UUID for example")]
pub struct ReferenceError {
    /// The refused text, cut off after 40 characters.
    pub text: String,
}

/// 16 bytes of the caller's choice that the account's log keeps with the effect of a request: a UUID of an order, for
/// example. They have no meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(pub [u8; REFERENCE_LEN]);

/// The id of a request, and perhaps a reference. A repeat keeps the reference of the first attempt.
#[derive(Clone, Copy, Debug)]
pub struct Referenced<'a> {
    /// The id.
    pub id: &'a RequestId,
    /// The reference.
    pub reference: Option<Reference>,
}

impl<'a> From<&'a RequestId> for Referenced<'a> {
    fn from(id: &'a RequestId) -> Self {
        let reference = None;
        Self { id, reference }
    }
}

impl RequestId {
    /// This id, with a reference for the account's log. Without a log, the request is refused.
    pub fn with_reference(&self, reference: Reference) -> Referenced<'_> {
        let reference = Some(reference);
        Referenced {
            id: self,
            reference,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    /// Dashes are ignored.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let digits = text.replace('-', "");
        let is_hex = digits.len() == 2 * REFERENCE_LEN && !digits.starts_with('+');
        match u128::from_str_radix(&digits, 16) {
            Ok(number) if is_hex => Ok(Self(number.to_be_bytes())),
            _ => Err(ReferenceError {
                text: text.chars().take(40).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_32_digits() {
        let uuid = "0190163d-8694-739b-aea5-966c26f8ad91";
        let reference: Reference = uuid.parse().unwrap();
        assert_eq!(reference.to_string(), uuid.replace('-', ""));
        let short = "0".repeat(31);
        for text in ["", "x", &short, &format!("+{short}"), &format!("{short}00")] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
