//! Commits.

use hashbrown::HashMap;
use zookeeper_client::Client;

use super::{
    nodes::{Op, Stamp, Written, absent, set, write},
    session::{Seen, ZookeeperSession},
    wire::Answer,
};
use crate::{
    ids::{ClientId, Token},
    shard::{
        ShardError,
        docs::{
            Commit, Committed, Expected, Name, Session as _, TokenChange, Write,
            quorum::{
                refusal::refusal,
                text::{number_text, text},
            },
        },
    },
};

/// Attempts at a commit. Each one that fails means that the clock went forward, that others drew tokens or swept, or that a
/// client is gone.
const ATTEMPTS: u32 = 64;

/// New documents after which a session looks for old ones to delete.
const SWEEP_AFTER: usize = 512;

/// ZooKeeper takes requests of at most 1 MB by default (jute.maxbuffer).
const BYTES_MAX: usize = 1_000_000;

/// What came of one attempt at a commit.
enum Tried {
    Answered(Committed),
    /// Something else than a document was not as it was known.
    Again,
    /// There is no znode for messages to this client.
    Absent(ClientId),
}

/// The operations of a commit, and what is known if they are done.
#[derive(Default)]
struct Plan {
    ops: Vec<Op>,
    seen: Vec<(Name, Seen)>,
    /// The operation that writes the last token, and that token.
    tokens: Option<(usize, Token)>,
    /// The operations from here on are messages to these.
    messages_at: usize,
    messages: Vec<ClientId>,
}

impl ZookeeperSession {
    pub(super) async fn commit_and_sweep(
        &mut self,
        commit: &Commit,
    ) -> Result<Committed, ShardError> {
        if self.made >= SWEEP_AFTER {
            self.sweep().await?;
        }
        let changed = commit.checks.len() + commit.writes.len();
        if changed > self.commit_max() {
            let max = self.commit_max();
            return Err(too_large(&format!("{changed} documents: at most {max}")));
        }
        let mut absent = Vec::new();
        for _ in 0..ATTEMPTS {
            self.learn(commit).await?;
            match self.try_commit(commit, &absent).await? {
                Tried::Answered(committed) => return Ok(committed),
                Tried::Again => {}
                Tried::Absent(client) => absent.push(client),
            }
        }
        Ok(Committed::Refused { stale: Vec::new() })
    }

    /// Reads documents of whose expected version the znode is not known; and clock and tokens, if they are not.
    async fn learn(&mut self, commit: &Commit) -> Result<(), ShardError> {
        let by_version = || {
            commit
                .expectations()
                .filter_map(|(name, expected)| match expected {
                    Expected::Version(version) => Some((name, version)),
                    Expected::Any | Expected::Absent => None,
                })
        };
        let mut known = by_version().all(|(name, version)| self.known(name, version).is_some());
        let witness = &self.shared.witness;
        known &= witness.clock().is_some() && witness.tokens().is_some();
        if !known {
            // All of them: what was read before the last sweep tells nothing.
            let names: Vec<Name> = by_version().map(|(name, _)| name.clone()).collect();
            self.look(&names, None).await?;
        }
        Ok(())
    }

    async fn try_commit(
        &mut self,
        commit: &Commit,
        gone: &[ClientId],
    ) -> Result<Tried, ShardError> {
        let shared = self.shared.clone();
        let (clock, now_ms) = shared.witness.clock().unwrap_or_default();
        if shared.witness.keeps_locks && !commit.is_in_time(now_ms) {
            return Ok(Tried::Answered(Committed::Refused { stale: Vec::new() }));
        }
        let by_version = commit
            .expectations()
            .filter_map(|(name, expected)| match expected {
                Expected::Version(version) if self.known(name, version).is_none() => {
                    Some(name.clone())
                }
                _ => None,
            });
        let stale: Vec<Name> = by_version.collect();
        let (last, _) = shared.witness.tokens().unwrap_or_default();
        if !stale.is_empty() || commit.tokens.is_overtaken(last) {
            return Ok(Tried::Answered(Committed::Refused { stale }));
        }
        let plan = self.plan(commit, clock, gone);
        let bytes: usize = plan.ops.iter().map(Op::bytes).sum();
        if bytes > BYTES_MAX {
            let locks = |write: &&Write| write.name.is_of_a_lock();
            return match commit.writes.iter().filter(locks).count() {
                // A batch is taken apart, then.
                2.. => Ok(Tried::Answered(Committed::Refused { stale: Vec::new() })),
                _ => Err(too_large(&format!("{bytes} bytes: at most {BYTES_MAX}"))),
            };
        }
        let ask = |client: Client| {
            let (acls, ops) = (shared.wire.acls(), &plan.ops);
            async move { write(&client, acls, ops).await }
        };
        let Answer { value, is_repeated } = shared.wire.ask(ask).await?;
        match value {
            Written::Done(stamps) => {
                self.done(commit, plan, &stamps);
                Ok(Tried::Answered(Committed::Done { at_ms: None }))
            }
            Written::Failed(at) if at >= plan.messages_at => {
                Ok(Tried::Absent(plan.messages[at - plan.messages_at]))
            }
            Written::Failed(_) => self.refused(commit, is_repeated).await,
        }
    }

