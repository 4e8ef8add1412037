//! Transactions: their keys, conditions and operations, and what they found.

use super::{
    api::{
        Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp, ResponseOp,
        TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op, response_op,
    },
    wire::Wire,
};
use crate::{
    ids::{ClientId, Life},
    shard::{
        ConnectionId, ShardError,
        docs::{Document, Name, quorum::text::parse},
    },
};

/// Operations in one transaction, at most: etcd's own default. Of conditions, so many besides.
pub(super) const OPERATIONS_MAX: usize = 128;

impl Wire {
    /// A key of the prefix.
    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.options.prefix.as_str()).into_bytes()
    }

    /// The key of a document.
    pub(super) fn document(&self, name: &[u8]) -> Vec<u8> {
        [&*self.key("documents/"), name].concat()
    }

    /// The key whose values are the messages to `client`.
    pub(super) fn inbox(&self, client: ClientId) -> Vec<u8> {
        self.key(&format!("messages/{client}"))
    }

    /// The key that exists while the session `id` may commit.
    pub(super) fn gate(&self, ConnectionId(id): ConnectionId) -> Vec<u8> {
        self.key(&format!("gates/{id}"))
    }
}

/// The life that is stored.
pub(super) fn life_of(life: &Option<KeyValue>) -> Result<Life, ShardError> {
    let life = life
        .as_ref()
        .and_then(|life| str::from_utf8(&life.value).ok());
    life.map(Life::new).ok_or(ShardError::Unarmed)
}

/// What the ranges of a transaction found, in their order.
pub(super) fn ranges(answer: TxnResponse) -> impl Iterator<Item = Vec<KeyValue>> {
    let range = |response: ResponseOp| match response.response {
        Some(response_op::Response::Range(range)) => Some(range.kvs),
        _ => None,
    };
    answer.responses.into_iter().filter_map(range)
}

/// As [`ranges`], of one key each.
pub(super) fn found(answer: TxnResponse) -> impl Iterator<Item = Option<KeyValue>> {
    ranges(answer).map(|kvs| kvs.into_iter().next())
}

/// The number that a key has, and its revision; 0 and 0 if there is none.
pub(super) fn number(found: Option<KeyValue>) -> Result<(u64, i64), ShardError> {
    let Some(found) = found else {
        return Ok((0, 0));
    };
    let number = str::from_utf8(&found.value).ok();
    let number = number.and_then(|text| text.parse().ok());
    Ok((number.ok_or_else(|| not_ours(&found))?, found.mod_revision))
}

/// A stored document, when it ends, and etcd's revision of it.
pub(super) struct Stored {
    pub(super) document: Document,
    pub(super) ends_ms: Option<u64>,
    pub(super) revision: i64,
}

/// Reads a document.
pub(super) fn stored(found: &KeyValue) -> Result<Stored, ShardError> {
    let (document, ends_ms) = parse(&found.value).ok_or_else(|| not_ours(found))?;
    Ok(Stored {
        document,
        ends_ms,
        revision: found.mod_revision,
    })
}

fn not_ours(found: &KeyValue) -> ShardError {
    ShardError::Refused {
        what: "a read",
        reason: format!(
            "{} is not what Ringfence wrote",
            String::from_utf8_lossy(&found.key)
        ),
    }
}

/// `key` was last written at `revision`; 0: there is none.
pub(super) fn is_of(key: Vec<u8>, revision: i64) -> Compare {
    let revision = TargetUnion::ModRevision(revision);
    compare(CompareResult::Equal, CompareTarget::Mod, key, revision)
}

/// There is no `key`.
pub(super) fn absent(key: Vec<u8>) -> Compare {
    let never = TargetUnion::CreateRevision(0);
    compare(CompareResult::Equal, CompareTarget::Create, key, never)
}

/// There is a `key`.
pub(super) fn exists(key: Vec<u8>) -> Compare {
    let never = TargetUnion::CreateRevision(0);
    compare(CompareResult::Greater, CompareTarget::Create, key, never)
}

/// The value of `key` compared with `value`.
pub(super) fn has(key: Vec<u8>, result: CompareResult, value: Vec<u8>) -> Compare {
    let value = TargetUnion::Value(value);
    compare(result, CompareTarget::Value, key, value)
}

fn compare(
    result: CompareResult,
    target: CompareTarget,
    key: Vec<u8>,
    union: TargetUnion,
) -> Compare {
    Compare {
        result: result.into(),
        target: target.into(),
        key,
        target_union: Some(union),
    }
}

/// Writes a key, which goes with `lease`; 0: it stays.
pub(super) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    let put = PutRequest { key, value, lease };
    RequestOp {
        request: Some(request_op::Request::Put(put)),
    }
}

/// Deletes a key.
pub(super) fn delete(key: Vec<u8>) -> RequestOp {
    RequestOp {
        request: Some(request_op::Request::DeleteRange(DeleteRangeRequest { key })),
    }
}

/// Reads one key, as of `revision`; 0: now.
pub(super) fn range(key: Vec<u8>, revision: i64) -> RequestOp {
    of_range(RangeRequest {
        key,
        revision,
        ..RangeRequest::default()
    })
}

/// Reads at most `limit` keys after `after` that begin with `prefix`, as of `revision`; 0: now.
pub(super) fn range_after(prefix: &[u8], after: &[u8], limit: usize, revision: i64) -> RequestOp {
    let mut range_end = prefix.to_vec();
    *range_end.last_mut().expect("it has a slash") += 1;
    of_range(RangeRequest {
        key: [after, b"\0"].concat(),
        range_end,
        limit: limit as i64,
        revision,
    })
}

fn of_range(range: RangeRequest) -> RequestOp {
    RequestOp {
        request: Some(request_op::Request::Range(range)),
    }
}

/// The key of `name`.
pub(super) fn key_of(wire: &Wire, name: &Name) -> Vec<u8> {
    wire.document(&name.to_bytes())
}
