//! A list of slots as text: four hex digits each; or `w`, and eight each, if one needs more than four.

use ringfence_ring::Slot;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

const WIDE: char = 'w';

pub(super) fn serialize<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    let narrow = slots.iter().map(|slot| u16::try_from(slot.index()));
    let text = match narrow.collect::<Result<Vec<_>, _>>() {
        Ok(narrow) => hex(narrow.into_iter().flat_map(u16::to_be_bytes)),
        Err(_) => {
            let wide = slots.iter().map(|slot| slot.index() as u32);
            format!("{WIDE}{}", hex(wide.flat_map(u32::to_be_bytes)))
        }
    };
    serializer.serialize_str(&text)
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
    let text = String::deserialize(deserializer)?;
    let (hex, width) = match text.strip_prefix(WIDE) {
        Some(hex) => (hex, 8),
        None => (text.as_str(), 4),
    };
    let slots = (0..hex.len()).step_by(width).map(|at| {
        let digits = hex.get(at..at + width)?;
        let index = u32::from_str_radix(digits, 16).ok()?;
        Slot::new(index).ok()
    });
    let slots: Option<Vec<Slot>> = slots.collect();
    slots.ok_or_else(|| D::Error::custom("slots: not four hex digits each, or \"w\" and eight"))
}
