//! Segments and heads on real servers: they answer as the rules do, and say what a server may have lost.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod alike;
mod desk;
mod durable;
mod heads;
mod layouts;
mod limits;
mod names;
#[path = "../redis_fixture/mod.rs"]
mod redis_fixture;
mod remembered;
mod requests;
mod stored;
