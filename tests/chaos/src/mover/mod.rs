//! A process that resizes the ring, and may be told to die or to stop amid that.

mod choose;
mod halt;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use clap::{ArgAction, Args};
use ringfence_client::{BootClock, Clock as _, ResizeError, ShardId, TopologyError};
use ringfence_coordinator::{
    ids::ClientId,
    mover::{Mover, Observer, Pace, Parts, Progress},
    name::KeyPrefix,
    random::Random,
    shard::ServerOptions,
    topology::{
        DecommissionError, Swap, Topology, TopologyStore as _,
        server::{Founding, ServerTopology, connect},
    },
};
use tokio::{sync::watch, time::sleep};
use tracing_subscriber::filter::LevelFilter;

use self::choose::choose;
pub use self::halt::Halt;
use crate::history::{Deed, Kind, Phase, Recorder, Resized};

/// Half of what a fourth shard gets of all replicas, so that there is more than one batch.
const SLOTS_IN_FLIGHT: usize = 1_536;
/// Short: so there are many resizes in a run.
const PAUSE: Duration = Duration::from_millis(4);
/// Before what failed is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// How a mover process is started.
#[derive(Args, Clone, Debug)]
pub struct MoverArgs {
    /// Where histories are written.
    #[arg(long)]
    pub dir: PathBuf,
    /// Name of the run.
    #[arg(long)]
    pub run: String,
    /// What the run's choices are made from.
    #[arg(long)]
    pub seed: u64,
    /// Number of this process.
    #[arg(long)]
    pub process: u32,
    /// Every server that may be a shard; the nth is called by the nth letter.
    #[arg(long = "redis", required = true)]
    pub urls: Vec<String>,
    /// Prefix of all keys.
    #[arg(long, default_value = "ringfence", value_parser = KeyPrefix::new, allow_hyphen_values = true)]
    pub prefix: KeyPrefix,
    /// What a resize is chosen from, to be begun if none is under way. If not said none is begun.
    #[arg(long)]
    pub begin: Option<u64>,
    /// A slot that the begun resize moves to another shard, instead of a chosen resize.
    #[arg(long, requires = "begin")]
    pub slot: Option<u32>,
    /// A shard that failed for good: it is removed by force first, if it is a member yet.
    #[arg(long)]
    pub failed: Option<ShardId>,
    /// Turns the resize under way back first.
    #[arg(long, action = ArgAction::Set, default_value_t = false)]
    pub turn_back: bool,
    /// Where it ends or stops itself: `kill:sealed:1`.
    #[arg(long)]
    pub halt: Option<Halt>,
}

/// Begins a resize if it is to, and moves slots until the one under way is over.
///
/// # Errors
///
/// The history cannot be written, or it cannot go on, for a reason that does not pass.
pub async fn run(args: MoverArgs) -> io::Result<()> {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(io::stderr)
        .init();
    let recorder = Recorder::create(&args.dir, &args.run, args.seed, args.process)?;
    let store = join(&args.urls, &args.prefix)
        .await
        .map_err(io::Error::other)?;
    if let Some(id) = &args.failed {
        let removed = remove_by_force(&store, id).await;
        removed.map_err(io::Error::other)?;
    }
    let resize = Deed::invoke(recorder.next_op(), Kind::Resize);
    let record = persistently(async || prepare(&store, &args, &recorder).await).await;
    let record = match record {
        Ok(record) => record,
        Err(error) => return refused(&recorder, resize, &error),
    };
    let reason = record.goal.as_ref().map(ToString::to_string);
    recorder.record(Deed {
        reason: reason.clone(),
        ..resize.clone()
    });
    let observer = args.halt.map_or_else(Observer::default, Halt::observer);
    let pace = Pace {
        slots_in_flight: SLOTS_IN_FLIGHT,
        pause: PAUSE,
    };
    let mover = mover(store, pace, observer);
    let resized = tokio::select! {
        resized = mover.run() => resized.map_err(io::Error::other)?,
        () = tell(mover.progress()) => unreachable!("it tells until it is dropped"),
    };
    recorder.record(Deed {
        phase: Phase::Ok,
        resized: Some(Resized {
            slots: resized.slots_moved.into(),
            locks: resized.locks_carried,
        }),
        reason,
        ..resize
    });
    Ok(())
}

/// Writes to the log how far the moves are.
async fn tell(mut progress: watch::Receiver<Progress>) {
    let mut before = Progress::default();
    while progress.changed().await.is_ok() {
        let now = Progress {
            left: None,
            ..progress.borrow_and_update().clone()
        };
        if now != before {
            tracing::info!(?now);
        }
        before = now;
    }
}

