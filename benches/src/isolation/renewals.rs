//! Locks that are held, and how their renewals do.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ringfence_client::{Client, Guard, limits};
use tokio::{sync::mpsc, task::JoinSet, time::interval};

use crate::{Failure, now};

/// How often guards are looked at: what a latency is exact to.
const LOOK: Duration = Duration::from_millis(1);

/// The part of its lease after which a lock is renewed, at the latest.
const DUE: (u32, u32) = (3, 10);

/// A renewal that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    pub(crate) shard: usize,
    /// When it left; or when it was to, at the latest, if an earlier one was not answered.
    pub(crate) due: Instant,
    /// From then to its answer.
    pub(crate) latency: Duration,
    /// From when the renewal before it left to its answer.
    pub(crate) age: Duration,
}

/// Guards, and a task that watches them; they end with this value.
pub(crate) struct Held {
    guards: Arc<Vec<(usize, Guard)>>,
    _watch: JoinSet<()>,
    renewals: mpsc::UnboundedReceiver<Renewal>,
}

impl Held {
    /// Takes a lock for `lease` on each key; `keys` are by shard.
    pub(crate) async fn start(
        client: &Client,
        keys: &[Vec<String>],
        lease: Duration,
    ) -> Result<Self, Failure> {
        let mut guards = Vec::new();
        for (shard, keys) in keys.iter().enumerate() {
            for key in keys {
                guards.push((shard, client.lock(key).lease(lease).acquire().await?));
            }
        }
        let guards = Arc::new(guards);
        let (sender, renewals) = mpsc::unbounded_channel();
        let mut watch = JoinSet::new();
        watch.spawn(watch_over(guards.clone(), lease, sender));
        Ok(Self {
            guards,
            _watch: watch,
            renewals,
        })
    }

    /// Whether every lock is held.
    pub(crate) fn all(&self) -> bool {
        self.guards.iter().all(|(_, guard)| guard.is_held())
    }

    /// The renewals seen since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Renewal> {
        std::iter::from_fn(|| self.renewals.try_recv().ok()).collect()
    }
}

/// Sees a renewal's answer by the deadline it moves, which counts from when it was sent.
async fn watch_over(
    guards: Arc<Vec<(usize, Guard)>>,
    lease: Duration,
    renewals: mpsc::UnboundedSender<Renewal>,
) {
    let believed = lease - lease * limits::RHO_PERMILLE / 1000 - limits::MARGIN;
    let mut deadlines: Vec<_> = guards.iter().map(|(_, guard)| guard.deadline()).collect();
    let mut look = interval(LOOK);
    loop {
        look.tick().await;
        for ((shard, guard), known) in guards.iter().zip(&mut deadlines) {
            let deadline = guard.deadline();
            if deadline == *known {
                continue;
            }
            let since_sent = believed.saturating_sub(guard.remaining());
            let age = deadline.since(*known) + since_sent;
            let latency = since_sent.max(age.saturating_sub(lease * DUE.0 / DUE.1));
            let renewal = Renewal {
                shard: *shard,
                due: now() - latency,
                latency,
                age,
            };
            *known = deadline;
            if renewals.send(renewal).is_err() {
                return;
            }
        }
    }
}
