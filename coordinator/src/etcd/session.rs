//! A session: reads, pages, and its gate. See commit.rs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use hashbrown::HashMap;
use tokio::time::Instant;
use tonic::{Request, Response};

use super::{
    Shared,
    api::{
        KeyValue, LeaseGrantRequest, LeaseKeepAliveRequest, RequestOp, TxnRequest,
        lease_client::LeaseClient,
    },
    txn::{
        absent, delete, found, is_of, key_of, life_of, number, put, range, range_after, ranges,
        stored,
    },
};
use crate::{
    clock::{self, Moment, sleep_until},
    ids::{Life, Token},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{
            Commit, Committed, Document, Draw, Draws, Found, Glance, Name, Page, Session,
            quorum::{
                SEEN_MAX,
                text::{is_stale, number_text, wanted},
                time::Asked,
            },
        },
    },
};

/// Documents read in one transaction, at most: others are read with them.
const READ_AT_ONCE: usize = 96;

/// Keys read in one transaction for a page, at most.
const PAGE_AT_ONCE: usize = 512;

/// Documents in a commit, at most: so many conditions fit beside those on life, gate, clock and tokens.
const COMMIT_MAX: usize = 120;

/// The pause between two attempts is a random part of this, times their number, up to the second one.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSES_MAX: u32 = 8;

/// The gate of a session that is not used any more is deleted after this.
const GATE_SECONDS: i64 = 3600;

/// How often a session says that it is in use.
const KEEP_EVERY: Duration = Duration::from_secs(GATE_SECONDS as u64 / 4);

/// A sequence of reads and commits. Every commit depends on the session's gate, a key that a later session deletes: so the
/// requests of a session may go to several nodes.
#[derive(Debug)]
pub(super) struct EtcdSession {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Life,
    pub(super) id: ConnectionId,
    pub(super) lease: i64,
    /// When it last said that it is in use.
    kept: clock::Instant,
    /// Documents as they were last read or written: the version in their text, and etcd's revision.
    pub(super) seen: HashMap<Name, (u64, i64)>,
    /// Documents that this session made since its last sweep.
    pub(super) made: usize,
    /// Where that sweep stopped.
    pub(super) swept: Vec<u8>,
}

