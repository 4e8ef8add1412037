//! Shards that things are done to, the topology kept elsewhere, and clients in this process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_chaos::{
    client::{Holder, Tap},
    history::{Deed, Fault, History, Kind, Phase, Recorder},
    ledger,
    run::{Member, Step},
};
use ringfence_client::{Client, Removal};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Proxy, Whose};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tracing::{Subscriber, subscriber::DefaultGuard};
use tracing_subscriber::{
    Layer,
    filter::LevelFilter,
    layer::{Context, SubscriberExt as _},
};

/// Long enough for whatever a slow machine takes, well before anybody's belief ends.
pub(crate) const LEASE: Duration = Duration::from_secs(12);
pub(crate) const KEY: &str = "key";
const SHARD: &str = "a";

pub(crate) struct Stage {
    dir: TempDir,
    _home: RedisServer,
    /// What is between the record of the topology and all processes.
    pub(crate) home: Proxy,
    pub(crate) members: Vec<Member>,
    lease: Duration,
    /// How long a view of the topology is believed, if shards may be removed without asking. Leases may last as long.
    view: Option<Duration>,
    nemesis: Recorder,
    tap: Tap,
    heard: mpsc::UnboundedReceiver<String>,
    processes: AtomicU32,
    /// Ends the tap when it is dropped.
    _subscriber: DefaultGuard,
}

impl Stage {
    /// One shard.
    pub(crate) async fn set() -> Self {
        Self::of(1, LEASE).await
    }

    /// So many shards, and locks taken for `lease`.
    pub(crate) async fn of(shards: u64, lease: Duration) -> Self {
        Self::with(shards, lease, None).await
    }

    /// The same, where a shard may be removed once no process believes in a view of before, after `view`.
    pub(crate) async fn leased(shards: u64, lease: Duration, view: Duration) -> Self {
        Self::with(shards, lease, Some(view)).await
    }

    async fn with(shards: u64, lease: Duration, view: Option<Duration>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recorder = |process| Recorder::create(dir.path(), "baseline", 0, process).unwrap();
        let (nemesis, engine) = (recorder(0), recorder(1));
        let tap = Tap::new(Arc::new(engine));
        let (told, heard) = mpsc::unbounded_channel();
        let subscriber = tracing_subscriber::registry()
            .with(tap.clone().with_filter(LevelFilter::DEBUG))
            .with(Listener(told).with_filter(LevelFilter::DEBUG));
        let mut members = Vec::new();
        for seed in 1..=shards {
            members.push(Member::start(seed).await);
        }
        let home = RedisServer::spawn().await.unwrap();
        Self {
            home: Proxy::start(home.port()).await,
            _home: home,
            members,
            lease,
            view,
            nemesis,
            tap,
            heard,
            processes: AtomicU32::new(2),
            _subscriber: tracing::subscriber::set_default(subscriber),
            dir,
        }
    }

    /// Another client, as a process of its own in the history; connected in every way it will need.
    pub(crate) async fn holder(&self) -> Holder {
        let builder = Client::builder().redis(self.urls());
        let mut builder = builder.topology_at(&self.home.url());
        builder = builder.max_lease(self.view.unwrap_or(self.lease));
        if let Some(view) = self.view {
            builder = builder.removal(Removal::Leased).view_lease(view);
        }
        let has_replicas = self.members.len() >= ledger::REPLICAS as usize;
        if has_replicas {
            builder = builder.replicas(ledger::NAMESPACE, ledger::REPLICAS);
        }
        let client = builder.servers_are_new(true).build().await.unwrap();
        let holder = Holder {
            client,
            recorder: Arc::new(self.recorder()),
            tap: self.tap.clone(),
            lease: self.lease,
            process: 0,
            lingers: false,
        };
        let place = if has_replicas { "ledger" } else { "default" };
        let key = format!("{place}/of its own/{}", self.processes.load(Relaxed));
        take(&holder, &key).await;
        holder
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.iter().map(Member::url).collect()
    }

    /// What is between the first shard and its clients.
    pub(crate) fn proxy(&self) -> &Proxy {
        self.members[0].proxy()
    }

    pub(crate) fn recorder(&self) -> Recorder {
        let process = self.processes.fetch_add(1, Relaxed);
        Recorder::create(self.dir.path(), "baseline", 0, process).unwrap()
    }

    /// Kills the shard, and starts it with nothing.
    pub(crate) async fn restart_empty(&mut self) {
        self.suffer(Fault::RestartEmpty).await;
    }

    /// Has `fault` happen to the shard.
    pub(crate) async fn suffer(&mut self, fault: Fault) {
        let step = Step {
            after: Duration::ZERO,
            fault,
            lasts: Duration::ZERO,
            dice: 0,
        };
        self.begin(step.fault);
        self.members[0].suffer(&step).await;
        self.end(step.fault);
    }

    /// Records that `fault` begins at the shard.
    pub(crate) fn begin(&self, fault: Fault) {
        self.record(fault, Phase::Invoke);
    }

    /// Records that it is over.
    pub(crate) fn end(&self, fault: Fault) {
        self.record(fault, Phase::Ok);
    }

    fn record(&self, fault: Fault, phase: Phase) {
        self.nemesis.record(Deed {
            fault: Some(fault),
            shard: Some(SHARD.into()),
            ..Deed::ended(1, Kind::Nemesis, phase)
        });
    }

    /// Whatever engines have said is not heard any more.
    pub(crate) fn forget(&mut self) {
        while self.heard.try_recv().is_ok() {}
    }

    /// Waits until an engine says `what` of a lease, or has said it.
    pub(crate) async fn hear(&mut self, what: &str) {
        while self.heard.recv().await.unwrap() != what {}
    }

    pub(crate) fn history(self) -> History {
        History::read(self.dir.path()).unwrap()
    }
}

/// Takes a free lock and gives it back. Returns its nonce.
async fn take(holder: &Holder, key: &str) -> String {
    let asked = holder.acquire(key, None).await.unwrap();
    let nonce = asked.of_grant.nonce.clone();
    holder.release(asked).await;
    nonce.expect("recorded with each grant")
}

/// The connections of a client, of one lane or of all (`""`).
pub(crate) async fn connections(holder: &Holder) -> impl Fn(&str) -> Whose {
    let nonce = take(holder, "ledger/its name").await;
    let (client, _) = nonce.split_once(':').expect("client:sequence");
    let client = client.to_owned();
    move |lane| Whose::Named(format!("rf:{client}:{lane}"))
}

/// Passes on what engines say of leases.
struct Listener(mpsc::UnboundedSender<String>);

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "ringfence::lease" {
            event.record(
                &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                    if field.name() == "message" {
                        // Nobody listens any more: the stage is gone.
                        let _ = self.0.send(format!("{value:?}"));
                    }
                },
            );
        }
    }
}
