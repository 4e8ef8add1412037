//! Batches to script calls, and their answers back.

use std::time::Duration;

use async_trait::async_trait;
use hashbrown::HashSet;
use redis::{Cmd, Pipeline, Value};

use super::{Connection, classify, connection::evalsha, error::is_out_of_memory, scripts};
use crate::{
    ids::{Epoch, Incarnation, Life, Token},
    limits::COUNTER_MAX,
    name::{Label, LockKey, push_decimal},
    shard::{
        Answers, Arm, ArmAnswer, ConnectionId, Grace, Inspection, Link, Op, Record, Reply, Request,
        Settle, ShardError, ShardTime,
    },
};

/// A connection to a shard on Redis.
#[derive(Debug)]
pub(super) struct RedisLink {
    connection: Connection,
    scratch: Vec<u8>,
}

/// Which script an operation travels in. Acquire never shares a call with the others: they must
/// work on a full server, and it must not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Release,
    Renew,
    Acquire,
}

impl Verb {
    /// The order of the calls of one batch, where nothing else is asked for.
    const ALL: [Self; 3] = [Self::Release, Self::Renew, Self::Acquire];

    fn of(op: &Op) -> Self {
        match op {
            Op::Acquire { .. } => Self::Acquire,
            Op::Renew { .. } => Self::Renew,
            Op::Release { .. } => Self::Release,
        }
    }
}

/// Operations that go in one script call, by their place in the batch.
#[derive(Debug)]
struct Call {
    verb: Verb,
    places: Vec<usize>,
}

/// Splits `batch` into script calls. Operations of one verb go together; where that would let one
/// overtake another on the same key, a new round of calls begins.
fn plan(batch: &[Request]) -> Vec<Call> {
    let first = Verb::of(&batch[0].op);
    if batch.iter().all(|request| Verb::of(&request.op) == first) {
        return vec![Call {
            verb: first,
            places: (0..batch.len()).collect(),
        }];
    }
    let mut calls = Vec::new();
    let mut round = Round::default();
    for (place, request) in batch.iter().enumerate() {
        let verb = Verb::of(&request.op);
        if round.would_overtake(verb, &request.key) {
            calls.append(&mut round.finish());
        }
        round.add(verb, place, &request.key);
    }
    calls.append(&mut round.finish());
    calls
}

/// Calls under way, one a verb.
#[derive(Default)]
struct Round<'a> {
    places: [Vec<usize>; 3],
    keys: [HashSet<&'a LockKey>; 3],
}

impl<'a> Round<'a> {
    /// Whether an operation on `key` added now would run before one on it that was added earlier.
    fn would_overtake(&self, verb: Verb, key: &LockKey) -> bool {
        self.keys[verb as usize + 1..]
            .iter()
            .any(|keys| keys.contains(key))
    }

    fn add(&mut self, verb: Verb, place: usize, key: &'a LockKey) {
        self.places[verb as usize].push(place);
        self.keys[verb as usize].insert(key);
    }

    fn finish(&mut self) -> Vec<Call> {
        let Self { places, .. } = std::mem::take(self);
        let calls = Verb::ALL
            .into_iter()
            .zip(places)
            .map(|(verb, places)| Call { verb, places });
        calls.filter(|call| !call.places.is_empty()).collect()
    }
}

