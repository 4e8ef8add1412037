//! What scripts answer, as replies.

use std::time::Duration;

use redis::Value;

use super::{
    batch::{Call, Verb},
    classify,
    error::is_out_of_memory,
};
use crate::{
    ids::{Epoch, Token},
    limits::COUNTER_MAX,
    name::Label,
    shard::{Answers, Reply, ShardError, ShardTime},
};

/// The answers of a batch, as its calls are read.
pub(super) struct Reading {
    now: ShardTime,
    quiet: bool,
    counter: u64,
    replies: Vec<Option<Reply>>,
}

impl Reading {
    pub(super) fn new(count: usize) -> Self {
        Self {
            now: ShardTime(0),
            quiet: true,
            counter: 0,
            replies: vec![None; count],
        }
    }

    /// Takes the answers of `call` out of `value`.
    pub(super) fn read(&mut self, call: &Call, value: Value) -> Result<(), ShardError> {
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

    pub(super) fn finish(self) -> Result<Answers, ShardError> {
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

/// What `error`, of one call, means for a whole batch, of which some other call was applied or none.
pub(super) fn unless_applied(error: ShardError, applied: bool) -> ShardError {
    if !applied {
        return error;
    }
    ShardError::NoReply {
        reason: error.to_string(),
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
pub(super) fn integers<const N: usize>(
    what: &'static str,
    parts: &[Value],
) -> Result<[u64; N], ShardError> {
    let mut numbers = [0; N];
    for (number, index) in numbers.iter_mut().zip(0..) {
        match parts.get(index) {
            Some(Value::Int(part)) if *part >= 0 => *number = *part as u64,
            other => return Err(unexpected(what, other.unwrap_or(&Value::Nil))),
        }
    }
    Ok(numbers)
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

pub(super) fn unexpected(what: &'static str, value: &Value) -> ShardError {
    ShardError::Refused {
        what,
        reason: format!("unexpected answer {value:?}"),
    }
}
