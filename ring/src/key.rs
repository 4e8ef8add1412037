use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Seed of every key's hash: `RINGFENC` in ASCII, most significant byte first. Never changes: it
/// decides where keys live.
pub const KEY_SEED: u64 = 0x5249_4e47_4645_4e43;

/// Longest encoding hashed on the stack in one go, in bytes.
const SHORT_MAX: usize = 128;

/// Hash of a key: XXH3-64 with seed [`KEY_SEED`] over
///
/// ```text
/// length of namespace in bytes, u16 little-endian || namespace, UTF-8 || key
/// ```
///
/// No two pairs have one encoding, for namespaces of up to 65,535 bytes. Does not allocate. Other
/// languages check themselves against `tests/golden_slots.txt`. Algorithm: xxHash 0.8.
pub fn key_hash(namespace: &str, key: &[u8]) -> u64 {
    debug_assert!(namespace.len() <= usize::from(u16::MAX));
    let prefix = (namespace.len() as u16).to_le_bytes();
    let name_end = prefix.len() + namespace.len();
    let len = name_end + key.len();
    if len > SHORT_MAX {
        return streamed([&prefix, namespace.as_bytes(), key]);
    }
    let mut buffer = [0; SHORT_MAX];
    buffer[..prefix.len()].copy_from_slice(&prefix);
    buffer[prefix.len()..name_end].copy_from_slice(namespace.as_bytes());
    buffer[name_end..len].copy_from_slice(key);
    xxh3_64_with_seed(&buffer[..len], KEY_SEED)
}

fn streamed(parts: [&[u8]; 3]) -> u64 {
    let mut hasher = Xxh3::with_seed(KEY_SEED);
    parts.into_iter().for_each(|part| hasher.update(part));
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(namespace: &str, key: &[u8]) -> u64 {
        let len = (namespace.len() as u16).to_le_bytes();
        xxh3_64_with_seed(&[&len, namespace.as_bytes(), key].concat(), KEY_SEED)
    }

    #[test]
    fn long_and_short_keys_hash_alike() {
        let key: Vec<u8> = (0..2000).map(|i| (i % 251) as u8).collect();
        for len in (0..400).chain([1000, 2000]) {
            let key = &key[..len];
            assert_eq!(key_hash("orders", key), whole("orders", key), "{len}");
            assert_eq!(
                streamed([&[6, 0], b"orders", key]),
                whole("orders", key),
                "{len}"
            );
        }
    }

    #[test]
    fn a_byte_cannot_pass_from_namespace_to_key() {
        assert_ne!(key_hash("ab", b"c"), key_hash("a", b"bc"));
        assert_ne!(key_hash("", b"a"), key_hash("a", b""));
    }
}
