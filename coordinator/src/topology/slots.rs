//! A list of slots as text: four hex digits each.

use ringfence_ring::{Slot, SlotCount};
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

pub(super) fn serialize<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = slots.iter().map(|slot| (slot.index() as u16).to_be_bytes());
    serializer.serialize_str(&hex(bytes.flatten()))
}

/// Two digits per byte.
pub(super) fn hex(bytes: impl Iterator<Item = u8>) -> String {
    let digit = |nibble| char::from_digit(nibble, 16).expect("less than 16");
    let digits = |byte: u8| [digit(u32::from(byte >> 4)), digit(u32::from(byte & 15))];
    bytes.flat_map(digits).collect()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Slot>, D::Error> {
    let hex = String::deserialize(deserializer)?;
    let slots = (0..hex.len()).step_by(4).map(|at| {
        let digits = hex.get(at..at + 4)?;
        let index = u16::from_str_radix(digits, 16).ok()?;
        SlotCount::MAX.slot(index.into()).ok()
    });
    let slots: Option<Vec<Slot>> = slots.collect();
    slots.ok_or_else(|| D::Error::custom("slots: not four hex digits each"))
}
