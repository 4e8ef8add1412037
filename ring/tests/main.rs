//! Placement and plans.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod golden;
mod properties;
