//! A proxy that knows requests from replies, and does to them what networks do.
//!
//! ```text
//! client ─► line: Pump(requests) ─► server        a Flow for each way, by the connection's name;
//!        ◄─       Pump(replies)  ◄─               Traps at a certain request; cuts at any time
//! ```
//!
//! It forwards whole requests and whole replies, and counts them, so that a test waits for what
//! has happened instead of sleeping. Every request of a connection must have one reply: not for
//! SUBSCRIBE, MONITOR or CLIENT REPLY OFF.

mod frame;
mod line;
mod rules;
mod state;

use std::{sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinSet, time::sleep};

pub use frame::{Frame, Framer, NotResp};
pub use rules::{Counts, Deed, Flow, Trap, Whose};
use state::{End, Shared, Way};

/// A proxy on 127.0.0.1 in front of one server, in this process. It, and every connection through
/// it, ends with this value.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    /// Ends its tasks when it is dropped.
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy for the server on `upstream`, a port of 127.0.0.1.
    pub async fn start(upstream: u16) -> Self {
        Self::seeded(upstream, 1).await
    }

    /// The same, with delays out of `seed`.
    pub async fn seeded(upstream: u16, seed: u64) -> Self {
        Self::new(upstream, seed, false).await
    }

    /// The same for a server of any protocol. It does not know requests: it counts pieces of the streams.
    pub async fn raw(upstream: u16, seed: u64) -> Self {
        Self::new(upstream, seed, true).await
    }

    async fn new(upstream: u16, seed: u64, is_raw: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::new(upstream, seed, is_raw));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared.clone()));
        Self {
            port,
            shared,
            _tasks: tasks,
        }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// As a failover does: cuts every connection, and leads new ones to the server on `upstream`.
    pub fn point_at(&self, upstream: u16) {
        self.shared.change(|state| {
            state.upstream = upstream;
            state.end(&Whose::All, End::Cut);
        });
    }

    /// What becomes of requests from now on. Of rules that fit a connection the last counts.
    pub fn requests(&self, whose: &Whose, flow: Flow) {
        let rule = (whose.clone(), Way::Requests, flow);
        self.shared.change(|state| state.flows.push(rule));
    }

    /// What becomes of replies from now on. Of rules that fit a connection the last counts.
    pub fn replies(&self, whose: &Whose, flow: Flow) {
        let rule = (whose.clone(), Way::Replies, flow);
        self.shared.change(|state| state.flows.push(rule));
    }

    /// What becomes of both. A black hole is [`Flow::Hold`].
    pub fn both(&self, whose: &Whose, flow: Flow) {
        self.requests(whose, flow.clone());
        self.replies(whose, flow);
    }

    /// Resets new connections as soon as they come, or accepts them again.
    pub fn refuse(&self, refusing: bool) {
        self.shared.change(|state| state.refusing = refusing);
    }

    /// Resets connections now.
    pub fn cut(&self, whose: &Whose) {
        self.shared.change(|state| state.end(whose, End::Cut));
    }

    /// Closes the server's side of connections now; the client's stays open and silent.
    pub fn half_open(&self, whose: &Whose) {
        self.shared.change(|state| state.end(whose, End::HalfOpen));
    }

    /// Sets a trap, which springs once.
    pub fn trap(&self, trap: Trap) {
        self.shared.change(|state| state.traps.push(trap));
    }

    /// How many traps have sprung: the request has been let through to the server.
    pub fn sprung(&self) -> u64 {
        self.shared.look(|state| state.sprung)
    }

    /// Ends every rule and takes away every trap. Connections that lost something, or are half open,
    /// stay as they are.
    pub fn heal(&self) {
        self.shared.change(|state| {
            state.refusing = false;
            state.flows.clear();
            state.traps.clear();
        });
    }

    /// What went through connections that bear, or at their end bore, a fitting name.
    pub fn counts(&self, whose: &Whose) -> Counts {
        let mut counts = Counts::default();
        self.shared.look(|state| {
            let lines = state.lines.iter().filter(|line| whose.is(&line.name));
            lines.for_each(|line| counts.add(&line.counts));
        });
        counts
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut lines = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of file descriptors, say: give those in use a moment to be closed.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        match shared.accept() {
            Some(line) => drop(lines.spawn(line::serve(shared.clone(), line, client))),
            None => line::reset(client),
        }
        while lines.try_join_next().is_some() {}
    }
}
