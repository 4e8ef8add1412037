//! Slots of a dead shard: requests, and the script's answers.

use std::time::Duration;

use redis::{Cmd, Value};

use super::{
    Connection,
    answers::integers,
    migration::{change, packed, slots},
    scripts,
};
use crate::shard::{ForceOpen, ForcedOpen, ShardError};

/// Asks to open slots.
pub(super) fn force_open(connection: &Connection, force: &ForceOpen) -> Cmd {
    let script = &scripts::FORCE_OPEN;
    let more = [&connection.keys.complete];
    let mut command = change(connection, script, &more, force.incarnation, &force.copy);
    command
        .arg(force.epoch.0)
        .arg(packed(&force.slots))
        .arg(force.grace_for.as_millis() as u64);
    command
}

/// Reads the answer to [`force_open`].
pub(super) fn forced_open(parts: &[Value]) -> Result<ForcedOpen, ShardError> {
    let [_, grace_left_ms] = integers("force_open", parts)?;
    Ok(ForcedOpen {
        grace_left: Duration::from_millis(grace_left_ms),
        refused: slots("force_open", &parts[2..])?,
    })
}
