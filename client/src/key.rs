//! Keys of locks, from the values that callers have.

use std::{fmt, sync::Arc};

use ringfence_coordinator::name::Printed;

/// The key of a lock: any 1 to 512 bytes, checked by the first call that uses it.
///
/// | from | key |
/// |---|---|
/// | text or bytes, owned or borrowed | these bytes |
/// | an integer | its decimal digits: `42` and `"42"` are one key |
/// | a tuple of 2 to 4 of these | its parts, joined with `/`; in a part, `/` becomes `%2F`, and `%` becomes `%25`. So different tuples are different keys, and `("order", 42)` is the key `"order/42"` |
///
/// # Examples
///
/// ```
/// use ringfence_client::Key;
///
/// assert_eq!(Key::from(("order", 42)), Key::from("order/42"));
/// assert_ne!(Key::from(("a/b", "c")), Key::from(("a", "b/c")));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn push_part(&self, joined: &mut Vec<u8>) {
        for byte in &*self.0 {
            match byte {
                b'/' => joined.extend_from_slice(b"%2F"),
                b'%' => joined.extend_from_slice(b"%25"),
                byte => joined.push(*byte),
            }
        }
    }

    fn join(parts: &[Self]) -> Self {
        let mut joined = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                joined.push(b'/');
            }
            part.push_part(&mut joined);
        }
        Self(joined.into())
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Key {
    fn from(bytes: &T) -> Self {
        Self(bytes.as_ref().into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl<const LENGTH: usize> From<[u8; LENGTH]> for Key {
    fn from(bytes: [u8; LENGTH]) -> Self {
        Self(bytes.into())
    }
}

macro_rules! from_integers {
    ($($integer:ty)+) => {$(
        impl From<$integer> for Key {
            fn from(number: $integer) -> Self {
                number.to_string().into()
            }
        }
    )+};
}

from_integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

macro_rules! from_tuples {
    ($(($($part:ident)+))+) => {$(
        impl<$($part: Into<Key>),+> From<($($part,)+)> for Key {
            fn from(($($part,)+): ($($part,)+)) -> Self {
                Self::join(&[$($part.into()),+])
            }
        }
    )+};
}

#[expect(non_snake_case, reason = "a type's name is its part's name")]
mod tuples {
    use super::Key;

    from_tuples!((A B) (A B C) (A B C D));
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed(&self.0).fmt(formatter)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Key;

    #[test]
    fn a_key_is_its_bytes_or_digits() {
        let key = Key::from("order/42");
        assert_eq!(key.as_bytes(), b"order/42");
        assert_eq!(key, Key::from(String::from("order/42")));
        assert_eq!(key, Key::from(&String::from("order/42")));
        assert_eq!(key, Key::from(b"order/42".to_vec()));
        assert_eq!(key, Key::from(b"order/42"));
        assert_eq!(key, Key::from(*b"order/42"));
        assert_eq!(key, Key::from(&key));
        assert_eq!(Key::from(42), Key::from("42"));
        assert_eq!(Key::from(i64::MIN), Key::from("-9223372036854775808"));
        assert_eq!(Key::from(u128::MAX), Key::from(u128::MAX.to_string()));
        assert_eq!(format!("{:?}", Key::from(b"a\0b")), "Key(a\\x00b)");
        assert_eq!(
            Key::from("gr\u{f6}\u{df}e\u{202e}").to_string(),
            "größe\\u{202e}"
        );
    }

    #[test]
    fn different_tuples_are_different_keys() {
        assert_eq!(Key::from(("order", 42_u64)), Key::from("order/42"));
        let parts = ["", "a", "/", "%", "%2F", "a/", "/a", "a/a", "%25"];
        let mut seen = BTreeSet::new();
        for first in parts {
            for second in parts {
                assert!(seen.insert(Key::from((first, second))), "{first} {second}");
                for third in parts {
                    let key = Key::from((first, second, third));
                    assert!(seen.insert(key), "{first} {second} {third}");
                }
            }
        }
        let nested = Key::from((("a", "b"), "c"));
        assert_eq!(nested, Key::from("a%2Fb/c"));
    }
}
