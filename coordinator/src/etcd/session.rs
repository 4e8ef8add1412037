//! Reads and commits.

use std::{future::pending, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use hashbrown::HashMap;
use tonic::{Request, Response};

use super::{
    api::{
        Compare, DeleteRangeRequest, KeyValue, LeaseGrantRequest, LeaseKeepAliveRequest,
        PutRequest, RangeRequest, RequestOp, ResponseOp, TxnRequest, TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        lease_client::LeaseClient,
        request_op, response_op,
    },
    keeps_no_locks,
    wire::{Answer, Wire},
};
use crate::{
    ids::{ClientId, Life, Token},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{
            Commit, Committed, Document, Draw, Expected, Found, Name, Page, Session, TokenChange,
        },
    },
};

/// Documents in one transaction, at most: etcd takes 128 operations, by default.
const READ_AT_ONCE: usize = 96;

/// The gate of a session that is not used any more is deleted after this.
const GATE_SECONDS: i64 = 3600;

/// Commits after which a session says that it is in use. Reads do not count: a session that commits nothing for
/// [`GATE_SECONDS`] is over, and its next commit fails once.
const KEEP_EVERY: u32 = 128;

/// A sequence of reads and commits. Every commit depends on the session's gate, a key that a later session deletes: so the
/// requests of a session may go to several nodes.
#[derive(Debug)]
pub(super) struct EtcdSession {
    wire: Arc<Wire>,
    life: Life,
    id: ConnectionId,
    lease: i64,
    /// Commits since the start, or since the session last said that it is in use.
    commits: u32,
    /// Documents as they were last read or written: the version in their text, and etcd's revision.
    seen: HashMap<Name, (u64, i64)>,
}

impl EtcdSession {
    /// Makes a gate, deletes that of `former`, and begins the life if there is none.
    pub(super) async fn open(
        wire: Arc<Wire>,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, ShardError> {
        let grant = LeaseGrantRequest { ttl: GATE_SECONDS };
        let granted = wire.ask(grant, |channel, request| async move {
            LeaseClient::new(channel).lease_grant(request).await
        });
        let lease = granted.await?.value.id;
        let id = ConnectionId(wire.random.below(1 << 63));
        let first = Life::new(format!("{:032x}", wire.random.id()));
        let mut gates = vec![put(gate(&wire, id), Vec::new(), lease)];
        if let Some((_, former)) = former {
            gates.push(delete(gate(&wire, former)));
        }
        let life_key = wire.key("life");
        let begin = [put(life_key.clone(), first.as_str().into(), 0)];
        let opened = wire.txn(TxnRequest {
            compare: vec![absent(life_key.clone())],
            success: begin.into_iter().chain(gates.clone()).collect(),
            failure: [range(life_key, 0)].into_iter().chain(gates).collect(),
        });
        let opened = opened.await?.value;
        let life = match opened.succeeded {
            true => first,
            false => life_of(&found(opened).0)?,
        };
        Ok(Self {
            wire,
            life,
            id,
            lease,
            commits: 0,
            seen: HashMap::new(),
        })
    }

    /// Says that the gate is in use.
    async fn keep_gate(&self) -> Result<(), ShardError> {
        let id = self.lease;
        let keep = |channel, request: Request<()>| async move {
            let once = stream::once(async move { LeaseKeepAliveRequest { id } });
            // It stays open: the node answers before it ends.
            let request = request.map(|()| once.chain(stream::pending()));
            let mut kept = LeaseClient::new(channel).lease_keep_alive(request).await?;
            kept.get_mut().message().await?;
            Ok(Response::new(()))
        };
        self.wire.ask((), keep).await?;
        Ok(())
    }

    /// The condition under which `name` is as expected; `Err` if this session knows that it is not.
    fn condition(&self, name: &Name, expected: Expected) -> Result<Option<Compare>, ()> {
        match expected {
            Expected::Any => Ok(None),
            Expected::Absent => Ok(Some(absent(self.document(name)))),
            Expected::Version(version) => match self.seen.get(name) {
                Some((seen, revision)) if *seen == version => Ok(Some(compare(
                    CompareResult::Equal,
                    CompareTarget::Mod,
                    self.document(name),
                    TargetUnion::ModRevision(*revision),
                ))),
                _ => Err(()),
            },
        }
    }

    fn document(&self, name: &Name) -> Vec<u8> {
        [self.wire.key("documents/"), name.to_bytes()].concat()
    }

    fn see(&mut self, name: &Name, document: Option<&(Document, i64)>) {
        match document {
            Some((document, revision)) => {
                self.seen
                    .insert(name.clone(), (document.version, *revision));
            }
            None => drop(self.seen.remove(name)),
        }
    }

    fn alive(&self, life: &Option<KeyValue>) -> Result<(), ShardError> {
        match life_of(life) {
            Ok(life) if life == self.life => Ok(()),
            _ => Err(ShardError::Unarmed),
        }
    }
}

#[async_trait]
impl Session for EtcdSession {
    fn life(&self) -> &Life {
        &self.life
    }

