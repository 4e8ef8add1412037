//! A process that takes locks, works under them, and writes down what it saw; to be stopped and
//! killed at any time.

mod holder;
mod latches;
mod leader;
mod sets;
mod tap;
mod worker;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use clap::Args;
use futures_util::{FutureExt as _, future::try_join_all};
use rand::{SeedableRng, rngs::StdRng};
use ringfence_client::{Client, Coordinators, Namespace};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _};

pub use holder::{AnyGuard, Asked, Holder};
pub use sets::{AskedSet, Patience};
pub use tap::{Granted, Tap};

use crate::{
    counters::{Desk, Log},
    election,
    history::Recorder,
    ledger,
    resource::Resource,
};

/// Who is to ask for locks at a time, in one process.
const WORKERS: u64 = 4;

/// How a client process is started.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Where histories are written.
    #[arg(long)]
    pub dir: PathBuf,
    /// Name of the run.
    #[arg(long)]
    pub run: String,
    /// What all choices are made from.
    #[arg(long)]
    pub seed: u64,
    /// Number of this process.
    #[arg(long)]
    pub process: u32,
    /// The protected resource's socket.
    #[arg(long)]
    pub resource: PathBuf,
    /// Servers.
    #[arg(long = "redis", required_unless_present = "coordinators")]
    pub urls: Vec<String>,
    /// Coordinators, instead of servers.
    #[arg(long = "coordinator", conflicts_with = "urls")]
    pub coordinators: Vec<String>,
    /// Locks to be taken.
    #[arg(long = "key", required = true)]
    pub keys: Vec<String>,
    /// Their lease, in milliseconds.
    #[arg(long)]
    pub lease_ms: u64,
    /// How long a lock that was given back is kept for whoever comes next in this process, in
    /// milliseconds; not at all if not said.
    #[arg(long)]
    pub linger_ms: Option<u64>,
    /// The longest critical section, in milliseconds.
    #[arg(long)]
    pub section_ms: u64,
}

/// Works until it is killed or gets SIGTERM. After SIGTERM it returns to `main` and closes nothing.
///
/// # Errors
///
/// The history or the resource cannot be reached.
pub async fn run(args: ClientArgs) -> std::io::Result<()> {
    let mut told_to_end = signal(SignalKind::terminate())?;
    tokio::select! {
        failed = work(args) => failed,
        _ = told_to_end.recv() => Ok(()),
    }
}

async fn work(args: ClientArgs) -> std::io::Result<()> {
    fail_with_any_task();
    let recorder = Arc::new(Recorder::create(
        &args.dir,
        &args.run,
        args.seed,
        args.process,
    )?);
    let tap = match args.coordinators.is_empty() {
        true => Tap::new(recorder.clone()),
        false => Tap::over_the_service(recorder.clone()),
    };
    let subscriber =
        tracing_subscriber::registry().with(tap.clone().with_filter(LevelFilter::DEBUG));
    // The only one: nobody else can have been first.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let client = connect(&args).await;
    let holder = Holder {
        client,
        recorder,
        tap,
        lease: Duration::from_millis(args.lease_ms),
        process: args.process,
        lingers: args.linger_ms.is_some(),
    };
    let section_max = Duration::from_millis(args.section_ms);
    let resource = async || Resource::connect(&args.resource).await;
    let random = |number: u64| {
        StdRng::seed_from_u64(args.seed ^ u64::from(args.process) << 32 ^ number << 48)
    };
    let keys = args.keys.iter().filter(|key| !election::has(key));
    let keys: Vec<_> = keys.cloned().collect();
    let in_sets = keys.iter().filter(|key| crate::sets::has(key));
    let in_sets: Vec<_> = in_sets.cloned().collect();
    // Processes whose numbers follow on each other begin far apart.
    let own = args.process as usize;
    let next = AtomicUsize::new(own * worker::alone(&keys) * 5 / 13);
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let (holder, random) = (holder.clone(), random(number));
        let resource = resource().await?;
        let worker = worker::run(holder, resource, section_max, &keys, own, &next, random);
        workers.push(worker.boxed_local());
    }
    let (of_sets, random_of_sets) = (holder.clone(), random(WORKERS));
    let of_sets = sets::run(
        of_sets,
        resource().await?,
        section_max.min(crate::sets::SECTION),
        &in_sets,
        random_of_sets,
    );
    workers.push(of_sets.boxed_local());
    if !args.coordinators.is_empty() {
        let log = Log::create(&args.dir, args.process)?;
        let desk = Desk::open(&holder.client, 0, log);
        let latches = latches::run(desk, args.process, random(WORKERS + 2));
        workers.push(latches.boxed_local());
    }
    let leader = leader::run(holder, resource().await?, random(WORKERS + 1));
    workers.push(leader.boxed_local());
    try_join_all(workers).await.map(drop)
}

/// A task that panics would go unnoticed: the others go on without it.
fn fail_with_any_task() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// A client, as soon as there can be one: servers may be down when a process starts.
async fn connect(args: &ClientArgs) -> Client {
    loop {
        let mut builder = match args.coordinators.is_empty() {
            // Of servers that have just lost all, no other is to be founded.
            true => Client::builder()
                .servers(&args.urls)
                .existing_topology(true),
            false => Client::builder().coordinators(Coordinators::new(&args.coordinators)),
        };
        if let Some(linger_ms) = args.linger_ms {
            for namespace in [Namespace::default().as_str(), ledger::NAMESPACE] {
                builder = builder.linger(namespace, Duration::from_millis(linger_ms));
            }
        }
        match builder.build().await {
            Ok(client) => return client,
            Err(error) => {
                eprintln!("not connected yet: {error}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}
