//! Tables as bytes: what was written is read, and nothing else is.

use proptest::prelude::*;
use ringfence_ring::{RingError, Table};
use xxhash_rust::xxh3::xxh3_64;

use super::{Shards, alike, id, membership, shards, table};

/// Two shards, `a` of weight 1 and `b` of weight 2, 8 slots.
///
/// Offsets: magic 0, version 4, log2 S 5, replicas 6, shards 7, length 9, "a" 10, weight 11, zone length 13,
/// length 14, "b" 15, weight 16, zone length 18, owners 19, digest 20, end 28.
fn small() -> Vec<u8> {
    let bytes = table(&membership(
        8,
        &Shards::from([("a".into(), 1), ("b".into(), 2)]),
    ))
    .encode();
    assert_eq!(bytes.len(), 28);
    bytes
}

/// `small` with some bytes changed and the digest put right: a table that no release writes.
fn forged(changes: &[(usize, u8)]) -> Result<Table, RingError> {
    let mut bytes = small();
    changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
    Table::decode(&sealed(bytes))
}

/// `bytes` with its last 8 replaced by the digest of the others.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 8);
    let digest = xxh3_64(&bytes);
    bytes.extend(digest.to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn encoding_and_decoding_agree(
        first in shards(12),
        second in shards(12),
        log2 in 4..=8_u32,
    ) {
        let slots = 1 << log2;
        let table = table(&membership(slots, &first));
        prop_assert_eq!(&Table::decode(&table.encode()).unwrap(), &table);
        let planned = table.plan(&membership(slots, &second)).unwrap().table().clone();
        prop_assert_eq!(Table::decode(&planned.encode()).unwrap(), planned);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Table::decode(&bytes).is_err());
        // Behind a valid beginning and before a valid digest, the content is what decides.
        for keep in [5, 6, 7, 9] {
            let mut bytes = [&small()[..keep], &bytes, &[0; 8]].concat();
            bytes = sealed(bytes);
            if let Ok(table) = Table::decode(&bytes) {
                prop_assert_eq!(table.encode(), bytes);
            }
        }
    }
}

#[test]
fn every_change_of_one_byte_is_an_error() {
    let bytes = small();
    for at in 0..bytes.len() {
        for flip in 1..=u8::MAX {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            assert!(Table::decode(&bytes).is_err(), "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn every_prefix_is_truncated_and_says_where() {
    let bytes = small();
    for len in 0..bytes.len() {
        let error = Table::decode(&bytes[..len]).unwrap_err();
        let RingError::Truncated {
            len: said, needed, ..
        } = error
        else {
            panic!("{len}: {error}")
        };
        assert!(
            said == len && len < needed && needed <= bytes.len(),
            "{len}: {error}"
        );
    }
}

#[test]
fn each_kind_of_damage_has_its_error() {
    let mut longer = small();
    longer.push(0);
    let trailing = RingError::TrailingBytes {
        len: 29,
        expected: 28,
    };
    assert_eq!(Table::decode(&longer), Err(trailing));

    let mut damaged = small();
    damaged[19] ^= 1;
    let error = Table::decode(&damaged).unwrap_err();
    assert!(matches!(error, RingError::Digest { .. }), "{error}");

    let error = Table::decode(b"PK\x03\x04").unwrap_err();
    assert!(matches!(error, RingError::Magic { .. }), "{error}");
}

#[test]
fn a_future_version_is_named_before_anything_else_is_read() {
    let error = Table::decode(&[b"RFST".as_slice(), &[2, 0xff, 0xff]].concat()).unwrap_err();
    assert_eq!(
        error,
        RingError::Version {
            value: 2,
            newest: 1
        }
    );
    assert!(Table::decode(b"RFST\0").is_err());
}

#[test]
fn content_that_no_release_writes_is_refused() {
    let out_of_range = |field, value, min, max| {
        Err(RingError::OutOfRange {
            field,
            value,
            min,
            max,
        })
    };
    assert_eq!(forged(&[(5, 0)]), out_of_range("log2 of slots", 0, 1, 16));
    assert_eq!(forged(&[(5, 17)]), out_of_range("log2 of slots", 17, 1, 16));
    assert_eq!(forged(&[(6, 4)]), Err(RingError::Replicas { value: 4 }));
    assert_eq!(forged(&[(7, 0)]), out_of_range("shards", 0, 1, 1024));
    assert_eq!(
        forged(&[(7, 0xff), (8, 0xff)]),
        out_of_range("shards", 65_535, 1, 1024)
    );
    assert_eq!(forged(&[(11, 0)]), out_of_range("weight", 0, 1, 10_000));
    assert_eq!(
        forged(&[(12, 0xff)]),
        out_of_range("weight", 65_281, 1, 10_000)
    );
    assert_eq!(
        forged(&[(10, b'A')]),
        Err(RingError::ShardId { value: "A".into() })
    );
    assert_eq!(
        forged(&[(15, b'a')]),
        Err(RingError::DuplicateShard { id: id("a") })
    );
    let order = RingError::ShardOrder {
        id: id("b"),
        previous: id("c"),
    };
    assert_eq!(forged(&[(10, b'c')]), Err(order));
}

#[test]
fn an_owner_beyond_the_shards_is_refused() {
    let shards = ["a", "b", "c"].map(|name| (name.to_owned(), 1));
    let mut bytes = table(&membership(8, &Shards::from(shards))).encode();
    let last_owners = bytes.len() - 9;
    bytes[last_owners] |= 0b1100_0000;
    let error = Table::decode(&sealed(bytes)).unwrap_err();
    assert_eq!(
        error,
        RingError::Owner {
            slot: 7,
            value: 3,
            shards: 3
        }
    );
}

#[test]
fn padding_is_refused() {
    let mut bytes = table(&membership(
        2,
        &Shards::from([("a".into(), 1), ("b".into(), 2)]),
    ))
    .encode();
    let owners = bytes.len() - 9;
    bytes[owners] |= 0b1000_0000;
    let error = Table::decode(&sealed(bytes)).unwrap_err();
    assert!(
        matches!(error, RingError::Padding { value: 0b10_0000 }),
        "{error:?}"
    );
}

#[test]
fn a_table_of_a_hundred_shards_takes_seven_bits_a_slot() {
    let len = table(&alike(16_384, 100)).encode().len();
    assert!((14_336..15_500).contains(&len), "{len}");
}
