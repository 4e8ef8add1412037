//! The script's answers as values. `lua/counter/counters.lua` and the files of the rules list them.

use std::collections::BTreeMap;

use redis::Value;
use ringfence_segment_lock::{
    segment::{
        Answer, Channel, History, HistoryPage, Money, Outcome, Refusal, Reply, Request, SegmentView,
    },
    {Change, RequestId},
};

use crate::{
    ids::Epoch,
    shard::{
        CounterOp, CounterReply,
        stored::{
            effects,
            texts::{SPLIT, channel_of, number_of, open_of, pinned_of, state_of},
        },
    },
};

/// The answer to `op`; `None` if it is malformed.
pub(super) fn reply(op: &CounterOp, value: &Value) -> Option<CounterReply> {
    let Value::Array(parts) = value else {
        return None;
    };
    let (word, rest) = parts.split_first()?;
    let word = text(word)?;
    Some(match (word, rest) {
        (b"moved", [epoch]) => CounterReply::Moved {
            epoch: Epoch(number(epoch)?),
        },
        (b"moving", [epoch]) => CounterReply::Moving {
            epoch: Epoch(number(epoch)?),
        },
        (b"coming", [epoch]) => CounterReply::Coming {
            epoch: Epoch(number(epoch)?),
        },
        (b"not_on_disk", []) => CounterReply::NotOnDisk,
        (b"foreign", []) => CounterReply::Foreign,
        (b"never_made", []) => CounterReply::NeverMade,
        (b"manifest", []) => CounterReply::Manifest(None),
        (b"manifest", [version, manifest]) => {
            let manifest = std::str::from_utf8(text(manifest)?).ok()?;
            CounterReply::Manifest(Some((number(version)?, manifest.to_owned())))
        }
        (b"manifest_in_doubt", [version, manifest]) => {
            let manifest = std::str::from_utf8(text(manifest)?).ok()?;
            CounterReply::ManifestInDoubt(number(version)?, manifest.to_owned())
        }
        (b"swapped", [swapped]) => CounterReply::Swapped(number::<u8>(swapped)? == 1),
        _ => match op {
            CounterOp::Segment(request) => CounterReply::Segment(answer(request, word, rest)?),
            CounterOp::ReadManifest | CounterOp::SwapManifest { .. } => return None,
        },
    })
}

fn answer(request: &Request, word: &[u8], rest: &[Value]) -> Option<Answer> {
    match refusal(request, word, rest) {
        Some(refusal) => Some(Err(refusal)),
        None => match request {
            Request::History(ask) => history(ask, word, rest).map(Ok),
            _ => done(word, rest).map(Ok),
        },
    }
}

fn done(word: &[u8], rest: &[Value]) -> Option<Reply> {
    Some(match (word, rest) {
        (b"recorded", [state, value, held]) => {
            let (value, held) = (amount_of(value)?, amount_of(held)?);
            Reply::Recorded(state_of(text(state)?)?, Money { value, held })
        }
        (b"short", view) => Reply::Short(view_of(view)?.into()),
        (b"view", view) => Reply::View(view_of(view)?.into()),
        (b"lent", [seq, amount]) => Reply::Lent(Channel {
            seq: number(seq)?,
            amount: amount_of(amount)?,
        }),
        (b"nothing", []) => Reply::Nothing,
        (b"landed", []) => Reply::Landed,
        (b"stale", []) => Reply::Stale,
        (b"changed", []) => Reply::Changed,
        (b"unknown", []) => Reply::Unknown,
        (b"promised", []) => Reply::Promised,
        (b"credited", [Value::Int(1)]) => Reply::Credited(Outcome::Credited),
        (b"credited", [Value::Int(0)]) => Reply::Credited(Outcome::Refused),
        (b"sent", pairs) => {
            let pairs = pairs.chunks_exact(2);
            let transfers =
                pairs.map(|pair| Some((open_of(text(&pair[0])?)?, state_of(text(&pair[1])?)?)));
            Reply::Sent(transfers.collect::<Option<_>>()?)
        }
        (b"pinned", pairs) => {
            let pairs = pairs.chunks_exact(2);
            let credits = pairs.map(|pair| pinned_of(text(&pair[0])?, text(&pair[1])?));
            Reply::Pinned(credits.collect::<Option<_>>()?)
        }
        (b"expired", [count]) => Reply::Expired(number(count)?),
        (b"purged", [count]) => Reply::Purged(number(count)?),
        (b"prepared", []) => Reply::Prepared,
        (b"later", [after_ms, now_ms]) => Reply::Later {
            after_ms: number(after_ms)?,
            now_ms: number(now_ms)?,
        },
        (b"copied", [manifest, closed]) => Reply::Copied {
            manifest: std::str::from_utf8(text(manifest)?).ok()?.into(),
            closed: number::<u8>(closed)? == 1,
        },
        (b"removed", []) => Reply::Removed,
        (b"done", []) => Reply::Done,
        _ => return None,
    })
}

