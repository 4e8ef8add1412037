//! A session: reads, and its gate. See commit.rs.

use std::sync::Arc;

use async_trait::async_trait;
use hashbrown::HashMap;
use tokio::time::Instant;
use zookeeper_client::{Client, StateWatcher};

use super::{
    Shared,
    life::Opened,
    nodes::{Node, Op, Written, absent, not_ours, number, read, set, stored, write},
};
use crate::{
    clock::Moment,
    ids::{Life, Token},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{
            Commit, Committed, Document, Draw, Draws, Expected, Found, Glance, Name, Page, Session,
            quorum::{
                SEEN_MAX,
                text::{is_stale, number_text, wanted},
                time::Asked,
            },
        },
    },
};

/// Documents in a commit, at most: more than a batch has.
const COMMIT_MAX: usize = 512;

/// Attempts to open a session. Each one that fails means that a life began or ended.
const OPENINGS: u32 = 16;

/// A sequence of reads and commits. Every commit depends on the session's gate, a znode that a later session deletes.
#[derive(Debug)]
pub(super) struct ZookeeperSession {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Life,
    pub(super) id: ConnectionId,
    /// Of the session of ZooKeeper that has the gate.
    state: StateWatcher,
    /// Documents as they were last read or written.
    pub(super) seen: HashMap<Name, Seen>,
    /// The version of `swept` at the last read.
    pub(super) swept: i32,
    /// Documents that this session made since its last sweep.
    pub(super) made: usize,
    /// The directory that the next sweep begins at.
    pub(super) sweep_at: usize,
}

/// A document that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The version in its text.
    pub(super) version: u64,
    /// The version of its znode.
    pub(super) node: i32,
    /// The version of `swept` when it was read: later, the znode may be another one.
    pub(super) swept: i32,
}

/// What a read found.
pub(super) struct Looked {
    pub(super) now_ms: u64,
    slack_ms: u64,
    pub(super) last: Token,
    pub(super) has_gate: bool,
    head: Option<Document>,
    pub(super) documents: Vec<Option<Document>>,
    /// The tokens that the request drew.
    drawn: Option<Drawn>,
}

/// Tokens to draw.
pub(super) struct Drawing {
    ops: Vec<Op>,
    /// The last token before them.
    after: Token,
    count: u64,
}

/// Tokens that were drawn.
#[derive(Clone, Copy)]
struct Drawn {
    after: Token,
    count: u64,
}

