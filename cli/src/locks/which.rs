//! The lock that a command names.

use std::{ffi::OsString, os::unix::ffi::OsStrExt};

use ringfence_client::{Namespace, limits::KEY_BYTES_MAX};

use super::LocksError;

/// A lock, as the command line names it.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The key of the lock: 1 to 512 bytes
    key: OsString,
    /// KEY is hexadecimal, two digits per byte, as in "key_hex"
    #[arg(long)]
    hex: bool,
    /// The namespace of the key
    #[arg(long, value_name = "NS", default_value = "default", value_parser = Namespace::new)]
    pub(super) namespace: Namespace,
}

impl Which {
    /// The key.
    pub(super) fn key(&self) -> Result<Vec<u8>, LocksError> {
        let given = self.key.as_bytes();
        let key = if self.hex {
            let digits = "KEY is not in hex: two digits a byte";
            bytes(given).ok_or_else(|| LocksError::Key(digits.into()))?
        } else {
            given.to_vec()
        };
        let length = key.len();
        if (1..=KEY_BYTES_MAX).contains(&length) {
            return Ok(key);
        }
        let problem = format!("KEY has {length} bytes, must have 1 to {KEY_BYTES_MAX}");
        Err(LocksError::Key(problem))
    }
}

/// The bytes of `hex`, which has two digits per byte.
fn bytes(hex: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => u8::try_from(16 * digit(high)? + digit(low)?).ok(),
        _ => None,
    };
    hex.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_two_digits_a_byte() {
        assert_eq!(bytes(b"00fF7c"), Some(vec![0x00, 0xff, 0x7c]));
        for not_hex in ["0", "000", "0g", "+1", "0x", " 1", "\u{661}1"] {
            assert_eq!(bytes(not_hex.as_bytes()), None, "{not_hex}");
        }
    }
}
