//! Names of requests, accounts and callers.

use std::{fmt, num::ParseIntError, ops::RangeInclusive, sync::Arc};

use serde::{Deserialize, Serialize};
use siphasher::sip128::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::limits::{ACCOUNT_NAME_LEN_MAX, REQUEST_NAME_LEN_MAX, RESERVED_ENDS};

/// Seed of the digests of contents: `SEGMENTS` in ASCII. Never changes.
pub const HASH_SEED: u64 = 0x5345_474d_454e_5453;

/// Passes `parts` to `hash` as one text of at most `MAX` bytes: many short writes take longer.
fn hashed<const MAX: usize, T>(parts: &[&[u8]], hash: impl FnOnce(&[u8]) -> T) -> T {
    let mut content = [0; MAX];
    let mut len = 0;
    for part in parts {
        content[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    hash(&content[..len])
}

/// XXH3-64 with [`HASH_SEED`] over `parts`, of which there are `MAX` bytes at most.
pub(crate) fn hash_of<const MAX: usize>(parts: &[&[u8]]) -> u64 {
    hashed::<MAX, _>(parts, hash_of_text)
}

/// The same over one text of any length.
pub(crate) fn hash_of_text(content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, HASH_SEED)
}

/// The key of the hashes of an account's ids: random, and secret. With a known one, a customer who chooses ids could find
/// two that are taken for the same request, or send all to one segment.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HashKey(pub u128);

impl HashKey {
    /// SipHash-1-3 with 128 bits (Aumasson and Bernstein, 2012) over `parts`, each with what ends it.
    fn hash(self, parts: &[&[u8]]) -> u128 {
        const MAX: usize = 16 + 2 * REQUEST_NAME_LEN_MAX + ACCOUNT_NAME_LEN_MAX;
        let hasher = SipHasher13::new_with_key(&self.0.to_le_bytes());
        hashed::<MAX, _>(parts, |content| hasher.hash(content).as_u128())
    }
}

/// Without the key: it is secret.
impl fmt::Debug for HashKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HashKey")
    }
}

impl From<HashKey> for String {
    fn from(HashKey(key): HashKey) -> Self {
        format!("{key:032x}")
    }
}

impl TryFrom<String> for HashKey {
    type Error = ParseIntError;

    fn try_from(digits: String) -> Result<Self, ParseIntError> {
        u128::from_str_radix(&digits, 16).map(Self)
    }
}

/// 128 bits that are stored in place of names of any length: over `request, UTF-8 || 0xff`; then `account || 0xff` of a
/// credit; then the time of the reservation, u64 little-endian, and its name, of a capture. No name has a byte 0xff. Never
/// changes.
pub(crate) fn digest_of(
    key: HashKey,
    request: &str,
    credit: Option<(&Account, Option<&RequestId>)>,
) -> u128 {
    let (request, end) = (request.as_bytes(), &[0xff][..]);
    match credit {
        None => key.hash(&[request, end]),
        Some((Account(account), None)) => key.hash(&[request, end, account.as_bytes(), end]),
        Some((Account(account), Some(reservation))) => {
            let (time, name) = (
                reservation.time_ms.to_le_bytes(),
                reservation.name.as_bytes(),
            );
            key.hash(&[request, end, account.as_bytes(), end, &time, name])
        }
    }
}

/// A name that cannot be used. A repeat of the call cannot succeed; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty, or too long.
    #[error("{field} is {len} bytes long, must be {min} to {max}")]
    Len {
        /// The kind of name.
        field: &'static str,
        /// Its length, in bytes.
        len: usize,
        /// The least length, in bytes.
        min: usize,
        /// The greatest length, in bytes.
        max: usize,
    },
    /// It ends as the names of segments, copies or sub-locks do.
    #[error("{field} is {name:?}, must be without an end as in {}", RESERVED_ENDS.join(", "))]
    Reserved {
        /// The kind of name.
        field: &'static str,
        /// The name.
        name: String,
    },
}

/// Whether a name has a reserved end: what is stored under it belongs to another account, or to a segmented lock.
fn is_reserved(name: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    match name.rsplit_once('#') {
        Some((_, "locks")) => true,
        Some((_, end)) => end
            .split_once('.')
            .is_some_and(|(of, nth)| is_number(nth) && (of == "copy" || is_number(of))),
        None => false,
    }
}