impl EtcdSession {
    /// Makes a gate, deletes that of `former`, and begins the life if there is none.
    pub(super) async fn open(
        shared: Arc<Shared>,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, ShardError> {
        let wire = &shared.wire;
        let kept = shared.witness.now();
        let grant = LeaseGrantRequest { ttl: GATE_SECONDS };
        let granted = wire.ask(grant, |channel, request| async move {
            LeaseClient::new(channel).lease_grant(request).await
        });
        let lease = granted.await?.value.id;
        let id = ConnectionId(wire.random.below(1 << 63));
        let first = Life::new(format!("{:032x}", wire.random.id()));
        let mut gates = vec![put(wire.gate(id), Vec::new(), lease)];
        if let Some((_, former)) = former {
            gates.push(delete(wire.gate(former)));
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
            false => life_of(&found(opened).next().flatten())?,
        };
        Ok(Self {
            shared,
            life,
            id,
            lease,
            kept,
            seen: HashMap::new(),
            made: 0,
            swept: Vec::new(),
        })
    }

    /// Says that the gate is in use, if it is time for that.
    pub(super) async fn keep_gate(&mut self) -> Result<(), ShardError> {
        let now = self.shared.witness.now();
        if now.since(self.kept) < KEEP_EVERY {
            return Ok(());
        }
        let id = self.lease;
        let keep = |channel, request: Request<()>| async move {
            let once = stream::once(async move { LeaseKeepAliveRequest { id } });
            // It stays open: the node answers before it ends.
            let request = request.map(|()| once.chain(stream::pending()));
            let mut kept = LeaseClient::new(channel).lease_keep_alive(request).await?;
            kept.get_mut().message().await?;
            Ok(Response::new(()))
        };
        self.shared.wire.ask((), keep).await?;
        self.kept = now;
        Ok(())
    }

    pub(super) fn alive(&self, life: &Option<KeyValue>) -> Result<(), ShardError> {
        match life_of(life) {
            Ok(life) if life == self.life => Ok(()),
            _ => Err(ShardError::Unarmed),
        }
    }

    /// Keeps the revision of a document that was found.
    pub(super) fn see(
        &mut self,
        name: &Name,
        found: Option<KeyValue>,
    ) -> Result<Option<Document>, ShardError> {
        let Some(stored) = found.as_ref().map(stored).transpose()? else {
            self.seen.remove(name);
            return Ok(None);
        };
        let known = (stored.document.version, stored.revision);
        self.seen.insert(name.clone(), known);
        Ok(Some(stored.document))
    }

    /// Reads documents in one transaction, which may put the clock forward, and draws tokens. Returns its revision, too.
    async fn look(
        &mut self,
        names: &[Name],
        draw: Option<Draw>,
    ) -> Result<(Found, i64), ShardError> {
        let shared = self.shared.clone();
        // Draws of one process do not compete.
        let _turn = match draw {
            Some(_) => Some(shared.witness.turn.lock().await),
            None => None,
        };
        let until = Instant::now() + shared.wire.options.patience;
        let mut attempt = 0;
        while Instant::now() < until {
            attempt += 1;
            let (found, revision, is_short) = self.try_look(names, draw).await?;
            if !is_short {
                return Ok((found, revision));
            }
            shared.wire.pause(PAUSE * PAUSES_MAX.min(attempt)).await;
        }
        Err(ShardError::Unreachable {
            reason: format!("other requests drew tokens first, {attempt} times"),
        })
    }

    /// An attempt at that. Returns whether another one is needed.
    async fn try_look(
        &mut self,
        names: &[Name],
        draw: Option<Draw>,
    ) -> Result<(Found, i64, bool), ShardError> {
        let (sent, wire) = (self.shared.witness.now(), &self.shared.wire);
        let tick = self.shared.witness.tick(sent);
        let tokens = self.shared.witness.tokens();
        let takes = draw.zip(tokens).and_then(|(draw, (last, _))| {
            let takes = wanted(draw, last);
            (takes > 0).then_some(takes)
        });
        let head = draw.map(|draw| self.condition(&Name::Head, draw.head));
        let knows_head = !matches!(head, Some(Err(())));
        // Tokens that an attempt drew in vain would be lost.
        let knows_all = knows_head && self.shared.witness.has_clock();
        let draws = takes.filter(|_| knows_all).zip(tokens);
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        if let Some((revision, ms)) = tick {
            compare.push(is_of(wire.key("clock"), revision));
            success.push(put(wire.key("clock"), number_text(ms), 0));
        }
        if let Some((takes, (last, revision))) = draws {
            compare.push(is_of(wire.key("tokens"), revision));
            compare.extend(head.and_then(Result::ok).flatten());
            let last = number_text(last.get() + takes);
            success.push(put(wire.key("tokens"), last, 0));
        }
        let keys = ["life", "clock", "tokens"].map(|key| wire.key(key));
        let keys = keys.into_iter().chain([key_of(wire, &Name::Head)]);
        let keys = keys.chain(names.iter().map(|name| key_of(wire, name)));
        let failure: Vec<_> = keys.map(|key| range(key, 0)).collect();
        success.extend(failure.clone());
        let puts = !compare.is_empty();
        let read = wire.txn(TxnRequest {
            compare,
            success,
            failure: if puts { failure } else { Vec::new() },
        });
        let read = read.await?.value;
        let answered = self.shared.witness.now();
        let revision = read.header.unwrap_or_default().revision;
        let done = read.succeeded && puts;
        let mut found = found(read);
        let [life, clock, last, head] = std::array::from_fn(|_| found.next().flatten());
        self.alive(&life)?;
        let put = done && tick.is_some();
        let asked = Asked {
            sent,
            answered,
            put,
        };
        let clock = number(clock)?;
        let (now_ms, slack_ms) = self.shared.witness.see_clock(asked, clock);
        let last = self.shared.witness.see_tokens(number(last)?);
        let head = self.see(&Name::Head, head)?;
        let head_is_stale = draw.is_some_and(|draw| is_stale(draw.head, head.as_ref()));
        let drawn = draws.filter(|_| done).map(|(takes, _)| takes);
        let fits = draw.is_some_and(|draw| wanted(draw, last) > 0);
        let documents = names.iter().zip(found);
        let documents = documents.map(|(name, found)| self.see(name, found));
        let documents = documents.collect::<Result<_, _>>()?;
        let found = Found {
            now_ms,
            slack_ms,
            last: Token::from_number(last.get() - drawn.unwrap_or(0)),
            drawn: drawn.unwrap_or(0),
            head_is_stale,
            documents,
        };
        let has_no_clock = self.shared.witness.keeps_locks && clock.1 == 0;
        let is_short = draw.is_some() && drawn.is_none() && !head_is_stale && fits;
        Ok((found, revision, is_short || has_no_clock))
    }

    /// Reads documents, for their revisions.
    pub(super) async fn look_at(&mut self, names: &[Name]) -> Result<(), ShardError> {
        for names in names.chunks(READ_AT_ONCE) {
            self.look(names, None).await?;
        }
        Ok(())
    }

    /// Reads a `page` of documents, as of `revision`; 0: now. Returns what the clock shows, the revision of all, and what
    /// was found.
    pub(super) async fn look_through(
        &self,
        page: RequestOp,
        revision: i64,
    ) -> Result<(u64, i64, Vec<KeyValue>), ShardError> {
        let wire = &self.shared.wire;
        let keys = ["life", "clock"].map(|key| range(wire.key(key), revision));
        let read = wire.txn(TxnRequest {
            success: keys.into_iter().chain([page]).collect(),
            ..TxnRequest::default()
        });
        let read = read.await?.value;
        let revision = read.header.unwrap_or_default().revision;
        let mut ranges = ranges(read);
        let [life, clock, page] = std::array::from_fn(|_| ranges.next().unwrap_or_default());
        self.alive(&life.into_iter().next())?;
        let (now_ms, _) = number(clock.into_iter().next())?;
        Ok((now_ms, revision, page))
    }

    /// Reads documents as they were at `revision`.
    async fn look_back(
        &mut self,
        names: &[Name],
        revision: i64,
    ) -> Result<Vec<Option<Document>>, ShardError> {
        let wire = &self.shared.wire;
        let keys = [wire.key("life")].into_iter();
        let keys = keys.chain(names.iter().map(|name| key_of(wire, name)));
        let read = wire.txn(TxnRequest {
            success: keys.map(|key| range(key, revision)).collect(),
            ..TxnRequest::default()
        });
        let mut found = found(read.await?.value);
        self.alive(&found.next().flatten())?;
        let documents = names.iter().zip(found);
        documents
            .map(|(name, found)| self.see(name, found))
            .collect()
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

    fn commit_max(&self) -> usize {
        COMMIT_MAX
    }

    fn draws(&self) -> Draws {
        Draws::Commits
    }

    /// Keeps the gate. Otherwise only a request shows the end.
    async fn ended(&mut self) {
        loop {
            let clock = &*self.shared.wire.options.clock;
            sleep_until(clock, self.kept + KEEP_EVERY).await;
            if self.keep_gate().await.is_err() {
                return;
            }
        }
    }

    fn moment(&self) -> Option<Moment> {
        self.shared.witness.moment()
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        self.keep_gate().await?;
        if self.seen.len() > SEEN_MAX {
            self.seen.retain(|name, _| !name.is_of_a_lock());
        }
        let (first, later) = names.split_at(names.len().min(READ_AT_ONCE));
        let (mut found, revision) = self.look(first, draw).await?;
        for names in later.chunks(READ_AT_ONCE) {
            let documents = self.look_back(names, revision).await?;
            found.documents.extend(documents);
        }
        Ok(found)
    }

    fn glance(&self) -> Option<Glance> {
        self.shared.witness.glance()
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let wire = &self.shared.wire;
        let locks = wire.document(Name::LOCK);
        let after = after.map(|key| key_of(wire, &Name::Lock(key.clone())));
        let mut after = after.unwrap_or_else(|| locks.clone());
        let mut revision = 0;
        let mut documents = Vec::new();
        loop {
            let page = range_after(&locks, &after, PAGE_AT_ONCE, revision);
            let (now_ms, at, found) = self.look_through(page, revision).await?;
            if revision == 0 {
                revision = at;
            }
            let is_last = found.len() < PAGE_AT_ONCE;
            after = found.last().map_or(after, |found| found.key.clone());
            let prefix = wire.document(b"").len();
            for found in &found {
                let document = stored(found)?.document;
                let key = Name::lock(&found.key[prefix..]);
                documents.extend(key.map(|key| (key, document)));
            }
            documents.retain(|(_, document): &(_, Document)| !document.content.is_empty());
            if is_last || documents.len() > limit {
                let more = documents.len() > limit;
                documents.truncate(limit);
                return Ok(Page {
                    now_ms,
                    documents,
                    more,
                });
            }
        }
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        self.keep_gate().await?;
        self.commit_and_sweep(commit).await
    }
}