impl RedisLink {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            scratch: Vec::with_capacity(256),
        }
    }

    /// The script call for `call`.
    fn command(&mut self, call: &Call, batch: &[Request]) -> Cmd {
        let keys = &self.connection.keys;
        let replid = &self.connection.server.replid;
        let map = batch[0].map.0;
        let count = call.places.len();
        let mut command = match call.verb {
            Verb::Acquire => {
                let mut command = evalsha(&scripts::ACQUIRE, 4 + count);
                command
                    .arg(&keys.quiet)
                    .arg(&keys.ctr)
                    .arg(&keys.state)
                    .arg(&keys.slots);
                command
            }
            Verb::Renew => {
                let mut command = evalsha(&scripts::RENEW, 3 + count);
                command.arg(&keys.quiet).arg(&keys.state).arg(&keys.slots);
                command
            }
            Verb::Release => {
                let mut command = evalsha(&scripts::RELEASE, 1 + count);
                command.arg(&keys.ctr);
                command
            }
        };
        for &place in &call.places {
            self.scratch.clear();
            self.scratch.extend_from_slice(keys.prefix.as_bytes());
            self.scratch.push(b':');
            self.scratch.extend_from_slice(batch[place].key.text());
            command.arg(&self.scratch[..]);
        }
        command.arg(replid);
        match call.verb {
            Verb::Acquire => drop(command.arg(map).arg(COUNTER_MAX)),
            Verb::Renew => drop(command.arg(map)),
            Verb::Release => {}
        }
        for (index, &place) in call.places.iter().enumerate() {
            self.push_op(&mut command, &batch[place].op, index as u64 + 1);
        }
        command
    }

    /// Appends one operation's arguments; `offset` is its place in the call, from 1.
    fn push_op(&mut self, command: &mut Cmd, op: &Op, offset: u64) {
        self.scratch.clear();
        match op {
            Op::Acquire {
                nonce,
                label,
                lease,
            } => {
                nonce.push_text(&mut self.scratch);
                self.scratch.push(b'|');
                self.scratch.extend_from_slice(label.as_str().as_bytes());
                self.scratch.push(b'|');
                push_decimal(&mut self.scratch, offset);
                command.arg(&self.scratch[..]).arg(lease.as_millis() as u64);
            }
            Op::Renew {
                nonce,
                label,
                token,
                lease,
            } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]).arg(label.as_str());
                command
                    .arg(token.epoch().0)
                    .arg(token.counter())
                    .arg(lease.as_millis() as u64);
            }
            Op::Release { nonce } => {
                nonce.push_text(&mut self.scratch);
                command.arg(&self.scratch[..]);
            }
        }
    }

    /// Runs a control script and answers its integers and texts.
    async fn control(
        &mut self,
        what: &'static str,
        command: &Cmd,
    ) -> Result<Vec<Value>, ShardError> {
        let value = self.connection.query(what, command).await?;
        let Value::Array(parts) = value else {
            return Err(unexpected(what, &value));
        };
        match (parts.first(), parts.get(1)) {
            (Some(Value::Int(-1)), _) => Err(ShardError::Unarmed),
            (Some(Value::Int(-2)), Some(fence)) => Err(ShardError::Stale { fence: text(fence) }),
            (Some(Value::Int(-3)), Some(reason)) => Err(ShardError::Refused {
                what,
                reason: text(reason),
            }),
            (Some(Value::Int(_)), _) => Ok(parts),
            _ => Err(unexpected(what, &Value::Array(parts))),
        }
    }
}

#[async_trait]
impl Link for RedisLink {
    fn life(&self) -> &Life {
        &self.connection.server.life
    }

    fn connection(&self) -> ConnectionId {
        self.connection.id
    }

    async fn ended(&mut self) {
        self.connection.ended().await;
    }

    async fn call(&mut self, batch: &[Request]) -> Result<Answers, ShardError> {
        if batch.is_empty() {
            return Reading::new(0).finish();
        }
        let calls = plan(batch);
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for call in &calls {
            pipeline.add_command(self.command(call, batch));
        }
        let values = self.connection.run(&pipeline).await?;
        let mut answers = Reading::new(batch.len());
        for ((call, value), earlier) in calls.iter().zip(values).zip(0..) {
            answers
                .read(call, value)
                .map_err(|error| unless_applied(error, earlier))?;
        }
        answers.finish()
    }

