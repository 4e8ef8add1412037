//! A replicated lock: one key with three ranks at four shards, of which one takes the first rank over from
//! another; restarts that lose everything, and a forced removal.
//!
//! Start with [`Rule`], then `state.rs`. `shard.rs` is the shard's side of every request, `client.rs` the
//! sender's.
//!
//! A request is processed, and its answer received, in the step that sends it, at one rank at a time and in any
//! order. A budget of messages comes late: either the request or its answer takes any time, or is lost.
//!
//! A step of a move may happen whenever **some** mover can know that it may. A proof, a list and a scan
//! are one thing here: `Migration::free`. Time is whole ticks, as in [`slot`](crate::slot).

mod actions;
mod clean;
mod client;
mod configurations;
mod controls;
mod forget;
mod lead;
mod messages;
mod model;
mod mover;
mod operator;
mod properties;
mod queue;
mod removal;
mod restart;
mod rules;
mod shard;
mod state;
mod tick;

pub use actions::{Action, How, Verb};
pub use clean::clean;
pub use configurations::Configuration;
pub use controls::{Control, control};
pub use messages::{Answer, Ask, Message};
pub use model::RedlockModel;
pub use properties::Event;
pub use rules::Rule;
pub use state::World;

pub use crate::words::{Nonce, Token};
