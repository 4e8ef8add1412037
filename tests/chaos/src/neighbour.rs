//! A process with a bad clock, which uses locks of its own at every shard: it must disturb nobody.

use std::{
    convert::Infallible,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use clap::Args;
use futures_util::future::join_all;
use ringfence_client::{BootClock, Client, Clock, Instant};
use tokio::time::sleep;

/// Enough that every shard has one of them.
const KEYS: usize = 16;
/// How long a lock is held, and waited for.
const HOLDS: Duration = Duration::from_secs(2);
/// How long the clock is right before and after each trouble.
const RIGHT: Duration = Duration::from_secs(2);
/// What it loses when its machine is paused, and gains later.
const STEP: Duration = Duration::from_millis(500);
/// It loses a fiftieth, for so many of these.
const SLOW_FOR: u32 = 40;
const SLOW_EVERY: Duration = Duration::from_millis(100);

/// How the process is started.
#[derive(Args, Clone, Debug)]
pub struct NeighbourArgs {
    /// Where logs are written.
    #[arg(long)]
    pub dir: PathBuf,
    /// Number of this process.
    #[arg(long)]
    pub process: u32,
    /// Servers.
    #[arg(long = "redis", required = true)]
    pub urls: Vec<String>,
}

/// A clock that loses time.
#[derive(Debug, Default)]
struct BadClock {
    lost_ns: AtomicU64,
    /// The last time that it showed: it stands still, and never goes back.
    shown_ns: AtomicU64,
}

impl BadClock {
    fn lose(&self, length: Duration) {
        self.lost_ns.fetch_add(length.as_nanos() as u64, Relaxed);
    }

    fn gain(&self, length: Duration) {
        self.lost_ns.fetch_sub(length.as_nanos() as u64, Relaxed);
    }
}

impl Clock for BadClock {
    fn now(&self) -> Instant {
        let now_ns = BootClock.now().as_nanos() - self.lost_ns.load(Relaxed);
        let shown_ns = self.shown_ns.fetch_max(now_ns, Relaxed);
        Instant::from_nanos(shown_ns.max(now_ns))
    }

    fn unix(&self) -> Duration {
        BootClock.unix()
    }
}

/// Works until it is killed.
///
/// # Errors
///
/// It cannot join.
pub async fn run(args: NeighbourArgs) -> io::Result<()> {
    let clock = Arc::new(BadClock::default());
    let builder = Client::builder().servers(&args.urls);
    let builder = builder.existing_topology(true).clock(clock.clone());
    let client = builder.build().await.map_err(io::Error::other)?;
    let holders = (0..KEYS).map(|number| hold(&client, format!("neighbour/{number}")));
    tokio::select! {
        _ = join_all(holders) => unreachable!("they go on"),
        never = go_wrong(&clock) => match never {},
    }
}

async fn hold(client: &Client, key: String) -> Infallible {
    loop {
        if let Ok(guard) = client.lock(&key).wait(HOLDS).acquire().await {
            sleep(HOLDS).await;
            drop(guard);
        }
    }
}

async fn go_wrong(clock: &BadClock) -> Infallible {
    loop {
        sleep(RIGHT).await;
        clock.lose(STEP);
        sleep(RIGHT).await;
        for _ in 0..SLOW_FOR {
            sleep(SLOW_EVERY).await;
            clock.lose(SLOW_EVERY / 50);
        }
        sleep(RIGHT).await;
        clock.gain(STEP);
    }
}
