//! The answers of scripts, as replies.

use std::time::Duration;

use redis::Value;

use super::{
    batch::{Call, Verb},
    classify,
    error::is_out_of_memory,
};
use crate::{
    ids::{Epoch, Token},
    limits::RECHECK_MAX,
    name::Label,
    shard::{Answers, LockKind, Op, Reply, Request, ShardError, ShardTime},
};

/// The answers of a batch, collected call by call.
pub(super) struct Reading<'a> {
    batch: &'a [Request],
    now: Option<ShardTime>,
    quiet: bool,
    counter: u64,
    replies: Vec<Option<Reply>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(batch: &'a [Request]) -> Self {
        Self {
            batch,
            now: None,
            quiet: true,
            counter: 0,
            replies: vec![None; batch.len()],
        }
    }

    /// Reads the answers of `call` from `value`.
    pub(super) fn read(&mut self, call: &Call, value: Value) -> Result<(), ShardError> {
        let value = match value.extract_error() {
            Ok(value) => value,
            Err(error) if call.verb.acquires() && is_out_of_memory(&error) => {
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
        let (grants, answers) = match call.verb {
            Verb::Acquire | Verb::Share => {
                let ([now, quiet, te, before, after], answers) = self.header(&parts)?;
                self.look_at_clock(now);
                self.hear(call, quiet == 1);
                self.counter = after;
                (Some((Epoch(te), before)), answers)
            }
            Verb::Renew | Verb::Confirm | Verb::Adopt => {
                let ([now, quiet], answers) = self.header(&parts)?;
                self.look_at_clock(now);
                self.hear(call, quiet == 1);
                (None, answers)
            }
            Verb::Release | Verb::Remove => {
                let ([now], answers) = self.header(&parts)?;
                self.look_at_clock(now);
                (None, answers)
            }
        };
        let all = call.verb.of_all().filter(|_| answers.is_empty());
        let mut answers = answers.iter();
        for (&place, (op, offset)) in call.places.iter().zip(call.ops(self.batch)) {
            let Some(answer) = all.as_ref().or_else(|| answers.next()) else {
                break;
            };
            let fresh = grants.map(|(te, before)| Token::new(te, before + offset));
            let reply = reply(op, answer, fresh);
            self.replies[place] = Some(reply.ok_or_else(|| unexpected("a batch", answer))?);
        }
        Ok(())
    }

    /// Notes that a call was applied at `now`, or 0 if the time did not matter to it.
    fn look_at_clock(&mut self, now: u64) {
        let now = (now > 0).then_some(ShardTime(now));
        self.now = now.or(self.now);
    }

    /// Whether the shard is quiet at the map version of `call`, if it is the batch's first call.
    fn hear(&mut self, call: &Call, quiet: bool) {
        if call.map(self.batch) == self.batch[0].map {
            self.quiet &= quiet;
        }
    }

    /// Splits the integers in front from the answers.
    fn header<'p, const N: usize>(
        &self,
        parts: &'p [Value],
    ) -> Result<([u64; N], &'p [Value]), ShardError> {
        match parts.first() {
            Some(Value::Int(-1)) => Err(ShardError::Unarmed),
            _ => Ok((integers("a batch", parts)?, &parts[N..])),
        }
    }

    pub(super) fn finish(self) -> Result<Answers, ShardError> {
        let Self {
            now,
            quiet,
            counter,
            replies,
            ..
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

impl Verb {
    /// The answer of every operation if the script lists none.
    fn of_all(self) -> Option<Value> {
        match self {
            Self::Acquire | Self::Renew | Self::Confirm => Some(Value::Int(0)),
            Self::Release => Some(Value::Int(1)),
            Self::Adopt | Self::Remove | Self::Share => None,
        }
    }

    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::Share)
    }
}

/// What `error`, of one call, means for a whole batch, given whether any other call was applied.
pub(super) fn unless_applied(error: ShardError, applied: bool) -> ShardError {
    if !applied {
        return error;
    }
    ShardError::NoReply {
        reason: error.to_string(),
    }
}

/// The answer to `op`; the scripts' headers list the codes. `fresh` is the first token that was reserved for it.
fn reply(op: &Op, part: &Value, fresh: Option<Token>) -> Option<Reply> {
    match (op, part) {
        (Op::Acquire { tokens, .. }, Value::Int(0)) => Some(Reply::Granted {
            token: fresh?,
            tokens: *tokens,
            contended: false,
        }),
        (_, Value::Int(code)) => plain(op, *code),
        (_, Value::Array(parts)) => detailed(op, parts),
        _ => None,
    }
}

/// An answer that is only a code.
fn plain(op: &Op, code: i64) -> Option<Reply> {
    Some(match (op, code) {
        (Op::Acquire { .. }, 5) => Reply::NoTokens,
        (Op::Acquire { .. }, 6) => Reply::Foreign,
        (Op::Acquire { .. }, 11) => Reply::Outdated,
        (Op::Renew { .. } | Op::Confirm { .. }, 0 | 1 | 4 | 5) => renewed(code, None),
        (Op::Renew { .. } | Op::Confirm { .. }, 2) => Reply::Lost,
        (Op::Release { .. } | Op::Remove { .. }, 0 | 1) => Reply::Released { held: code == 1 },
        (Op::Adopt { .. }, 0) => Reply::NotAdopted,
        (Op::Adopt { .. }, 1 | 5) => Reply::Adopted {
            contended: code == 5,
        },
        _ => return None,
    })
}

/// The meaning of the code of a renewal that was kept, in a slot that is sealed at an epoch or not sealed.
fn renewed(code: i64, moving: Option<Epoch>) -> Reply {
    Reply::Renewed {
        reclaimed: code & 1 != 0,
        contended: code & 4 != 0,
        moving,
    }
}

/// An answer that has more than a code.
fn detailed(op: &Op, parts: &[Value]) -> Option<Reply> {
    use Value::Int;
    let is_acquire = matches!(op, Op::Acquire { .. });
    let is_confirm = matches!(op, Op::Confirm { .. });
    Some(match parts {
        [Int(1), Int(te), Int(counter), Int(tokens), Int(contended)] if is_acquire => {
            Reply::Granted {
                token: Token::new(Epoch(*te as u64), *counter as u64),
                tokens: *tokens as u32,
                contended: *contended == 1,
            }
        }
        [Int(2), Int(remaining), label, Int(position)] if is_acquire => Reply::Held {
            remaining: Duration::from_millis(u64::try_from(*remaining).unwrap_or(0)),
            label: Label::new(&text(label)),
            position: u32::try_from(*position).ok(),
        },
        [Int(3), Int(epoch)] => Reply::Moved {
            epoch: Epoch(*epoch as u64),
        },
        [Int(4), Int(after)] if is_acquire || is_confirm => Reply::Grace {
            retry_after: Duration::from_millis(*after as u64),
        },
        [Int(8), Int(epoch), Int(left)] if is_acquire || is_confirm => Reply::Moving {
            epoch: Epoch(*epoch as u64),
            left: (*left >= 0).then(|| u32::try_from(*left).unwrap_or(u32::MAX)),
        },
        [Int(10), kind] if is_acquire => Reply::OtherKind {
            held: LockKind::of_letter(*text(kind).as_bytes().first()?)?,
        },
        [Int(8), Int(epoch), Int(code)] if matches!(op, Op::Renew { .. }) => {
            renewed(*code, Some(Epoch(*epoch as u64)))
        }
        [Int(9), Int(epoch)] if is_acquire => Reply::NeedProof {
            epoch: Epoch(*epoch as u64),
        },
        [Int(7), Int(after)] if is_acquire => Reply::TooManyWaiters {
            retry_after: Duration::from_millis(*after as u64).min(RECHECK_MAX),
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