    fn id(&self) -> ConnectionId {
        self.id
    }

    /// A node answers after a majority has the commit on disk.
    fn is_durable(&self) -> bool {
        true
    }

    /// Only a request shows it.
    async fn ended(&mut self) {
        pending().await
    }

    /// The time is 0: no document here has an end.
    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        if draw.is_some() {
            return Err(keeps_no_locks());
        }
        let mut documents = Vec::new();
        let mut revision = 0;
        // Without names too: the life is to be read.
        for names in names
            .chunks(READ_AT_ONCE)
            .chain(names.is_empty().then_some(names))
        {
            let ranges = names
                .iter()
                .map(|name| range(self.document(name), revision));
            let life = range(self.wire.key("life"), revision);
            let read = self.wire.txn(TxnRequest {
                success: [life].into_iter().chain(ranges).collect(),
                ..TxnRequest::default()
            });
            let read = read.await?.value;
            // Later parts are read as of the first one.
            if revision == 0 {
                revision = read.header.unwrap_or_default().revision;
            }
            let (life, found) = found(read);
            self.alive(&life)?;
            for (name, found) in names.iter().zip(found) {
                let document = found.map(|found| document(&found)).transpose()?;
                self.see(name, document.as_ref());
                documents.push(document.map(|(document, _)| document));
            }
        }
        Ok(Found {
            now_ms: 0,
            last: Token::default(),
            drawn: 0,
            head_is_stale: false,
            documents,
        })
    }

    async fn page(&mut self, _after: Option<&LockKey>, _limit: usize) -> Result<Page, ShardError> {
        Err(keeps_no_locks())
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        let has_end = commit.writes.iter().any(|write| write.ends_ms.is_some());
        if has_end || commit.tokens != TokenChange::None {
            return Err(keeps_no_locks());
        }
        self.commits += 1;
        if self.commits >= KEEP_EVERY {
            self.keep_gate().await?;
            self.commits = 0;
        }
        let writes = commit
            .writes
            .iter()
            .map(|write| (&write.name, write.expected));
        let checks = commit
            .checks
            .iter()
            .map(|(name, expected)| (name, *expected));
        let (mut conditions, mut names, mut stale) = (Vec::new(), Vec::new(), Vec::new());
        for (name, expected) in checks.chain(writes) {
            names.push(name);
            match self.condition(name, expected) {
                Ok(condition) => conditions.extend(condition),
                Err(()) => stale.push(name.clone()),
            }
        }
        if !stale.is_empty() {
            return Ok(Committed::Refused { stale });
        }
        let Answer { value, is_repeated } = self
            .wire
            .txn(self.transaction(commit, conditions, &names))
            .await?;
        if value.succeeded {
            let revision = value.header.unwrap_or_default().revision;
            for write in &commit.writes {
                self.seen
                    .insert(write.name.clone(), (commit.version, revision));
            }
            return Ok(Committed::Done);
        }
        self.refused(commit, &names, value, is_repeated)
    }
}

impl EtcdSession {
    /// The commit as etcd takes it; if it is refused, the life, the gate and `names` are read.
    fn transaction(
        &self,
        commit: &Commit,
        conditions: Vec<Compare>,
        names: &[&Name],
    ) -> TxnRequest {
        let (life, gate) = (self.wire.key("life"), gate(&self.wire, self.id));
        let mut compare = conditions;
        compare.push(self::compare(
            CompareResult::Equal,
            CompareTarget::Value,
            life.clone(),
            TargetUnion::Value(self.life.as_str().into()),
        ));
        compare.push(self::compare(
            CompareResult::Greater,
            CompareTarget::Create,
            gate.clone(),
            TargetUnion::CreateRevision(0),
        ));
        let documents = commit.writes.iter().map(|write| {
            let text = format!("{} {}", commit.version, write.content);
            put(self.document(&write.name), text.into(), 0)
        });
        let mut messages: HashMap<ClientId, Vec<&str>> = HashMap::new();
        for (client, text) in &commit.messages {
            messages.entry(*client).or_default().push(text);
        }
        let messages = messages.into_iter().map(|(client, texts)| {
            let texts = serde_json::to_vec(&texts).expect("texts");
            put(inbox(&self.wire, client), texts, 0)
        });
        let keys = [life, gate]
            .into_iter()
            .chain(names.iter().map(|name| self.document(name)));
        TxnRequest {
            compare,
            success: documents.chain(messages).collect(),
            failure: keys.map(|key| range(key, 0)).collect(),
        }
    }