    /// Keeps what a commit that was done has written.
    fn done(&mut self, commit: &Commit, plan: Plan, stamps: &[Option<Stamp>]) {
        self.seen.extend(plan.seen);
        self.made += commit.makes();
        if let Some((at, last)) = plan.tokens
            && let Some(stamp) = stamps.get(at).copied().flatten()
        {
            self.shared.witness.see_tokens((last.get(), stamp));
        }
    }

    fn plan(&self, commit: &Commit, clock: Stamp, gone: &[ClientId]) -> Plan {
        let (paths, witness) = (&self.shared.paths, &self.shared.witness);
        let mut plan = Plan::default();
        let ops = &mut plan.ops;
        ops.push(Op::Check(paths.life(&self.life), None));
        ops.push(Op::Check(paths.gate(self.id), None));
        // It shows what it showed when this was found in time.
        if witness.keeps_locks && commit.not_after_ms < u64::MAX {
            ops.push(Op::Check(paths.at("clock"), Some(clock.version)));
        }
        let swept = commit.expectations().any(|(name, expected)| {
            matches!(expected, Expected::Version(_)) && Self::can_be_swept(name)
        });
        if swept {
            ops.push(Op::Check(paths.at("swept"), Some(self.swept)));
        }
        for (name, expected) in &commit.checks {
            match expected {
                Expected::Any => {}
                Expected::Absent => ops.extend(absent(paths.document(name))),
                Expected::Version(_) => {
                    let node = self.seen.get(name).map(|seen| seen.node);
                    ops.push(Op::Check(paths.document(name), node));
                }
            }
        }
        for one in &commit.writes {
            let (path, text) = (paths.document(&one.name), text(one, commit.version));
            let seen = self.seen.get(&one.name);
            let node = match seen.filter(|_| one.expected != Expected::Absent) {
                Some(seen) => set(ops, path, text, seen.node),
                None => {
                    ops.push(Op::Create(path, text));
                    0
                }
            };
            let seen = Seen {
                version: commit.version,
                node,
                swept: self.swept,
            };
            plan.seen.push((one.name.clone(), seen));
        }
        self.plan_tokens(commit.tokens, &mut plan);
        self.plan_messages(commit, gone, &mut plan);
        plan
    }

    fn plan_tokens(&self, change: TokenChange, plan: &mut Plan) {
        let (known, stamp) = self.shared.witness.tokens().unwrap_or_default();
        let path = self.shared.paths.at("tokens");
        let last = match change {
            TokenChange::None => return,
            TokenChange::AtLeast(last) if last <= known => {
                return plan.ops.push(Op::Check(path, Some(stamp.version)));
            }
            TokenChange::AtLeast(last)
            | TokenChange::Exactly(last)
            | TokenChange::Next { last, .. } => last,
        };
        set(&mut plan.ops, path, number_text(last.get()), stamp.version);
        plan.tokens = Some((plan.ops.len() - 1, last));
    }

    fn plan_messages(&self, commit: &Commit, gone: &[ClientId], plan: &mut Plan) {
        let mut messages: HashMap<ClientId, Vec<&str>> = HashMap::new();
        for (client, text) in &commit.messages {
            if !gone.contains(client) {
                messages.entry(*client).or_default().push(text);
            }
        }
        plan.messages_at = plan.ops.len();
        for (client, texts) in messages {
            let texts = serde_json::to_vec(&texts).expect("texts");
            let path = self.shared.next_message(client);
            plan.ops.push(Op::Set(path, texts, None));
            plan.messages.push(client);
        }
    }

    /// Why the commit was not done, by what is there instead.
    async fn refused(&mut self, commit: &Commit, is_repeated: bool) -> Result<Tried, ShardError> {
        let names = commit.expectations().map(|(name, _)| name.clone());
        let looked = self.look(&names.collect::<Vec<_>>(), None).await?;
        if !looked.has_gate {
            return Err(ShardError::NoReply {
                reason: "another connection has ended this one".into(),
            });
        }
        let is_in_time = !self.shared.witness.keeps_locks || commit.is_in_time(looked.now_ms);
        let documents = &looked.documents;
        let refusal = refusal(commit, documents, looked.last, is_repeated, is_in_time)?;
        Ok(refusal.map_or(Tried::Again, Tried::Answered))
    }
}

fn too_large(what: &str) -> ShardError {
    ShardError::Unusable {
        reason: format!("a change of {what} fit into a request to ZooKeeper"),
    }
}
