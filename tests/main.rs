//! The pages and scripts in docs.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod docs;
mod examples;
mod fencing;