    /// Why the commit was not done, by what was found instead.
    fn refused(
        &mut self,
        commit: &Commit,
        names: &[&Name],
        answer: TxnResponse,
        is_repeated: bool,
    ) -> Result<Committed, ShardError> {
        let (life, mut found) = found(answer);
        self.alive(&life)?;
        if found.next().flatten().is_none() {
            return Err(ShardError::NoReply {
                reason: "another connection has ended this one".into(),
            });
        }
        let before = |name: &&Name| self.seen.get(*name).copied();
        let before: Vec<_> = names.iter().map(before).collect();
        let mut stale = Vec::new();
        let mut is_done = false;
        for ((name, found), before) in names.iter().zip(found).zip(before) {
            let document = found.map(|found| document(&found)).transpose()?;
            self.see(name, document.as_ref());
            let version = document.as_ref().map(|(document, _)| document.version);
            is_done |= version == Some(commit.version);
            if document.map(|(document, revision)| (document.version, revision)) != before {
                stale.push((*name).clone());
            }
        }
        match is_repeated && !commit.writes.is_empty() {
            // The first request was applied; its answer was lost.
            true if is_done => Ok(Committed::Done),
            true => Err(ShardError::NoReply {
                reason: "the node that was asked first gave no answer".into(),
            }),
            false => Ok(Committed::Refused { stale }),
        }
    }
}

impl Wire {
    /// A key of the prefix.
    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.options.prefix.as_str()).into_bytes()
    }
}

/// The key whose values are the messages to `client`.
pub(super) fn inbox(wire: &Wire, client: ClientId) -> Vec<u8> {
    wire.key(&format!("messages/{client}"))
}

fn gate(wire: &Wire, ConnectionId(id): ConnectionId) -> Vec<u8> {
    wire.key(&format!("gates/{id}"))
}

/// The life that is stored.
pub(super) fn life_of(life: &Option<KeyValue>) -> Result<Life, ShardError> {
    let life = life
        .as_ref()
        .and_then(|life| str::from_utf8(&life.value).ok());
    life.map(Life::new).ok_or(ShardError::Unarmed)
}

/// What the ranges of a transaction found, the first one apart.
pub(super) fn found(
    answer: TxnResponse,
) -> (Option<KeyValue>, impl Iterator<Item = Option<KeyValue>>) {
    let range = |response: ResponseOp| match response.response {
        Some(response_op::Response::Range(range)) => Some(range.kvs.into_iter().next()),
        _ => None,
    };
    let mut found = answer.responses.into_iter().filter_map(range);
    (found.next().flatten(), found)
}

/// A stored document, and etcd's revision of it.
fn document(found: &KeyValue) -> Result<(Document, i64), ShardError> {
    let text = str::from_utf8(&found.value).ok();
    let parts = text.and_then(|text| text.split_once(' '));
    let parsed = parts.and_then(|(version, content)| {
        let version = version.parse().ok()?;
        let content = content.to_owned();
        Some(Document { version, content })
    });
    let document = parsed.ok_or_else(|| ShardError::Refused {
        what: "a read",
        reason: format!(
            "{} is not what Ringfence wrote",
            String::from_utf8_lossy(&found.key)
        ),
    })?;
    Ok((document, found.mod_revision))
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

fn absent(key: Vec<u8>) -> Compare {
    let never = TargetUnion::CreateRevision(0);
    compare(CompareResult::Equal, CompareTarget::Create, key, never)
}

fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    let put = PutRequest { key, value, lease };
    RequestOp {
        request: Some(request_op::Request::Put(put)),
    }
}

fn delete(key: Vec<u8>) -> RequestOp {
    RequestOp {
        request: Some(request_op::Request::DeleteRange(DeleteRangeRequest { key })),
    }
}

/// Reads one key, as of `revision`; 0: now.
pub(super) fn range(key: Vec<u8>, revision: i64) -> RequestOp {
    RequestOp {
        request: Some(request_op::Request::Range(RangeRequest { key, revision })),
    }
}
