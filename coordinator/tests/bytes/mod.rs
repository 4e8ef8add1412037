//! Damaged texts and texts of any kind: they are read, or refused with a short reason, and never end the process.

mod addresses;
mod keys;
mod records;

/// The most bytes of a reason.
const REASON_BYTES_MAX: usize = 600;