impl ZookeeperSession {
    /// Makes a gate, deletes that of `former`, and begins the life if there is none.
    pub(super) async fn open(
        shared: Arc<Shared>,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, ShardError> {
        let mut former = former.map(|(_, former)| former);
        for _ in 0..OPENINGS {
            let id = ConnectionId(shared.wire.random.below(1 << 63));
            match shared.open_gate(id, former).await? {
                Opened::In(life, state) => {
                    return Ok(Self {
                        shared,
                        life,
                        id,
                        state,
                        seen: HashMap::new(),
                        swept: 0,
                        made: 0,
                        sweep_at: 0,
                    });
                }
                Opened::NoLife => shared.begin().await?,
                Opened::NoFormer => former = None,
                Opened::Again => {}
            }
        }
        Err(ShardError::Unreachable {
            reason: format!("a life began or ended {OPENINGS} times"),
        })
    }

    /// Reads documents. Draws tokens after that, if it can.
    pub(super) async fn look(
        &mut self,
        names: &[Name],
        drawing: Option<&Drawing>,
    ) -> Result<Looked, ShardError> {
        let shared = self.shared.clone();
        let (paths, witness) = (&shared.paths, &shared.witness);
        let sent = witness.now();
        let mut first = vec![Op::Check(paths.life(&self.life), None)];
        if let Some((stamp, ms)) = witness.tick(sent) {
            let text = number_text(ms);
            set(&mut first, paths.at("clock"), text, stamp.version);
        }
        // The clock is no later than the documents, and the last token no earlier.
        let head = [paths.at("clock"), paths.at("swept"), paths.gate(self.id)];
        let head = head.into_iter().chain([paths.document(&Name::Head)]);
        let documents = names.iter().map(|name| paths.document(name));
        let all = head.chain(documents).chain([paths.at("tokens")]);
        let all: Vec<String> = all.collect();
        let acls = shared.wire.acls();
        let ask = |client: Client| {
            let (first, all) = (&first, &all);
            async move {
                let first = write(&client, acls, first);
                let found = read(&client, all);
                let draw = drawing.map(|drawing| write(&client, acls, &drawing.ops));
                let first = first.await?;
                let found = found.await?;
                let drawn = match draw {
                    Some(draw) => Some(draw.await?),
                    None => None,
                };
                Ok((first, found, drawn))
            }
        };
        let (first_done, found, drawn) = shared.wire.ask(ask).await?.value;
        let answered = witness.now();
        let put = match first_done {
            Written::Failed(0) => return Err(ShardError::Unarmed),
            Written::Failed(_) => false,
            Written::Done(_) => first.len() > 1,
        };
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let clock = number(next(), "clock")?;
        let swept = next().ok_or_else(|| not_ours("swept"))?;
        self.swept = swept.stamp.version;
        let has_gate = next().is_some();
        let head = next();
        let documents: Vec<Option<Node>> = names.iter().map(|_| next()).collect();
        let last = witness.see_tokens(number(next(), "tokens")?);
        let asked = Asked {
            sent,
            answered,
            put,
        };
        let (now_ms, slack_ms) = witness.see_clock(asked, clock);
        let head = self.see(&Name::Head, head)?;
        let documents = names.iter().zip(documents);
        let documents = documents.map(|(name, node)| self.see(name, node));
        Ok(Looked {
            now_ms,
            slack_ms,
            last,
            has_gate,
            head,
            documents: documents.collect::<Result<_, _>>()?,
            drawn: drawing
                .zip(drawn)
                .and_then(|(drawing, drawn)| self.drew(drawing, drawn)),
        })
    }

    /// Keeps the version of a znode that was read.
    fn see(&mut self, name: &Name, node: Option<Node>) -> Result<Option<Document>, ShardError> {
        let Some(node) = node else {
            self.seen.remove(name);
            return Ok(None);
        };
        let (document, _) = stored(&node, &self.shared.paths.document(name))?;
        let seen = Seen {
            version: document.version,
            node: node.stamp.version,
            swept: self.swept,
        };
        self.seen.insert(name.clone(), seen);
        Ok(Some(document))
    }

    /// Documents that have no end are not swept.
    pub(super) fn can_be_swept(name: &Name) -> bool {
        name.is_of_a_lock() || matches!(name, Name::Import(_))
    }

    /// The state of `name`, if it has the version expected.
    pub(super) fn known(&self, name: &Name, version: u64) -> Option<Seen> {
        let seen = self.seen.get(name).copied()?;
        let is_current = seen.swept == self.swept || !Self::can_be_swept(name);
        (seen.version == version && is_current).then_some(seen)
    }

    /// The operations that draw tokens now. `None`: too little is known, or they would exceed the greatest counter.
    fn drawing(&self, draw: Draw) -> Option<Drawing> {
        let (after, stamp) = self.shared.witness.tokens()?;
        let count = wanted(draw, after);
        let paths = &self.shared.paths;
        let mut ops = vec![Op::Check(paths.life(&self.life), None)];
        let head = paths.document(&Name::Head);
        match draw.head {
            Expected::Any => {}
            Expected::Absent => ops.extend(absent(head)),
            Expected::Version(version) => {
                let seen = self.known(&Name::Head, version)?;
                ops.push(Op::Check(head, Some(seen.node)));
            }
        }
        let last = number_text(after.get() + count);
        set(&mut ops, paths.at("tokens"), last, stamp.version);
        (count > 0).then_some(Drawing { ops, after, count })
    }

    fn drew(&self, drawing: &Drawing, written: Written) -> Option<Drawn> {
        let Written::Done(stamps) = written else {
            return None;
        };
        let stamp = stamps.last().copied().flatten()?;
        let Drawing { after, count, .. } = *drawing;
        let last = (after.get() + count, stamp);
        self.shared.witness.see_tokens(last);
        Some(Drawn { after, count })
    }

    /// Reads documents, then draws tokens, unless the head is another one.
    async fn look_and_draw(
        &mut self,
        names: &[Name],
        draw: Option<Draw>,
    ) -> Result<Found, ShardError> {
        let shared = self.shared.clone();
        // Draws of one process do not compete.
        let _turn = match draw {
            Some(_) => Some(shared.witness.turn.lock().await),
            None => None,
        };
        let until = Instant::now() + shared.wire.options.patience;
        let drawing = draw.and_then(|draw| self.drawing(draw));
        let mut looked = self.look(names, drawing.as_ref()).await?;
        let mut found = Found {
            now_ms: looked.now_ms,
            slack_ms: looked.slack_ms,
            last: looked.last,
            drawn: 0,
            head_is_stale: false,
            documents: std::mem::take(&mut looked.documents),
        };
        let Some(draw) = draw else {
            return Ok(found);
        };
        // A draw that failed is tried again: the documents were read before it.
        while Instant::now() < until {
            found.last = looked.last;
            if let Some(drawn) = looked.drawn {
                (found.last, found.drawn) = (drawn.after, drawn.count);
                return Ok(found);
            }
            found.head_is_stale = is_stale(draw.head, looked.head.as_ref());
            if found.head_is_stale || wanted(draw, looked.last) == 0 {
                return Ok(found);
            }
            let drawing = self.drawing(draw);
            looked = self.look(&[], drawing.as_ref()).await?;
        }
        Err(ShardError::Unreachable {
            reason: "other requests drew tokens first".into(),
        })
    }
}

#[async_trait]
impl Session for ZookeeperSession {
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

    /// The gate goes with the session of ZooKeeper in which it was made.
    async fn ended(&mut self) {
        while !self.state.peek_state().is_terminated() {
            self.state.changed().await;
        }
    }

    fn moment(&self) -> Option<Moment> {
        self.shared.witness.moment()
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        if self.seen.len() > SEEN_MAX {
            self.seen.retain(|name, _| !name.is_of_a_lock());
        }
        self.look_and_draw(names, draw).await
    }

    fn glance(&self) -> Option<Glance> {
        self.shared.witness.glance()
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        self.page_of_locks(after, limit).await
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        self.commit_and_sweep(commit).await
    }
}
