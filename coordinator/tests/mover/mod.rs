//! Resizes while locks are held and wanted. On shards in memory it is a simulation: its clock is paused,
//! and moves while all wait. On servers it takes its time.
#![expect(
    clippy::disallowed_methods,
    reason = "the tasks are a test's, and end with it"
)]

mod bank;
mod big;
mod crashes;
mod declaring;
mod decommissions;
mod fair;
mod interrupted;
#[cfg(feature = "failpoints")]
mod killed;
mod lockers;
mod mixed;
mod removal;
mod replicas;
mod replicated;
mod resizes;
mod restarts;
mod servers;
mod stage;
mod view;