    async fn arm(&mut self, arm: &Arm) -> Result<ArmAnswer, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let (grace, less_uptime) = match arm.grace {
            Grace::Full(length) => (length, 0),
            Grace::LessUptime(length) => (length, 1),
            Grace::None => (Duration::ZERO, 0),
        };
        let mut command = evalsha(&scripts::ARM, 8);
        command
            .arg(&keys.state)
            .arg(&keys.ctr)
            .arg(&keys.slots)
            .arg(&keys.quiet);
        command
            .arg(&keys.fence)
            .arg(&keys.copy)
            .arg(&keys.lives)
            .arg(&keys.pointer);
        command
            .arg(&server.replid)
            .arg(server.life.as_str())
            .arg(&arm.topology);
        command
            .arg(arm.incarnation.to_string())
            .arg(arm.copy.0)
            .arg(&arm.copy.1);
        command
            .arg(arm.epoch.0)
            .arg(arm.token_epoch.0)
            .arg(arm.slots.as_bytes());
        command
            .arg(grace.as_millis() as u64)
            .arg(less_uptime)
            .arg(&keys.life_family);
        let parts = self.control("arm", &command).await?;
        let [armed, grace_left] = integers("arm", &parts)?;
        Ok(ArmAnswer {
            armed_now: armed == 1,
            grace_left: Duration::from_millis(grace_left),
        })
    }

    async fn settle(&mut self, settle: &Settle) -> Result<bool, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mine: Vec<u8> = settle
            .slots
            .iter()
            .flat_map(|slot| (slot.index() as u16).to_be_bytes())
            .collect();
        let mut command = evalsha(&scripts::SETTLE, 4);
        command
            .arg(&keys.quiet)
            .arg(&keys.state)
            .arg(&keys.slots)
            .arg(&keys.fence);
        command
            .arg(&server.replid)
            .arg(settle.incarnation.to_string())
            .arg(settle.map.0)
            .arg(mine);
        let parts = self.control("settle", &command).await?;
        let [quiet] = integers("settle", &parts)?;
        Ok(quiet == 1)
    }

    async fn raise(&mut self, incarnation: Incarnation, epoch: Epoch) -> Result<(), ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let mut command = evalsha(&scripts::RAISE, 4);
        command
            .arg(&keys.quiet)
            .arg(&keys.state)
            .arg(&keys.ctr)
            .arg(&keys.fence);
        command
            .arg(&server.replid)
            .arg(incarnation.to_string())
            .arg(epoch.0);
        self.control("raise", &command).await.map(drop)
    }

    async fn inspect(&mut self, key: &LockKey) -> Result<Option<Inspection>, ShardError> {
        let Connection { keys, server, .. } = &self.connection;
        let record = [keys.prefix.as_bytes(), b":", key.text()].concat();
        let mut command = evalsha(&scripts::INSPECT, 2);
        command.arg(&keys.state).arg(record).arg(&server.replid);
        let parts = self.control("inspect", &command).await?;
        let [Value::Int(1), record, Value::Int(remaining)] = &parts[..] else {
            return Ok(None);
        };
        let remaining = Duration::from_millis(u64::try_from(*remaining).unwrap_or(0));
        Ok(Record::parse(&text(record)).map(
            |Record {
                 nonce,
                 label,
                 token,
                 ..
             }| Inspection {
                nonce,
                label,
                token,
                remaining,
            },
        ))
    }
}

/// The answers of a batch, as its calls are read.
struct Reading {
    now: ShardTime,
    quiet: bool,
    counter: u64,
    replies: Vec<Option<Reply>>,
}

impl Reading {
    fn new(count: usize) -> Self {
        Self {
            now: ShardTime(0),
            quiet: true,
            counter: 0,
            replies: vec![None; count],
        }
    }

    /// Takes the answers of `call` out of `value`.
    fn read(&mut self, call: &Call, value: Value) -> Result<(), ShardError> {
        let value = match value.extract_error() {
            Ok(value) => value,
            Err(error) if call.verb == Verb::Acquire && is_out_of_memory(&error) => {
                call.places
                    .iter()
                    .for_each(|&place| self.replies[place] = Some(Reply::OutOfMemory));
                return Ok(());
            }
            Err(error) => return Err(classify("a batch", &error)),
        };
        let Value::Array(parts) = value else {
            return Err(unexpected("a batch", &value));
        };
        let (grants, header) = match call.verb {
            Verb::Acquire => {
                let [now, quiet, te, before] = self.header(&parts)?;
                self.quiet &= quiet == 1;
                let after = before + call.places.len() as u64;
                self.counter = if after > COUNTER_MAX { before } else { after };
                (Some((Epoch(te), before)), now)
            }
            Verb::Renew => {
                let [now, quiet] = self.header(&parts)?;
                self.quiet &= quiet == 1;
                (None, now)
            }
            Verb::Release => {
                let [now] = self.header(&parts)?;
                (None, now)
            }
        };
        self.now = ShardTime(header);
        let skip = parts.len() - call.places.len();
        for (index, (&place, part)) in call.places.iter().zip(&parts[skip..]).enumerate() {
            let fresh = grants.map(|(te, before)| Token::new(te, before + index as u64 + 1));
            let reply = reply(call.verb, part, fresh);
            self.replies[place] = Some(reply.ok_or_else(|| unexpected("a batch", part))?);
        }
        Ok(())
    }

    /// The numbers before the answers.
    fn header<const N: usize>(&self, parts: &[Value]) -> Result<[u64; N], ShardError> {
        match parts.first() {
            Some(Value::Int(-1)) => Err(ShardError::Unarmed),
            _ => integers("a batch", parts),
        }
    }

