//! Documents in a map behind a lock. Requests are applied even if nobody waits for their answers any more.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_coordinator::{
    clock::{Clock, Moment, TokioClock},
    ids::{ClientId, Life, Token},
    limits::COUNTER_MAX,
    name::LockKey,
    random::Random,
    shard::{
        ConnectionId, ShardError,
        docs::{
            COMMIT_WITHIN, Commit, Committed, Document, Draw, Draws, Expected, FORGET_AFTER, Found,
            Glance, Inbox, Name, Page, Session, Store, TokenChange,
        },
    },
};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

/// How long a request, and an answer, is on its way to and from a slow server, at least; at most it is three times as
/// long.
const SLOW_MS: u64 = 6;

/// A server in memory.
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    slow: AtomicBool,
    commit_max: AtomicUsize,
    random: Random,
}

struct State {
    clock: TokioClock,
    ahead_ms: u64,
    lives: u32,
    documents: BTreeMap<Name, (Document, Option<u64>)>,
    last: u64,
    reads: u64,
    open: HashSet<u64>,
    sessions: u64,
    inboxes: Vec<(ClientId, mpsc::Sender<String>)>,
    /// Requests under way.
    tasks: JoinSet<()>,
}

impl Server {
    pub(crate) fn starting_at(clock: impl Clock) -> Self {
        let state = State {
            clock: TokioClock::starting_at(clock.unix()),
            // So that it can be set back.
            ahead_ms: 1 << 40,
            lives: 1,
            documents: BTreeMap::new(),
            last: 0,
            reads: 0,
            open: HashSet::new(),
            sessions: 0,
            inboxes: Vec::new(),
            tasks: JoinSet::new(),
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            slow: AtomicBool::new(false),
            commit_max: AtomicUsize::new(usize::MAX),
            random: Random::seeded(2),
        }))
    }

    pub(crate) fn slow_down(&self) {
        self.0.slow.store(true, Relaxed);
    }

    pub(crate) fn limit_commits(&self, most: usize) {
        self.0.commit_max.store(most, Relaxed);
    }

    pub(crate) fn reads(&self) -> u64 {
        self.0.state.lock().reads
    }

    pub(crate) fn set_counter(&self, counter: u64) {
        let mut state = self.0.state.lock();
        let epoch = Token::from_number(state.last).epoch();
        state.last = Token::new(epoch, counter).get();
    }

    pub(crate) fn set_clock_back(&self, length: Duration) {
        self.0.state.lock().ahead_ms -= length.as_millis() as u64;
    }

    pub(crate) fn copy(&self) -> Option<String> {
        let state = self.0.state.lock();
        let (head, _) = state.documents.get(&Name::Head)?;
        let head: serde_json::Value = serde_json::from_str(&head.content).unwrap();
        let current = head["life"] == *state.life().as_str();
        let copy = current.then(|| head["copy"][2].as_str())?;
        copy.map(str::to_owned)
    }

    pub(crate) fn restart(&self) {
        let mut state = self.0.state.lock();
        state.lives += 1;
        state.open.clear();
        state.inboxes.clear();
    }
}

impl State {
    fn life(&self) -> Life {
        Life::new(format!("docs-{}", self.lives))
    }

    fn now_ms(&self) -> u64 {
        self.ahead_ms + self.clock.unix().as_millis() as u64
    }

    fn document(&self, name: &Name) -> Option<Document> {
        self.documents.get(name).map(|(its, _)| its.clone())
    }

    fn differs(&self, name: &Name, expected: Expected) -> bool {
        let version = self.documents.get(name).map(|(its, _)| its.version);
        match expected {
            Expected::Any => false,
            Expected::Absent => version.is_some(),
            Expected::Version(expected) => version != Some(expected),
        }
    }

    fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Found {
        self.reads += 1;
        let last = Token::from_number(self.last);
        let head_is_stale = draw.is_some_and(|draw| self.differs(&Name::Head, draw.head));
        let draw = draw.filter(|_| !head_is_stale);
        let wanted = draw.map_or(0, |draw| draw.tokens);
        let fits = last.counter() + wanted <= COUNTER_MAX;
        let drawn = if fits { wanted } else { 0 };
        self.last += drawn;
        Found {
            now_ms: self.now_ms(),
            slack_ms: 0,
            last,
            drawn,
            head_is_stale,
            documents: names.iter().map(|name| self.document(name)).collect(),
        }
    }

    fn page(&self, after: Option<&LockKey>, limit: usize) -> Page {
        let locks = self.documents.iter().filter_map(|(name, (its, _))| {
            let Name::Lock(key) = name else { return None };
            let comes = after.is_none_or(|after| after < key) && !its.content.is_empty();
            comes.then(|| (key.clone(), its.clone()))
        });
        let mut documents: Vec<_> = locks.take(limit + 1).collect();
        let more = documents.len() > limit;
        documents.truncate(limit);
        Page {
            now_ms: self.now_ms(),
            documents,
            more,
        }
    }