/// Checks the length of a name, or of another text.
pub(crate) fn check_len(
    field: &'static str,
    text: &str,
    lengths: RangeInclusive<usize>,
) -> Result<(), NameError> {
    let len = text.len();
    match lengths.contains(&len) {
        true => Ok(()),
        false => Err(NameError::Len {
            field,
            len,
            min: *lengths.start(),
            max: *lengths.end(),
        }),
    }
}

fn checked(field: &'static str, name: &str, max: usize) -> Result<Arc<str>, NameError> {
    check_len(field, name, 1..=max)?;
    Ok(name.into())
}

/// The id of a request. A change happens once per id: a repeat of a request has the same id.
///
/// The creation time is a part of the id. It decides which layout's home the id has, and when its answer may be
/// forgotten. So a repeat has the time of the first attempt, never a new one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    // First: ids are ordered by time.
    time_ms: u64,
    name: Arc<str>,
}

impl RequestId {
    /// `time_ms`: the creation time of the request, in ms since 1970. `name`: any text that no other request of the
    /// account has at that time, a UUID for example.
    ///
    /// # Errors
    ///
    /// The name is empty, or longer than [`REQUEST_NAME_LEN_MAX`].
    pub fn new(time_ms: u64, name: &str) -> Result<Self, NameError> {
        let name = checked("request name", name, REQUEST_NAME_LEN_MAX)?;
        Ok(Self { time_ms, name })
    }

    /// The creation time of the request, in ms since 1970.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// 64 bits over `time_ms, u64 little-endian || name, UTF-8`. The home segment is this modulo the number of segments in
    /// force at the id's time.
    pub fn hash(&self, key: HashKey) -> u64 {
        let time = self.time_ms.to_le_bytes();
        (key.hash(&[&time, self.name.as_bytes()]) >> 64) as u64
    }

    /// 128 bits that are stored in place of the name.
    pub fn digest(&self, key: HashKey) -> u128 {
        digest_of(key, &self.name, None)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.time_ms, self.name)
    }
}

/// The name of an account: one counter, with any number of segments. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Arc<str>);

impl Account {
    /// Checks and copies `name`.
    ///
    /// # Errors
    ///
    /// The name is empty, longer than [`ACCOUNT_NAME_LEN_MAX`], or has one of the [`RESERVED_ENDS`].
    pub fn new(name: &str) -> Result<Self, NameError> {
        let field = "account name";
        let checked = checked(field, name, ACCOUNT_NAME_LEN_MAX)?;
        match is_reserved(name) {
            true => Err(NameError::Reserved {
                field,
                name: name.to_owned(),
            }),
            false => Ok(Self(checked)),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One call of one process: the owner of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The random number of the process.
    pub process: u128,
    /// The number of the call in that process.
    pub call: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_part_of_the_identity() {
        let [a, b] = [1, 2].map(|time| RequestId::new(time, "order/42").unwrap());
        assert_ne!(a, b);
        let key = HashKey::default();
        assert_ne!(a.hash(key), b.hash(key));
        assert!(a < b && RequestId::new(1, "z").unwrap() < b);
    }

    #[test]
    fn homes_never_change() {
        let id = RequestId::new(1_700_000_000_000, "order/42").unwrap();
        let [one, other] = [HashKey(1), HashKey(1 << 64)];
        assert_eq!(id.hash(one), 10_001_400_804_931_771_793);
        assert_eq!(id.digest(one) >> 64, 5_616_921_547_635_582_995);
        assert_ne!(id.hash(one), id.hash(other));
        assert_ne!(id.digest(one), id.digest(other));
    }

    #[test]
    fn a_name_has_a_length() {
        let longest = "x".repeat(REQUEST_NAME_LEN_MAX);
        assert_eq!(RequestId::new(1, &longest).unwrap().name(), longest);
        let error = RequestId::new(1, &(longest + "x")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "request name is 129 bytes long, must be 1 to 128"
        );
        assert!(RequestId::new(1, "").is_err() && Account::new("").is_err());
    }

    #[test]
    fn no_account_is_called_as_a_segment_or_a_copy_of_another() {
        for name in [
            "x#0.5", "x#12.345", "x#copy.0", "x#locks", "#locks", "a#b#0.1",
        ] {
            let error = Account::new(name).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "account name is {name:?}, must be without an end as in #0.5, #copy.3, #locks"
                )
            );
        }
        for name in [
            "x#5", "x#0.5a", "x#copy", "x#copy.", "locks", "x#a.5", "x#0.5#y",
        ] {
            assert_eq!(Account::new(name).unwrap().as_str(), name);
        }
    }
}