fn history(ask: &History, word: &[u8], rest: &[Value]) -> Option<Reply> {
    let (b"history", [last, value, held, chunks]) = (word, rest) else {
        return None;
    };
    let found = effects(text(chunks)?)?.into_iter();
    let found = found.filter(|effect| effect.number > ask.after && effect.at_ms >= ask.since_ms);
    Some(Reply::History(HistoryPage {
        effects: found.take(ask.most as usize).collect(),
        last: number(last)?,
        value: amount_of(value)?,
        held: amount_of(held)?,
    }))
}

fn refusal(request: &Request, word: &[u8], rest: &[Value]) -> Option<Refusal> {
    Some(match (word, rest) {
        (b"missing", []) => Refusal::Missing,
        (b"doubtful", []) => Refusal::Doubtful,
        (b"layout", [generation]) => Refusal::Layout {
            generation: number(generation)?,
        },
        (b"conflict", []) => Refusal::Conflict,
        (b"too_old", [mark_ms]) => Refusal::TooOld {
            mark_ms: number(mark_ms)?,
        },
        (b"id_expired", [since_ms]) => Refusal::IdExpired {
            since_ms: number(since_ms)?,
        },
        (b"in_future", [now_ms, skew_ms]) => Refusal::IdInFuture {
            // The scripts' numbers are not exact in all digits.
            ahead_ms: id_in(request)?.time_ms().checked_sub(number(now_ms)?)?,
            skew_ms: number(skew_ms)?,
        },
        (b"busy", [after_ms]) => Refusal::Busy {
            retry_after_ms: number(after_ms)?,
        },
        (b"too_many_ids", [ids_max, after_ms]) => Refusal::TooManyIds {
            ids_max: number(ids_max)?,
            retry_after_ms: number(after_ms)?,
        },
        (b"full", [owned, amount, most, credit]) => {
            let credit = amount_of(credit)?;
            Refusal::Full {
                owned: amount_of(owned)? - credit,
                amount: wide(amount)?,
                max: amount_of(most)? - credit,
            }
        }
        (b"deadline", [max_ms]) => Refusal::DeadlineTooLate {
            deadline_ms: deadline_in(request)?,
            max_ms: number(max_ms)?,
        },
        (b"above_reserved", [amount, reserved]) => Refusal::AboveReserved {
            amount: amount_of(amount)?,
            reserved: amount_of(reserved)?,
        },
        (b"no_log", []) => Refusal::NoLog,
        (b"closed", []) => Refusal::Closed,
        (b"clocks", [now_ms, max_ms]) => Refusal::ClocksDiffer {
            now_ms: number(now_ms)?,
            at_ms: match request {
                Request::Accept(accept) => accept.at_ms,
                Request::Replace(replace) => replace.at_ms,
                Request::Create(create) => create.planned_ms,
                _ => return None,
            },
            max_ms: number(max_ms)?,
        },
        _ => return None,
    })
}

fn id_in(request: &Request) -> Option<&RequestId> {
    match request {
        Request::Op(op) => Some(&op.id),
        Request::Refuse(refuse) => Some(&refuse.id),
        Request::Cancel(cancel) => Some(&cancel.id),
        Request::Credit(credit) => Some(&credit.id.id),
        _ => None,
    }
}

fn deadline_in(request: &Request) -> Option<u64> {
    match request {
        Request::Op(op) => match op.change {
            Change::Reserve { deadline_ms, .. } => Some(deadline_ms),
            _ => None,
        },
        _ => None,
    }
}

fn view_of(parts: &[Value]) -> Option<SegmentView> {
    let [
        value,
        held,
        version,
        doubtful,
        losses,
        now_ms,
        unfinished,
        mark_ms,
        out,
        inn,
    ] = parts
    else {
        return None;
    };
    Some(SegmentView {
        value: amount_of(value)?,
        held: amount_of(held)?,
        version: number(version)?,
        out: channels(out, channel_of)?,
        inn: channels(inn, number_of)?,
        doubtful: number::<u8>(doubtful)? == 1,
        losses: number(losses)?,
        now_ms: number(now_ms)?,
        unfinished: number(unfinished)?,
        mark_ms: number(mark_ms)?,
    })
}

/// A hash from segments to channels.
fn channels<T>(value: &Value, read: impl Fn(&[u8]) -> Option<T>) -> Option<BTreeMap<u32, T>> {
    let Value::Array(parts) = value else {
        return None;
    };
    let pairs = parts.chunks_exact(2);
    let channel = |pair: &[Value]| Some((number_of(text(&pair[0])?)?, read(text(&pair[1])?)?));
    pairs.map(channel).collect()
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(text) => Some(text),
        _ => None,
    }
}

fn number<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    match value {
        Value::Int(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

fn amount_of(value: &Value) -> Option<i64> {
    i64::try_from(wide(value)?).ok()
}

/// An amount, which may be a sum of several.
fn wide(value: &Value) -> Option<i128> {
    match value {
        Value::Int(small) => Some(i128::from(*small)),
        Value::Array(parts) => match &parts[..] {
            [Value::Int(high), Value::Int(low)] => {
                Some(i128::from(*high) * i128::from(SPLIT) + i128::from(*low))
            }
            _ => None,
        },
        _ => None,
    }
}
