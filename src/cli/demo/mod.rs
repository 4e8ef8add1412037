//! `ringfence demo`: coins are deducted under locks, and an audit looks for every one of them.
//!
//! | file | what |
//! |---|---|
//! | `stage.rs` | where it takes place: shards, a bank, a clock |
//! | `worker.rs` | somebody who deducts |
//! | `zipf.rs` | from which account |
//! | `locks.rs` | each account's lock |
//! | `bank.rs` | the resource's side: balances, tokens, journal |
//! | `audit.rs` | the journal against the balances |
//! | `report.rs`, `progress.rs` | what is printed |

mod args;
mod audit;
mod bank;
mod locks;
mod progress;
mod report;
mod stage;
mod worker;
mod zipf;

use std::{
    io,
    process::ExitCode,
    sync::{Arc, atomic::AtomicU64},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_client::{AcquireError, BuildError, ShardError};
use ringfence_coordinator::spawn::SpawnError;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

pub(crate) use args::Args;
use args::Time;
use bank::BankError;
use locks::Locks;
use progress::Progress;
use report::{Report, Run, Setting};
use stage::Stage;
use worker::{Shared, Tally, WorkError, Worker};
use zipf::Zipf;

use crate::cli::show;

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Bank(#[from] BankError),
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The first lock of all.
    #[error("no lock is granted")]
    Lock(#[from] AcquireError),
    /// A shard grants nothing, and not for being new.
    #[error("shard {shard}")]
    Shard {
        /// Which.
        shard: String,
        /// Why.
        source: ShardError,
    },
    #[error("interrupted before the first lock was granted")]
    Interrupted,
    #[error("cannot start a runtime")]
    Runtime(#[from] io::Error),
    #[error("cannot write to stdout")]
    Unshown(#[source] io::Error),
}

/// Runs the demo and prints what came of it. Exit code 1 if a coin was lost.
pub(crate) fn run(args: &Args) -> Result<ExitCode, DemoError> {
    let time = args.time();
    // Short enough to be typed again.
    let drawn = || u64::from(rand::make_rng::<StdRng>().random::<u32>());
    let seed = args.seed.unwrap_or_else(drawn);
    let report = runtime(time)?.block_on(demonstrate(args, time, seed))?;
    let lost = u8::from(!report.audit.ok);
    let shown = if args.json {
        let object = serde_json::to_string_pretty(&report);
        show(object.expect("numbers, texts and lists") + "\n")
    } else {
        show(report)
    };
    shown.map_err(DemoError::Unshown)?;
    Ok(ExitCode::from(lost))
}

fn runtime(time: Time) -> io::Result<Runtime> {
    use tokio::runtime::Builder;
    let mut builder = match time {
        Time::Real => Builder::new_multi_thread(),
        Time::Simulated => Builder::new_current_thread(),
    };
    builder
        .enable_all()
        .start_paused(time == Time::Simulated)
        .build()
}

async fn demonstrate(args: &Args, time: Time, seed: u64) -> Result<Report, DemoError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let progress = Progress::new(args.length);
    let stage = Stage::set(args, time, seed).await?;
    if !args.redis.is_empty() {
        let warnings = stage.client.warnings().iter();
        warnings.for_each(|warning| eprintln!("warning: {warning}"));
    }

    let run = perform(args, &stage, seed, &progress, &mut interrupt).await;
    progress.end();
    let setting = setting(args, &stage, seed);
    let books = stage.clear().await;
    let run = run?;
    Ok(Report::new(setting, &run, audit::audit(&books?)))
}

/// One run, from the first grant to the last release.
async fn perform(
    args: &Args,
    stage: &Stage,
    seed: u64,
    progress: &Progress,
    interrupt: &mut Signal,
) -> Result<Run, DemoError> {
    let shared = Arc::new(share(args, stage)?);
    tokio::select! {
        biased;
        _ = interrupt.recv() => return Err(DemoError::Interrupted),
        granted = first_grant(stage, &shared.locks, progress) => granted?,
    }
    let start = stage.clock.now();
    let mut workers = start_workers(args, &shared, seed);
    tracing::info!("the run has begun");
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => {}
        _ = interrupt.recv() => {}
        () = sleep(args.length) => {}
        () = progress.follow(&*stage.clock, &shared.deductions) => {}
    }
    shared.stop.cancel();
    let shards = shared.locks.shards().to_vec();
    let tally = join(&mut workers, shards.len()).await?;
    let seconds = stage.clock.now().since(start).as_secs_f64();
    Ok(Run {
        seconds,
        tally,
        shards,
    })
}

/// What the workers will share.
fn share(args: &Args, stage: &Stage) -> Result<Shared, AcquireError> {
    Ok(Shared {
        client: stage.client.clone(),
        bank: stage.bank.clone(),
        clock: stage.clock.clone(),
        zipf: Zipf::new(args.accounts, args.skew),
        locks: Locks::new(&stage.client, &stage.run, args.accounts)?,
        locked: !args.unsafe_no_lock,
        stop: CancellationToken::new(),
        deductions: AtomicU64::new(0),
    })
}

/// Waits until there is a lock to be had.
async fn first_grant(stage: &Stage, locks: &Locks, progress: &Progress) -> Result<(), DemoError> {
    stage.every_shard_grants(progress).await?;
    locks.acquire(&stage.client, 0).await?.release().await;
    Ok(())
}

fn start_workers(
    args: &Args,
    shared: &Arc<Shared>,
    seed: u64,
) -> JoinSet<Result<Tally, WorkError>> {
    let mut seeds = StdRng::seed_from_u64(seed);
    let worker = |number| Worker::new(number, shared.clone(), StdRng::from_rng(&mut seeds)).work();
    (1..=args.workers).map(worker).collect()
}

/// Waits for every worker: what they counted, or why one gave up.
async fn join(
    workers: &mut JoinSet<Result<Tally, WorkError>>,
    shards: usize,
) -> Result<Tally, WorkError> {
    let (mut sum, mut failed) = (Tally::new(shards), None);
    while let Some(worked) = workers.join_next().await {
        match worked.expect("workers neither panic nor are aborted") {
            Ok(tally) => sum.add(&tally),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sum), Err)
}

fn setting(args: &Args, stage: &Stage, seed: u64) -> Setting {
    Setting {
        time: args.time().as_str(),
        seed,
        place: stage.place.clone(),
        locked: !args.unsafe_no_lock,
        workers: args.workers,
        accounts: args.accounts,
        skew: args.skew,
    }
}