/// A mover of slots between the servers of `store`.
pub fn mover(store: Arc<ServerTopology>, pace: Pace, observer: Observer) -> Mover {
    Mover::new(Parts {
        dial: store.clone(),
        store,
        clock: Arc::new(BootClock),
        random: Arc::new(Random::from_os()),
        pace,
        servers_are_new: false,
        observer,
    })
}

/// The change is not possible now; the report tells that.
fn refused(recorder: &Recorder, resize: Deed, error: &ResizeError) -> io::Result<()> {
    let reason = Some(error.to_string());
    let phase = Phase::Fail;
    recorder.record(Deed {
        phase,
        reason,
        ..resize
    });
    Ok(())
}

/// The store of the topology under `prefix` on the servers at `urls`, as soon as it can be found.
///
/// # Errors
///
/// There is none, or it cannot be read.
pub async fn join(
    urls: &[String],
    prefix: &KeyPrefix,
) -> Result<Arc<ServerTopology>, TopologyError> {
    loop {
        let founding = Founding {
            allowed: false,
            ..Founding::default()
        };
        match store(urls, prefix, founding).await {
            Err(error) if error.is_retryable() => eprintln!("not joined yet: {error}"),
            joined => return joined,
        }
        sleep(AGAIN).await;
    }
}

/// Founds a topology of the servers at `urls`.
///
/// # Errors
///
/// It is not founded.
pub(crate) async fn found(
    urls: &[String],
    founding: Founding,
) -> Result<Arc<ServerTopology>, TopologyError> {
    store(urls, &KeyPrefix::default(), founding).await
}

async fn store(
    urls: &[String],
    prefix: &KeyPrefix,
    founding: Founding,
) -> Result<Arc<ServerTopology>, TopologyError> {
    let engine = ClientId(Random::from_os().id());
    let seeds = urls.iter().map(|url| options(url, prefix, engine));
    let random = Arc::new(Random::from_os());
    let joined = connect(
        seeds.collect(),
        founding,
        Arc::new(BootClock),
        random,
        engine,
    );
    joined.await.map(|joined| joined.store)
}

fn options(url: &str, prefix: &KeyPrefix, engine: ClientId) -> ServerOptions {
    let address = url.parse().expect("the nemesis gives what it made itself");
    ServerOptions::new(address, engine, prefix.clone())
}

/// Declares the shard dead, unless that was done.
async fn remove_by_force(store: &ServerTopology, id: &ShardId) -> Result<(), DecommissionError> {
    loop {
        match declare_dead(store, id).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(DecommissionError::Topology(error)) if error.is_retryable() => {
                eprintln!("not removed yet: {error}");
                sleep(AGAIN).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the record says so now.
async fn declare_dead(store: &ServerTopology, id: &ShardId) -> Result<bool, DecommissionError> {
    // A recovery of the record that another process began waits for the shard, unless somebody attests that it is dead.
    let record = store.recover(&[id.to_string()]).await?;
    if record.shard(id).is_none() {
        return Ok(true);
    }
    let next = record.decommission(id, BootClock.unix())?;
    Ok(matches!(
        store.swap(record.version(), &next).await?,
        Swap::Done
    ))
}

async fn persistently<T>(
    attempt: impl AsyncFn() -> Result<T, ResizeError>,
) -> Result<T, ResizeError> {
    loop {
        match attempt().await {
            Err(ResizeError::Topology(error)) if error.is_retryable() => {
                eprintln!("not begun yet: {error}");
                sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

/// Turns back or begins what it is told to. Answers the record then.
async fn prepare(
    store: &ServerTopology,
    args: &MoverArgs,
    recorder: &Recorder,
) -> Result<Arc<Topology>, ResizeError> {
    loop {
        let record = store.load().await?;
        let next = match (record.goal.is_some(), args.begin) {
            (true, _) if args.turn_back => record.abort(BootClock.unix())?,
            (true, _) | (false, None) => return Ok(record),
            (false, Some(dice)) => {
                let change = choose(store, &record, args, dice).await?;
                record.begin(change, BootClock.unix())?
            }
        };
        if let Swap::Done = store.swap(record.version(), &next).await? {
            if record.goal.is_none() {
                recorder.record(Deed::ended(recorder.next_op(), Kind::Begin, Phase::Ok));
            }
            return Ok(Arc::new(next));
        }
    }
}
