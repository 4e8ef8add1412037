//! Commits.

use hashbrown::HashMap;

use super::{
    api::{Compare, RequestOp, TxnRequest, compare::CompareResult},
    session::EtcdSession,
    txn::{
        OPERATIONS_MAX, absent, delete, exists, found, has, is_of, key_of, number, put, range,
        range_after, stored,
    },
    wire::Answer,
};
use crate::{
    ids::{ClientId, Token},
    shard::{
        ShardError,
        docs::{
            Commit, Committed, Expected, FORGET_AFTER, Name, Session as _, TokenChange,
            quorum::{
                refusal::refusal,
                text::{number_text, text},
            },
        },
        rules::millis,
    },
};

/// Attempts at a commit that raises the last token. Each one that fails means that others drew tokens.
const ATTEMPTS: u32 = 64;

/// New documents after which a session looks for old ones to delete.
const SWEEP_AFTER: usize = 128;

/// Documents that a sweep looks at, and those that it deletes, at most.
const SWEEP: (usize, usize) = (256, 120);

/// What came of one attempt at a commit.
enum Tried {
    Answered(Committed),
    /// Another last token than the one that is known.
    Again,
}

impl EtcdSession {
    pub(super) async fn commit_and_sweep(
        &mut self,
        commit: &Commit,
    ) -> Result<Committed, ShardError> {
        if self.made >= SWEEP_AFTER {
            self.sweep().await?;
        }
        let changed = commit.checks.len() + commit.writes.len();
        if changed > self.commit_max() {
            return Err(ShardError::Unusable {
                reason: format!(
                    "a change of {changed} documents: {} fit into a transaction of etcd",
                    self.commit_max()
                ),
            });
        }
        self.learn(commit).await?;
        for _ in 0..ATTEMPTS {
            match self.try_commit(commit).await? {
                Tried::Answered(committed) => return Ok(committed),
                Tried::Again => {}
            }
        }
        Ok(Committed::Refused { stale: Vec::new() })
    }

    /// Reads documents of whose expected version the revision is not known.
    async fn learn(&mut self, commit: &Commit) -> Result<(), ShardError> {
        let unknown = commit.expectations().filter(|(name, expected)| {
            let expects = matches!(expected, Expected::Version(_));
            expects && self.condition(name, *expected).is_err()
        });
        let unknown: Vec<Name> = unknown.map(|(name, _)| name.clone()).collect();
        match unknown.is_empty() {
            true => Ok(()),
            false => self.look_at(&unknown).await,
        }
    }

    /// The condition under which `name` is as expected; `Err` if this session knows no document of that version.
    pub(super) fn condition(&self, name: &Name, expected: Expected) -> Result<Option<Compare>, ()> {
        let key = || key_of(&self.shared.wire, name);
        match expected {
            Expected::Any => Ok(None),
            Expected::Absent => Ok(Some(absent(key()))),
            Expected::Version(version) => match self.seen.get(name) {
                Some((seen, revision)) if *seen == version => Ok(Some(is_of(key(), *revision))),
                _ => Err(()),
            },
        }
    }

    async fn try_commit(&mut self, commit: &Commit) -> Result<Tried, ShardError> {
        let (mut compare, mut stale) = (self.own_conditions(commit), Vec::new());
        for (name, expected) in commit.expectations() {
            match self.condition(name, expected) {
                Ok(condition) => compare.extend(condition),
                Err(()) => stale.push(name.clone()),
            }
        }
        if !stale.is_empty() {
            return Ok(Tried::Answered(Committed::Refused { stale }));
        }
        let wire = &self.shared.wire;
        let mut success: Vec<RequestOp> = commit
            .writes
            .iter()
            .map(|write| put(key_of(wire, &write.name), text(write, commit.version), 0))
            .collect();
        let tokens = self.token_change(commit.tokens);
        if let Some(tokens) = &tokens {
            compare.extend(tokens.condition.clone());
            let last = tokens.put.map(|last| number_text(last.get()));
            success.extend(last.map(|last| put(wire.key("tokens"), last, 0)));
        }
        let mut messages = self.messages(commit);
        let later = messages.split_off(messages.len().min(OPERATIONS_MAX - success.len()));
        success.extend(messages);
        let keys = ["life", "clock", "tokens"].map(|key| wire.key(key));
        let keys = keys.into_iter().chain([wire.gate(self.id)]);
        let keys = keys.chain(commit.expectations().map(|(name, _)| key_of(wire, name)));
        let answer = wire
            .txn(TxnRequest {
                compare,
                success,
                failure: keys.map(|key| range(key, 0)).collect(),
            })
            .await?;
        if !answer.value.succeeded {
            return self.refused(commit, answer);
        }
        let revision = answer.value.header.unwrap_or_default().revision;
        if let Some(last) = tokens.and_then(|tokens| tokens.put) {
            self.shared.witness.see_tokens((last.get(), revision));
        }
        self.made += commit.makes();
        for write in &commit.writes {
            let known = (commit.version, revision);
            self.seen.insert(write.name.clone(), known);
        }
        self.send(later).await;
        Ok(Tried::Answered(Committed::Done { at_ms: None }))
    }

