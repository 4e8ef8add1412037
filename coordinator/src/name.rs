//! Names given by callers: namespaces, keys, labels. Checked here, once.

use std::{
    ascii,
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
    iter,
    ops::Deref,
    sync::{Arc, LazyLock},
};

use ringfence_ring::{Slot, SlotCount, key_hash};

use crate::limits::{KEY_BYTES_MAX, LABEL_BYTES_MAX, NAMESPACE_BYTES_MAX, PREFIX_BYTES_MAX};

/// The reason why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The key has no bytes.
    #[error("key is empty: it has 1 to {KEY_BYTES_MAX} bytes")]
    KeyEmpty,
    /// The key has too many bytes.
    #[error("key has {0} bytes: at most {KEY_BYTES_MAX}")]
    KeyTooLong(usize),
    /// The namespace is invalid.
    #[error("namespace {0:?}: 1 to {NAMESPACE_BYTES_MAX} of a-z, 0-9, '-' and '_', a letter first")]
    Namespace(String),
    /// The prefix is invalid.
    #[error(
        "prefix is {0:?}, must be 1 to {PREFIX_BYTES_MAX} printable ASCII characters without space, '{{' and '}}', and must \
         not end in \":queue\" or \":tickets\""
    )]
    Prefix(String),
}

/// The prefix of every key on a server. Topologies that share servers have different prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(Arc<str>);

impl KeyPrefix {
    /// `prefix`, if it is valid.
    ///
    /// The first braces in a key are the slot's, so a prefix contains none. Queues lie under
    /// `<prefix>:queue` and `<prefix>:tickets`, so no other prefix may end like that.
    ///
    /// # Errors
    ///
    /// [`NameError::Prefix`].
    pub fn new(prefix: &str) -> Result<Self, NameError> {
        let valid = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        let is_queue = prefix.ends_with(":queue") || prefix.ends_with(":tickets");
        let length_fits = (1..=PREFIX_BYTES_MAX).contains(&prefix.len());
        match length_fits && prefix.bytes().all(valid) && !is_queue {
            true => Ok(Self(prefix.into())),
            false => Err(NameError::Prefix(
                prefix.chars().take(PREFIX_BYTES_MAX + 1).collect(),
            )),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for KeyPrefix {
    /// `ringfence`.
    fn default() -> Self {
        Self("ringfence".into())
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A set of keys with common rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// A namespace called `name`: a letter, then letters, digits, `-` and `_`, all lower case.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`].
    pub fn new(name: &str) -> Result<Self, NameError> {
        let valid =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        let lettered = name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_lowercase());
        if lettered && name.len() <= NAMESPACE_BYTES_MAX && name.bytes().all(valid) {
            Ok(Self(name.into()))
        } else {
            Err(NameError::Namespace(
                name.chars().take(NAMESPACE_BYTES_MAX + 1).collect(),
            ))
        }
    }

    /// The namespace of keys without an explicit one: `default`.
    pub fn unnamed() -> &'static Self {
        static UNNAMED: LazyLock<Namespace> = LazyLock::new(|| Namespace("default".into()));
        &UNNAMED
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::unnamed().clone()
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The key of a lock, and its slot. Cheap to clone.
///
/// Its text is `{slot}:namespace:key`; a shard adds its prefix. A namespace has no colon, so no two
/// keys share a text, for any bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockKey {
    slot: Slot,
    key_at: u16,
    text: Arc<[u8]>,
}

impl LockKey {
    /// `key` of `namespace` on a ring of `slots`.
    ///
    /// # Errors
    ///
    /// [`NameError::KeyEmpty`], [`NameError::KeyTooLong`].
    pub fn new(namespace: &Namespace, key: &[u8], slots: SlotCount) -> Result<Self, NameError> {
        match key.len() {
            0 => return Err(NameError::KeyEmpty),
            1..=KEY_BYTES_MAX => {}
            length => return Err(NameError::KeyTooLong(length)),
        }
        let slot = slots.slot_of(key_hash(namespace.as_str(), key));
        let index = Decimal::of(slot.index() as u64);
        let text = concat([b"{", &index, b"}:", namespace.0.as_bytes(), b":", key]);
        Ok(Self {
            slot,
            key_at: (text.len() - key.len()) as u16,
            text,
        })
    }

    /// The key whose [`text`](Self::text) is `text`; `None` if there is no such key.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let named = text.strip_prefix(b"{")?;
        let slot_ends = named.iter().position(|byte| *byte == b'}')?;
        let index = std::str::from_utf8(&named[..slot_ends])
            .ok()?
            .parse()
            .ok()?;
        let after_slot = named[slot_ends..].strip_prefix(b"}:")?;
        let namespace_ends = after_slot.iter().position(|byte| *byte == b':')?;
        let key = &after_slot[namespace_ends + 1..];
        Some(Self {
            slot: Slot::new(index).ok()?,
            key_at: (text.len() - key.len()) as u16,
            text: text.into(),
        })
    }

    /// The same key in another slot: the slot of another rank.
    pub(crate) fn at(&self, slot: Slot) -> Self {
        if slot == self.slot {
            return self.clone();
        }
        let named = self
            .text
            .iter()
            .position(|byte| *byte == b'}')
            .unwrap_or_default();
        let index = Decimal::of(slot.index() as u64);
        let text = concat([b"{", &index, &self.text[named..]]);
        Self {
            slot,
            key_at: (text.len() - self.key().len()) as u16,
            text,
        }
    }

    /// The slot the key falls in.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// `{slot}:namespace:key`.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        let slot_ends = self.text.iter().position(|byte| *byte == b':');
        let begins = slot_ends.map_or(0, |at| at + 1);
        let text = &self.text[begins..usize::from(self.key_at).saturating_sub(1)];
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The key alone.
    pub fn key(&self) -> &[u8] {
        &self.text[usize::from(self.key_at)..]
    }
}

impl Hash for LockKey {
    /// The text determines all other fields.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text.hash(hasher);
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed(self.key()).fmt(formatter)
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.text.escape_ascii())
    }
}

