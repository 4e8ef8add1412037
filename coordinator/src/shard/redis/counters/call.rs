//! A batch as one script call: the requests that are applied together, and the assignment of answers to requests.

use hashbrown::{HashMap, HashSet};
use redis::Value;
use ringfence_segment_lock::{
    Change,
    segment::{Op, Reply, Request},
};

use super::{answers, pack::Pack, requests};
use crate::{
    name::LockKey,
    shard::{CounterOp, CounterReply, CounterRequest, redis::batch::by_map},
};

/// The parts of a batch in the script's order.
#[derive(Debug, Default)]
pub(in crate::shard::redis) struct Call {
    /// One request of each group: the first.
    firsts: Vec<usize>,
    parts: Vec<Part>,
    len: usize,
}

/// Requests to one group that share one answer of the script. They are in the order of the batch, group by group.
#[derive(Debug)]
struct Part {
    /// The group's number, from 1 on.
    group: usize,
    requests: Vec<usize>,
    /// The sums of deposits and deductions that are applied together; `None` for a request that is applied alone.
    sums: Option<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) coming: i64,
    pub(super) going: i64,
}

impl Sums {
    /// This part with `change` added, if that can be applied together with the others and the sums stay in range.
    fn and(self, change: &Change) -> Option<Self> {
        let Self { coming, going } = self;
        match change {
            Change::Deposit { amount } => Some(Self {
                coming: coming.checked_add(amount.get())?,
                going,
            }),
            Change::Deduct { amount } => Some(Self {
                coming,
                going: going.checked_add(amount.get())?,
            }),
            Change::Reserve { .. } | Change::Transfer { .. } | Change::TransferLegs { .. } => None,
        }
    }
}

/// The request, if it changes money at the home of an id.
fn op(request: &CounterRequest) -> Option<&Op> {
    match &request.op {
        CounterOp::Segment(Request::Op(op)) => Some(op),
        _ => None,
    }
}

impl Call {
    pub(super) fn new(batch: &[CounterRequest]) -> Self {
        let mut call = Self {
            len: batch.len(),
            ..Self::default()
        };
        // Each group's number, and its last part.
        let mut groups: HashMap<&LockKey, (usize, usize)> = HashMap::new();
        let mut ids = HashSet::with_capacity(batch.len());
        for (at, request) in batch.iter().enumerate() {
            let (group, last) = groups.entry(&request.key).or_insert_with(|| {
                call.firsts.push(at);
                (call.firsts.len(), usize::MAX)
            });
            // Each request that is applied together with others has its own id.
            let plain = op(request).filter(|op| op.lands.is_empty());
            // One with a reference, and no log, is refused.
            let plain = plain.filter(|op| op.logged || op.reference.is_none());
            let plain = plain.filter(|op| ids.insert((*group, &op.id)));
            let open = call.parts.get_mut(*last);
            if let Some((part, op)) = open.zip(plain)
                && let Some(sums) = part.sums.and_then(|sums| sums.and(&op.change))
            {
                part.sums = Some(sums);
                part.requests.push(at);
                continue;
            }
            *last = call.parts.len();
            call.parts.push(Part {
                group: *group,
                requests: vec![at],
                sums: plain.and_then(|op| Sums::default().and(&op.change)),
            });
        }
        call
    }

    /// The keys of the groups, in the order of their numbers.
    pub(super) fn keys<'a>(
        &self,
        batch: &'a [CounterRequest],
    ) -> impl ExactSizeIterator<Item = &'a LockKey> {
        self.firsts.iter().map(|&at| &batch[at].key)
    }

    /// The number of groups, from the first, whose requests have the call's map version.
    pub(super) fn by_map(&self, batch: &[CounterRequest]) -> usize {
        by_map(self.firsts.iter().map(|&at| batch[at].map))
    }

    /// The requests as the script reads them.
    pub(super) fn pack(&self, batch: &[CounterRequest]) -> Vec<u8> {
        let mut pack = Pack::with_capacity(requests::PACKED * self.len);
        pack.array(self.parts.len());
        for part in &self.parts {
            match (part.sums, &part.requests[..]) {
                (Some(sums), together @ [_, _, ..]) => {
                    let ops: Vec<_> = together.iter().filter_map(|&at| op(&batch[at])).collect();
                    let of = (part.group, batch[together[0]].hash_key);
                    requests::push_ops(&mut pack, of, sums, &ops);
                }
                (_, alone) => requests::push(&mut pack, part.group, &batch[alone[0]]),
            }
        }
        pack.into_bytes()
    }

    /// The number of the script's answers.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The answer to each request of `batch`, and the number of replicas that must have it; or the
    /// invalid answer.
    pub(super) fn answers<'a>(
        &self,
        batch: &[CounterRequest],
        values: &'a [Value],
    ) -> Result<Vec<(CounterReply, u64)>, &'a Value> {
        let mut answers = vec![None; self.len];
        for (part, value) in self.parts.iter().zip(values) {
            let each = each(value, part.requests.len());
            // What those behind have changed, of requests that share the answer to the last of them.
            let mut behind = 0;
            for (nth, &at) in part.requests.iter().enumerate().rev() {
                let value = each.map_or(value, |each| &each[nth]);
                let (replicas, answer) = awaited(value);
                let mut reply = answers::reply(&batch[at].op, answer).ok_or(value)?;
                if let (None, CounterReply::Segment(Ok(Reply::Recorded(_, money)))) =
                    (each, &mut reply)
                {
                    money.value -= behind;
                    behind += op(&batch[at]).map_or(0, |op| op.change.signed());
                }
                answers[at] = Some((reply, replicas));
            }
        }
        let answers: Option<Vec<_>> = answers.into_iter().collect();
        Ok(answers.expect("every request is part of one part"))
    }
}

/// The answers to `count` requests that the script has applied each alone.
fn each(value: &Value, count: usize) -> Option<&[Value]> {
    match value {
        Value::Array(parts) => match &parts[..] {
            [Value::BulkString(word), each @ ..] if word == b"each" && each.len() == count => {
                Some(each)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The number of replicas that must have the change before it is answered, and the answer.
fn awaited(part: &Value) -> (u64, &Value) {
    if let Value::Array(parts) = part
        && let [Value::BulkString(word), Value::Int(replicas), answer] = &parts[..]
        && word == b"replicas"
    {
        return (replicas.unsigned_abs(), answer);
    }
    (0, part)
}
