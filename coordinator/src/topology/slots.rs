//! A list of slots as text: five hex digits each.

use ringfence_ring::Slot;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

/// Enough for each of 5 replicas of 65,536 slots.
const DIGITS: usize = 5;

pub(super) fn serialize<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    let digits = slots
        .iter()
        .map(|slot| format!("{:0DIGITS$x}", slot.index()));
    serializer.serialize_str(&digits.collect::<String>())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Slot>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let slots = (0..text.len()).step_by(DIGITS).map(|at| {
        let digits = text.get(at..at + DIGITS)?;
        let index = u32::from_str_radix(digits, 16).ok()?;
        Slot::new(index).ok()
    });
    let slots: Option<Vec<Slot>> = slots.collect();
    slots.ok_or_else(|| D::Error::custom("slots: not five hex digits each"))
}