    fn finish(self) -> Result<Answers, ShardError> {
        let Self {
            now,
            quiet,
            counter,
            replies,
        } = self;
        let replies: Option<Vec<Reply>> = replies.into_iter().collect();
        let replies = replies.ok_or_else(|| ShardError::Refused {
            what: "a batch",
            reason: "fewer answers than operations".into(),
        })?;
        Ok(Answers {
            now,
            quiet,
            counter,
            replies,
        })
    }
}

/// What `error` means for a whole batch, of which `earlier` calls were applied.
fn unless_applied(error: ShardError, earlier: usize) -> ShardError {
    match error {
        error if earlier == 0 => error,
        error => ShardError::NoReply {
            reason: error.to_string(),
        },
    }
}

/// One operation's answer; the scripts' headers list the codes.
fn reply(verb: Verb, part: &Value, fresh: Option<Token>) -> Option<Reply> {
    if let Value::Int(code) = part {
        return Some(match (verb, code) {
            (Verb::Acquire, 0) => Reply::Granted { token: fresh? },
            (Verb::Acquire, 5) => Reply::NoTokens,
            (Verb::Acquire, 6) => Reply::Foreign,
            (Verb::Renew, 0 | 1) => Reply::Renewed {
                reclaimed: *code == 1,
            },
            (Verb::Renew, 2) => Reply::Lost,
            (Verb::Release, 0 | 1) => Reply::Released { held: *code == 1 },
            _ => return None,
        });
    }
    let Value::Array(parts) = part else {
        return None;
    };
    Some(match (verb, &parts[..]) {
        (Verb::Acquire, [Value::Int(1), Value::Int(te), Value::Int(counter)]) => Reply::Granted {
            token: Token::new(Epoch(*te as u64), *counter as u64),
        },
        (Verb::Acquire, [Value::Int(2), Value::Int(remaining), label]) => Reply::Held {
            remaining: Duration::from_millis(u64::try_from(*remaining).unwrap_or(0)),
            label: Label::new(&text(label)),
        },
        (_, [Value::Int(3), Value::Int(epoch)]) => Reply::Moved {
            epoch: Epoch(*epoch as u64),
        },
        (Verb::Acquire, [Value::Int(4), Value::Int(after)]) => Reply::Grace {
            retry_after: Duration::from_millis(*after as u64),
        },
        _ => return None,
    })
}

/// The first `N` parts, as integers.
fn integers<const N: usize>(what: &'static str, parts: &[Value]) -> Result<[u64; N], ShardError> {
    let mut numbers = [0; N];
    for (number, index) in numbers.iter_mut().zip(0..) {
        match parts.get(index) {
            Some(Value::Int(part)) if *part >= 0 => *number = *part as u64,
            other => return Err(unexpected(what, other.unwrap_or(&Value::Nil))),
        }
    }
    Ok(numbers)
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn unexpected(what: &'static str, value: &Value) -> ShardError {
    ShardError::Refused {
        what,
        reason: format!("unexpected answer {value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_ring::SlotCount;

    use super::*;
    use crate::{
        ids::{ClientId, MapVersion, Nonce},
        name::Namespace,
    };

    fn request(key: &str, acquire: bool) -> Request {
        let nonce = Nonce {
            client: ClientId(1),
            sequence: 1,
        };
        let op = if acquire {
            Op::Acquire {
                nonce,
                label: Label::default(),
                lease: Duration::from_secs(1),
            }
        } else {
            Op::Release { nonce }
        };
        let key =
            LockKey::new(&Namespace::default(), key.as_bytes(), SlotCount::default()).unwrap();
        Request {
            key,
            map: MapVersion::UNKNOWN,
            op,
        }
    }

    fn planned(batch: &[Request]) -> Vec<(Verb, Vec<usize>)> {
        plan(batch)
            .into_iter()
            .map(|call| (call.verb, call.places))
            .collect()
    }

    #[test]
    fn operations_of_one_verb_travel_together() {
        let batch = [
            request("a", true),
            request("b", false),
            request("c", true),
            request("d", false),
        ];
        let expected = vec![(Verb::Release, vec![1, 3]), (Verb::Acquire, vec![0, 2])];
        assert_eq!(planned(&batch), expected);
    }

    #[test]
    fn no_operation_overtakes_another_on_its_key() {
        let batch = [request("a", true), request("a", false), request("a", true)];
        let expected = vec![
            (Verb::Acquire, vec![0]),
            (Verb::Release, vec![1]),
            (Verb::Acquire, vec![2]),
        ];
        assert_eq!(planned(&batch), expected);
    }
}
