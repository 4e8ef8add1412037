//! Every clean configuration holds, and every rule is needed.

#[macro_use]
mod common;
mod first_use;
mod legs;
mod queue;
mod record;
mod redlock;
mod reserve;
mod segments;
mod sets;
mod shares;
mod slot;
mod witnessed;