/// Bytes for people: text as it is, but for what is no text, or changes how the text around it reads, which is escaped.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a>(pub &'a [u8]);

impl Printed<'_> {
    /// The text, if nothing in it is to be escaped.
    pub fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.0).ok()?;
        (!text.contains(misleads)).then_some(text)
    }
}

/// Whether a terminal or a page does something else than show it.
fn misleads(char: char) -> bool {
    let is_format = matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    char.is_control() || is_format
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    _ if char.is_ascii_control() => {
                        write!(formatter, "{}", ascii::escape_default(char as u8))?;
                    }
                    _ if misleads(char) => write!(formatter, "{}", char.escape_unicode())?,
                    _ => formatter.write_char(char)?,
                }
            }
            write!(formatter, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

/// The holder's name for people. Never compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Label(Arc<str>);

impl Label {
    /// `text`, cut to [`LABEL_BYTES_MAX`] bytes; control characters and `|` become spaces.
    pub fn new(text: &str) -> Self {
        let mut label = String::with_capacity(text.len().min(LABEL_BYTES_MAX));
        for character in text.chars() {
            let character = if character.is_control() || character == '|' {
                ' '
            } else {
                character
            };
            if label.len() + character.len_utf8() > LABEL_BYTES_MAX {
                break;
            }
            label.push(character);
        }
        Self(label.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Joins `pieces` without an intermediate text.
fn concat<const COUNT: usize>(pieces: [&[u8]; COUNT]) -> Arc<[u8]> {
    let length = pieces.iter().map(|piece| piece.len()).sum();
    let mut text: Arc<[u8]> = iter::repeat_n(0, length).collect();
    let mut rest = Arc::get_mut(&mut text).expect("nobody else has it yet");
    for piece in pieces {
        let (here, after) = rest.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        rest = after;
    }
    text
}

/// Appends `number` in decimal, without a formatter.
pub(crate) fn push_decimal(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(&Decimal::of(number));
}

/// Appends the last `width` digits of `number`, at most 20: such texts compare like their numbers.
pub(crate) fn push_digits(text: &mut Vec<u8>, number: u64, width: usize) {
    text.extend_from_slice(Decimal::of(number).last(width));
}

/// The last digits of `number`, 16 at a time: an even number of them.
pub fn hex<const DIGITS: usize>(number: u128) -> [u8; DIGITS] {
    const { assert!(DIGITS.is_multiple_of(2)) };
    let bytes = number.to_be_bytes();
    let mut digits = [0; DIGITS];
    let pairs = digits.chunks_exact_mut(2);
    for (pair, byte) in pairs.zip(&bytes[bytes.len() - DIGITS / 2..]) {
        pair.copy_from_slice(&BY_16[usize::from(*byte)]);
    }
    digits
}

/// Two-digit numbers: texts are composed of these, twice as fast as of single digits.
const BY_10: [[u8; 2]; 100] = pairs(10);
const BY_16: [[u8; 2]; 256] = pairs(16);

const fn pairs<const COUNT: usize>(base: usize) -> [[u8; 2]; COUNT] {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; COUNT];
    let mut number = 0;
    while number < COUNT {
        pairs[number] = [digits[number / base], digits[number % base]];
        number += 1;
    }
    pairs
}

/// A number's decimal digits.
pub(crate) struct Decimal {
    /// The maximum number of digits.
    digits: [u8; 20],
    /// The start of the significant digits.
    at: usize,
}

impl Decimal {
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while number >= 10 {
            at -= 2;
            digits[at..at + 2].copy_from_slice(&BY_10[(number % 100) as usize]);
            number /= 100;
        }
        // A number with an odd number of digits; or 0, which has one.
        if number > 0 || at == digits.len() {
            at -= 1;
            digits[at] = b'0' + number as u8;
        }
        Self { digits, at }
    }

    /// The last `width` digits, at most 20, with leading zeros.
    pub(crate) fn last(&self, width: usize) -> &[u8] {
        &self.digits[self.digits.len() - width..]
    }
}

impl Deref for Decimal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.digits[self.at..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_what_a_formatter_writes(number: u64, shift in 0_u32..64, high: u64) {
            let number = number >> shift;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            prop_assert_eq!(text(&Decimal::of(number)), number.to_string());
            let padded = format!("{number:020}");
            prop_assert_eq!(text(Decimal::of(number).last(7)), &padded[13..]);
            prop_assert_eq!(text(Decimal::of(number).last(20)), padded);
            let both = u128::from(high) << 64 | u128::from(number);
            prop_assert_eq!(text(&hex::<32>(both)), format!("{both:032x}"));
            prop_assert_eq!(text(&hex::<16>(both)), format!("{number:016x}"));
        }
    }

    #[test]
    fn zero_has_a_digit() {
        assert_eq!(&*Decimal::of(0), b"0");
    }
}
