//! What must never change: where keys live, and what a bootstrap gives on any machine.

use ringfence_ring::{Membership, ShardId, SlotCount, Table, Weight, key_hash};

const GOLDEN_SLOTS: &str = include_str!("golden_slots.txt");

#[test]
fn keys_hash_to_the_golden_slots() {
    let lines = GOLDEN_SLOTS.lines().filter(|line| !line.starts_with('#'));
    let mut checked = 0;
    for line in lines {
        let fields: Vec<_> = line.split('\t').collect();
        let [namespace, key, hash, slot] = fields[..] else {
            panic!("four fields: {line}")
        };
        let actual = key_hash(namespace, &bytes(key));
        assert_eq!(format!("{actual:016x}"), hash, "{line}");
        assert_eq!(
            SlotCount::DEFAULT.slot_of(actual).to_string(),
            slot,
            "{line}"
        );
        checked += 1;
    }
    assert_eq!(checked, 26);
}

/// The digest of a table is that of its every byte, so two numbers pin two tables.
/// The owners in them are those of another implementation, in Python.
#[test]
fn bootstraps_give_the_golden_tables() {
    let digest = |slots, shards: &[(&str, u32)]| {
        let members = shards
            .iter()
            .map(|&(id, w)| (ShardId::new(id).unwrap(), Weight::new(w).unwrap()));
        let membership = Membership::new(SlotCount::new(slots).unwrap(), members).unwrap();
        let encoded = Table::bootstrap(&membership).encode();
        let digest = encoded.last_chunk().unwrap();
        format!("{:016x}", u64::from_le_bytes(*digest))
    };
    let equal = [("a", 1), ("b", 1), ("c", 1)];
    let weighted = [
        ("eu_1", 10_000),
        ("eu_2", 300),
        ("us_1", 7),
        ("us_2", 1),
        ("us_3", 1),
    ];
    assert_eq!(digest(16_384, &equal), "c8d92db75c044615");
    assert_eq!(digest(1024, &weighted), "de87586467b856d7");
}

fn bytes(hex: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}
