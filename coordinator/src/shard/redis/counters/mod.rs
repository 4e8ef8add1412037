//! Segments of accounts and the accounts' manifests: one script call per batch.

mod answers;
mod call;
pub(super) mod carry;
mod pack;
mod requests;
mod synced;

use std::time::Duration;

use redis::{Cmd, Value};

use super::{
    Connection,
    answers::{integers, unexpected, unless_applied},
    classify,
    connection::Keys,
    error::is_out_of_memory,
    scripts,
};
use crate::{
    name::LockKey,
    shard::{CounterAnswers, CounterReply, CounterRequest, ShardError},
};
use call::Call;
pub(super) use synced::Log;

/// Separates the prefix from a group's key. No record of a lock has it there.
const GROUP: &[u8] = b":#";

/// The script call for `batch`, and its contents.
pub(super) fn command(
    connection: &Connection,
    is_synced: bool,
    batch: &[CounterRequest],
) -> (Cmd, Call) {
    let Connection { keys, server, .. } = connection;
    let call = Call::new(batch);
    let groups = call.keys(batch);
    let mut command = server.call(&scripts::COUNTERS, 3 + groups.len());
    command.arg(&keys.quiet).arg(&keys.state).arg(&keys.slots);
    for key in groups {
        command.arg(name(keys, key));
    }
    command
        .arg(&server.replid)
        .arg(batch[0].map.0)
        .arg(call.by_map(batch))
        .arg(&keys.prefix)
        .arg(origin(connection, is_synced))
        .arg(call.pack(batch));
    (command, call)
}

/// The name of a group.
fn name(keys: &Keys, key: &LockKey) -> Vec<u8> {
    [keys.prefix.as_bytes(), GROUP, key.text()].concat()
}

/// The writer of a segment, and whether its server syncs every write.
pub(super) fn origin(connection: &Connection, is_synced: bool) -> String {
    format!("{} {}", u8::from(is_synced), connection.origin)
}

/// The answers of script calls, each with the number of replicas that must have it.
pub(super) fn read<'a>(
    calls: impl Iterator<Item = (&'a Call, &'a [CounterRequest])>,
    values: Vec<Value>,
) -> Result<(CounterAnswers, Vec<u64>), ShardError> {
    let mut answers = CounterAnswers {
        quiet: true,
        replies: Vec::new(),
    };
    let mut required = Vec::new();
    let (mut refused, mut applied) = (None, false);
    for ((call, batch), value) in calls.zip(values) {
        match read_call(call, batch, value, &mut answers, &mut required) {
            Ok(()) => applied = true,
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(error) => Err(unless_applied(error, applied)),
        None => Ok((answers, required)),
    }
}

/// Adds the answers of one call.
fn read_call(
    call: &Call,
    batch: &[CounterRequest],
    value: Value,
    answers: &mut CounterAnswers,
    required: &mut Vec<u64>,
) -> Result<(), ShardError> {
    let parts = match value.extract_error() {
        Ok(Value::Array(parts)) => parts,
        Ok(other) => return Err(unexpected(WHAT, &other)),
        Err(error) if is_out_of_memory(&error) => {
            let full = batch.iter().map(|_| CounterReply::OutOfMemory);
            answers.replies.extend(full);
            required.extend(batch.iter().map(|_| 0));
            return Ok(());
        }
        Err(error) => return Err(classify(WHAT, &error)),
    };
    if let Some(Value::Int(-1)) = parts.first() {
        return Err(ShardError::Unarmed);
    }
    let [_, quiet] = integers(WHAT, &parts)?;
    if answers.replies.is_empty() {
        answers.quiet = quiet == 1;
    }
    if parts.len() < 2 + call.parts() {
        return Err(ShardError::Refused {
            what: WHAT,
            reason: "fewer answers than requests".into(),
        });
    }
    let given = call.answers(batch, &parts[2..]);
    for (reply, replicas) in given.map_err(|value| unexpected(WHAT, value))? {
        answers.replies.push(reply);
        required.push(replicas);
    }
    Ok(())
}

/// The name of a batch in errors.
const WHAT: &str = "a batch of counters";

/// Waits until as many replicas as any of the answers requires have all writes, and withdraws the answers whose
/// replicas are too few.
///
/// The connection's other requests wait meanwhile: a batch leaves when the batch before is answered.
pub(super) async fn await_replicas(
    connection: &mut Connection,
    replies: &mut [CounterReply],
    required: &[u64],
    at_most: Duration,
) -> Result<(), ShardError> {
    let most = required.iter().copied().max().unwrap_or(0);
    let replicas = replicas(connection, most, at_most).await?;
    for (reply, &required) in replies.iter_mut().zip(required) {
        if required > replicas {
            *reply = CounterReply::TooFewReplicas { replicas, required };
        }
    }
    Ok(())
}

/// Waits until `most` replicas have all writes, for at most `at_most`. Returns their number.
pub(super) async fn replicas(
    connection: &mut Connection,
    most: u64,
    at_most: Duration,
) -> Result<u64, ShardError> {
    if most == 0 {
        return Ok(0);
    }
    let mut command = redis::cmd("WAIT");
    command.arg(most).arg(at_most.as_millis() as u64);
    match connection.query("wait", &command).await {
        Ok(Value::Int(replicas)) => Ok(replicas.unsigned_abs()),
        Ok(other) => Err(unexpected("wait", &other)),
        Err(error) => {
            // The changes were made.
            let reason = error.to_string();
            Err(ShardError::NoReply { reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_ring::SlotCount;
    use ringfence_segment_lock::HashKey;

    use super::*;
    use crate::{
        ids::MapVersion,
        name::Namespace,
        shard::{CounterOp, Effect},
    };

    #[test]
    fn a_refused_call_does_not_hide_that_a_later_one_was_applied() {
        let key = LockKey::new(Namespace::unnamed(), b"key", SlotCount::MAX).unwrap();
        let batch = [CounterRequest {
            key,
            map: MapVersion::UNKNOWN,
            hash_key: HashKey::default(),
            op: CounterOp::ReadManifest,
        }];
        let call = Call::new(&batch);
        let swapped = Value::Array(vec![Value::BulkString(b"manifest".to_vec())]);
        let answered = || Value::Array(vec![Value::Int(1), Value::Int(1), swapped.clone()]);
        let unarmed = || Value::Array(vec![Value::Int(-1)]);
        let effect = |values: Vec<Value>| {
            let calls = [(&call, &batch[..]), (&call, &batch[..])];
            read(calls.into_iter(), values)
                .map(drop)
                .map_err(|error| error.effect())
        };
        assert_eq!(effect(vec![answered(), answered()]), Ok(()));
        assert_eq!(effect(vec![unarmed(), unarmed()]), Err(Effect::None));
        assert_eq!(effect(vec![answered(), unarmed()]), Err(Effect::Unknown));
        assert_eq!(effect(vec![unarmed(), answered()]), Err(Effect::Unknown));
    }
}
