//! The rules of segments, and segmented locks.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod histories;
mod rules;
mod segmented;
