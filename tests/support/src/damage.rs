//! Texts and messages that were damaged on their way, for tests of the code that reads them.

use proptest::{collection::vec, prelude::*, sample::Index};

/// One change of some bytes.
#[derive(Clone, Debug)]
pub enum Damage {
    /// A byte is another one.
    Byte(Index, u8),
    /// Some bytes are missing.
    Cut(Index, usize),
    /// There are more bytes.
    Insert(Index, Vec<u8>),
    /// Some bytes are there once more, elsewhere.
    Repeat(Index, usize, Index),
}

/// Up to six changes.
pub fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let length = || 1..24_usize;
    let damage = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<Index>(), length()).prop_map(|(at, length)| Damage::Cut(at, length)),
        (any::<Index>(), vec(any::<u8>(), length()))
            .prop_map(|(at, more)| Damage::Insert(at, more)),
        (any::<Index>(), length(), any::<Index>())
            .prop_map(|(from, length, to)| Damage::Repeat(from, length, to)),
    ];
    vec(damage, 0..=6)
}

/// `bytes` with those changes.
pub fn damaged(bytes: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in damages {
        let some = |at: &Index, length: usize, bytes: &[u8]| {
            let at = at.index(bytes.len() + 1);
            at..(at + length).min(bytes.len())
        };
        match damage {
            Damage::Byte(at, byte) => {
                let at = some(at, 1, &bytes);
                bytes.splice(at, [*byte]);
            }
            Damage::Cut(at, length) => {
                let cut = some(at, *length, &bytes);
                bytes.drain(cut);
            }
            Damage::Insert(at, more) => {
                let at = some(at, 0, &bytes);
                bytes.splice(at, more.iter().copied());
            }
            Damage::Repeat(from, length, to) => {
                let again = bytes[some(from, *length, &bytes)].to_vec();
                let to = some(to, 0, &bytes);
                bytes.splice(to, again);
            }
        }
    }
    bytes
}
