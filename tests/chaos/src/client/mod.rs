//! A process that takes locks, works under them, and writes down what it saw; to be stopped and
//! killed at any time.

mod holder;
mod tap;
mod worker;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use rand::{SeedableRng, rngs::StdRng};
use ringfence_client::Client;
use tokio::time::sleep;
use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _};

pub use holder::{Asked, Holder};
pub use tap::{Granted, Tap};

use crate::{history::Recorder, resource::Resource};

/// Who is to ask for locks at a time, in one process.
const WORKERS: u64 = 2;

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
    /// Redis servers.
    #[arg(long = "redis", required = true)]
    pub urls: Vec<String>,
    /// Locks to be taken.
    #[arg(long = "key", required = true)]
    pub keys: Vec<String>,
    /// Their lease, in milliseconds.
    #[arg(long)]
    pub lease_ms: u64,
}

/// Works until killed.
///
/// # Errors
///
/// The history or the resource cannot be reached.
pub async fn run(args: ClientArgs) -> std::io::Result<()> {
    fail_with_any_task();
    let recorder = Arc::new(Recorder::create(
        &args.dir,
        &args.run,
        args.seed,
        args.process,
    )?);
    let tap = Tap::new(recorder.clone());
    let subscriber =
        tracing_subscriber::registry().with(tap.clone().with_filter(LevelFilter::DEBUG));
    // The only one: nobody else can have been first.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let client = connect(&args.urls).await;
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let seed = args.seed ^ u64::from(args.process) << 32 ^ number << 48;
        let holder = Holder {
            client: client.clone(),
            recorder: recorder.clone(),
            tap: tap.clone(),
            lease: Duration::from_millis(args.lease_ms),
        };
        let resource = Resource::connect(&args.resource).await?;
        workers.push(worker::run(
            holder,
            resource,
            &args.keys,
            StdRng::seed_from_u64(seed),
        ));
    }
    for ended in futures_util::future::join_all(workers).await {
        ended?;
    }
    Ok(())
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
async fn connect(urls: &[String]) -> Client {
    loop {
        match Client::builder().redis(urls).build().await {
            Ok(client) => return client,
            Err(error) => {
                eprintln!("not connected yet: {error}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}