    /// The life and the session go on, and it is in time.
    fn own_conditions(&self, commit: &Commit) -> Vec<Compare> {
        let wire = &self.shared.wire;
        let life = self.life.as_str().into();
        let mut own = vec![
            has(wire.key("life"), CompareResult::Equal, life),
            exists(wire.gate(self.id)),
        ];
        let after_ms = commit.not_after_ms.checked_add(1);
        if let Some(after_ms) = after_ms.filter(|_| self.shared.witness.keeps_locks) {
            let after = number_text(after_ms);
            own.push(has(wire.key("clock"), CompareResult::Less, after));
            let before = number_text(commit.not_before_ms.saturating_sub(1));
            own.push(has(wire.key("clock"), CompareResult::Greater, before));
        }
        own
    }

    /// What a change of the last token depends on, and the last token that it writes.
    fn token_change(&self, change: TokenChange) -> Option<TokenPut> {
        let key = self.shared.wire.key("tokens");
        let (known, revision) = self.shared.witness.tokens().unwrap_or_default();
        match change {
            TokenChange::None => None,
            TokenChange::Exactly(last) => Some(TokenPut {
                condition: None,
                put: Some(last),
            }),
            TokenChange::Next { after, last } => Some(TokenPut {
                condition: Some(has(key, CompareResult::Equal, number_text(after.get()))),
                put: Some(last),
            }),
            TokenChange::AtLeast(last) if known < last => Some(TokenPut {
                condition: Some(is_of(key, revision)),
                put: Some(last),
            }),
            TokenChange::AtLeast(last) => {
                let below = number_text(last.get().saturating_sub(1));
                Some(TokenPut {
                    condition: Some(has(key, CompareResult::Greater, below)),
                    put: None,
                })
            }
        }
    }

    /// A key for each client. They go with this session's gate.
    fn messages(&self, commit: &Commit) -> Vec<RequestOp> {
        let mut messages: HashMap<ClientId, Vec<&str>> = HashMap::new();
        for (client, text) in &commit.messages {
            messages.entry(*client).or_default().push(text);
        }
        let messages = messages.into_iter().map(|(client, texts)| {
            let texts = serde_json::to_vec(&texts).expect("texts");
            put(self.shared.wire.inbox(client), texts, self.lease)
        });
        messages.collect()
    }

    /// Sends messages that found no room in their commit. Messages may be lost.
    async fn send(&self, messages: Vec<RequestOp>) {
        for messages in messages.chunks(OPERATIONS_MAX) {
            let sent = self.shared.wire.txn(TxnRequest {
                compare: vec![exists(self.shared.wire.gate(self.id))],
                success: messages.to_vec(),
                failure: Vec::new(),
            });
            if sent.await.is_err() {
                return;
            }
        }
    }

    /// Why the commit was not done, by what was found instead.
    fn refused(
        &mut self,
        commit: &Commit,
        answer: Answer<super::api::TxnResponse>,
    ) -> Result<Tried, ShardError> {
        let Answer { value, is_repeated } = answer;
        let mut found = found(value);
        let [life, clock, tokens, gate] = std::array::from_fn(|_| found.next().flatten());
        self.alive(&life)?;
        if gate.is_none() {
            return Err(ShardError::NoReply {
                reason: "another connection has ended this one".into(),
            });
        }
        let (now_ms, _) = number(clock)?;
        let last = self.shared.witness.see_tokens(number(tokens)?);
        let documents = commit.expectations().zip(found);
        let documents = documents.map(|((name, _), found)| self.see(name, found));
        let documents: Vec<_> = documents.collect::<Result<_, _>>()?;
        let is_in_time = !self.shared.witness.keeps_locks || commit.is_in_time(now_ms);
        let refusal = refusal(commit, &documents, last, is_repeated, is_in_time)?;
        Ok(refusal.map_or(Tried::Again, Tried::Answered))
    }

    /// Deletes some of the documents that ended long ago, unless they are written again meanwhile.
    async fn sweep(&mut self) -> Result<(), ShardError> {
        let all = self.shared.wire.document(b"");
        if self.swept.is_empty() {
            self.swept = all.clone();
        }
        let page = range_after(&all, &self.swept, SWEEP.0, 0);
        let (now_ms, _, page) = self.look_through(page, 0).await?;
        let forgotten_ms = now_ms.saturating_sub(millis(FORGET_AFTER));
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        let is_last = page.len() < SWEEP.0;
        self.swept.clear();
        for found in page {
            let its = stored(&found)?;
            if its.ends_ms.is_some_and(|ends_ms| ends_ms < forgotten_ms) {
                compare.push(is_of(found.key.clone(), its.revision));
                success.push(delete(found.key.clone()));
            }
            if !is_last || success.len() == SWEEP.1 {
                self.swept = found.key;
            }
            if success.len() == SWEEP.1 {
                break;
            }
        }
        self.made = 0;
        if success.is_empty() {
            return Ok(());
        }
        // If one was written again, a later sweep deletes the others.
        self.shared
            .wire
            .txn(TxnRequest {
                compare,
                success,
                failure: Vec::new(),
            })
            .await
            .map(drop)
    }
}

struct TokenPut {
    condition: Option<Compare>,
    put: Option<Token>,
}
