//! The checkers find each violation in a history, and schedules reach one without each rule.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod audit;
mod baselines;
mod checker;