    fn commit(&mut self, commit: &Commit) -> Committed {
        let written = commit.writes.iter().map(|its| (&its.name, its.expected));
        let checked = commit
            .checks
            .iter()
            .map(|(name, expected)| (name, *expected));
        let differs = |(name, expected): &(&Name, Expected)| self.differs(name, *expected);
        let stale = written.chain(checked).filter(differs);
        let stale: Vec<Name> = stale.map(|(name, _)| name.clone()).collect();
        let now_ms = self.now_ms();
        let is_overtaken = commit.tokens.is_overtaken(Token::from_number(self.last));
        if !stale.is_empty() || !commit.is_in_time(now_ms) || is_overtaken {
            return Committed::Refused { stale };
        }
        for write in &commit.writes {
            let document = Document {
                version: commit.version,
                content: write.content.clone(),
            };
            self.documents
                .insert(write.name.clone(), (document, write.ends_ms));
        }
        match commit.tokens {
            TokenChange::None => {}
            TokenChange::AtLeast(last) => self.last = self.last.max(last.get()),
            TokenChange::Exactly(last) | TokenChange::Next { last, .. } => self.last = last.get(),
        }
        for (client, message) in &commit.messages {
            let its = self.inboxes.iter().filter(|(its, _)| its == client);
            its.for_each(|(_, sender)| drop(sender.try_send(message.clone())));
        }
        let forgotten = now_ms.saturating_sub(FORGET_AFTER.as_millis() as u64);
        self.documents
            .retain(|_, (_, ends_ms)| ends_ms.is_none_or(|ends_ms| ends_ms >= forgotten));
        Committed::Done {
            at_ms: Some(now_ms),
        }
    }
}

impl Shared {
    async fn travel(&self) {
        match self.slow.load(Relaxed) {
            true => {
                let more = self.random.below(2 * SLOW_MS);
                sleep(Duration::from_millis(SLOW_MS + more)).await;
            }
            false => tokio::task::yield_now().await,
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a store in memory")
    }
}

#[async_trait]
impl Store for Server {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let shared = self.0.clone();
        shared.travel().await;
        let (life, id) = {
            let mut state = shared.state.lock();
            let life = state.life();
            if let Some((_, id)) = former.filter(|(its, _)| *its == life) {
                state.open.remove(&id.0);
            }
            state.sessions += 1;
            let id = state.sessions;
            state.open.insert(id);
            (life, id)
        };
        shared.travel().await;
        Ok(Box::new(Connection { shared, life, id }))
    }

    async fn open_rare(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        self.open(former).await
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        self.0.travel().await;
        let (sender, messages) = mpsc::channel(1024);
        let mut state = self.0.state.lock();
        state.inboxes.push((client, sender));
        let life = state.life();
        Ok(Box::new(Messages { life, messages }))
    }
}

struct Connection {
    shared: Arc<Shared>,
    life: Life,
    id: u64,
}

impl Connection {
    async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, ShardError> {
        let (sender, mut answer) = mpsc::channel(1);
        let (shared, life, id) = (self.shared.clone(), self.life.clone(), self.id);
        let apply = async move {
            shared.travel().await;
            let answer = {
                let mut state = shared.state.lock();
                if state.life() != life {
                    Err(ShardError::Unarmed)
                } else if !state.open.contains(&id) {
                    Err(no_reply())
                } else {
                    Ok(request(&mut state))
                }
            };
            shared.travel().await;
            // Nobody may be waiting.
            let _ = sender.send(answer).await;
        };
        {
            let mut state = self.shared.state.lock();
            while state.tasks.try_join_next().is_some() {}
            state.tasks.spawn(apply);
        }
        answer.recv().await.unwrap_or_else(|| Err(no_reply()))
    }
}

fn no_reply() -> ShardError {
    ShardError::NoReply {
        reason: "the connection has ended".into(),
    }
}

#[async_trait]
impl Session for Connection {
    fn life(&self) -> &Life {
        &self.life
    }

    fn id(&self) -> ConnectionId {
        ConnectionId(self.id)
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn commit_max(&self) -> usize {
        self.shared.commit_max.load(Relaxed)
    }

    async fn ended(&mut self) {
        std::future::pending().await
    }

    fn moment(&self) -> Option<Moment> {
        None
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        let names = names.to_vec();
        self.ask(move |state| state.read(&names, draw)).await
    }

    fn draws(&self) -> Draws {
        Draws::Commits
    }

    fn glance(&self) -> Option<Glance> {
        let state = self.shared.state.lock();
        Some(Glance {
            now_ms: state.now_ms(),
            slack_ms: 0,
            until_ms: state.now_ms() + COMMIT_WITHIN.as_millis() as u64,
        })
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let after = after.cloned();
        self.ask(move |state| state.page(after.as_ref(), limit))
            .await
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        assert!(commit.expectations().count() <= self.commit_max());
        let commit = commit.clone();
        self.ask(move |state| state.commit(&commit)).await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "session {}", self.id)
    }
}

#[derive(Debug)]
struct Messages {
    life: Life,
    messages: mpsc::Receiver<String>,
}

#[async_trait]
impl Inbox for Messages {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        self.messages.recv().await.ok_or_else(no_reply)
    }
}
