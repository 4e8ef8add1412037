//! Crash safety, shown: what real processes did with real locks while their shards died, and whether
//! that was right.
//!
//! [`history`] is what is written down while it happens; [`checker`] reads it afterwards and names
//! every rule that was broken.

pub mod checker;
pub mod history;
