//! `ringfence demo`: coins are deducted under locks, and an audit looks for every one of them.
//!
//! | file | content |
//! |---|---|
//! | `stage.rs` | the stage: shards, a bank, a clock |
//! | `worker.rs` | a worker that deducts |
//! | `zipf.rs` | the choice of the account |
//! | `locks.rs` | each account's lock |
//! | `resize.rs` | a shard joins during the run, and leaves again |
//! | `hot/` | one account, from one lock to a counter of many segments |
//! | `held.rs` | locks that are held during the resize |
//! | `tally.rs`, `phases.rs` | the counts: before, during and after the resize |
//! | `bank.rs` | the resource's side: balances, tokens, journal |
//! | `audit.rs` | the journal against the balances |
//! | `report.rs`, `progress.rs` | the output |
//! | `main.rs` | a binary that has the demo alone, and so is built quickly |
//! | `arguments.rs`, `console.rs`, `failure.rs`, `redact.rs`, `table.rs` | arguments, output and errors, here and in the command `ringfence` |

mod args;
pub mod arguments;
mod audit;
mod bank;
pub mod console;
pub mod failure;
mod held;
mod hot;
mod locks;
mod phases;
mod progress;
pub mod redact;
mod report;
mod resize;
mod stage;
pub mod table;
mod tally;
mod worker;
mod zipf;

use std::{
    fmt, io,
    process::ExitCode,
    sync::{Arc, atomic::AtomicU64},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use ringfence_client::{
    AcquireError, BuildError, Client, ReshapeError, ShardError, counter::CounterError,
};
use ringfence_coordinator::spawn::SpawnError;
use serde::Serialize;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

pub use args::Args;
use args::Time;
use bank::BankError;
use failure::{FAILED, Failure};
use locks::{Key, Locks, fair_shares};
use phases::Phases;
use progress::Progress;
use report::{Report, Run, Setting};
use resize::{Course, Resizes};
use stage::Stage;
use worker::{Shared, WorkError, Worker};
use zipf::Zipf;

/// The reason why there is no report.
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
    #[error(transparent)]
    Counter(#[from] CounterError),
    /// The first lock was not granted.
    #[error("no lock was granted")]
    Lock(#[from] AcquireError),
    /// A shard grants nothing, and not because it is new.
    #[error("shard {shard}")]
    Shard {
        /// The shard.
        shard: String,
        /// The cause.
        source: ShardError,
    },
    #[error("the ring cannot be resized")]
    Resize(#[from] ReshapeError),
    #[error("interrupted before the first lock was granted")]
    Interrupted,
    #[error("cannot start a runtime")]
    Runtime(#[from] io::Error),
    #[error("cannot write to stdout")]
    Unshown(#[source] io::Error),
}

/// Runs the demo and prints its report. Exit code 1 if a coin was lost, or a resize failed.
///
/// # Errors
///
/// There is no report.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    demo(args).map_err(|error| Failure::new(FAILED, error))
}

fn demo(args: &Args) -> Result<ExitCode, DemoError> {
    let time = args.time();
    // Short enough to type it again.
    let drawn = || u64::from(rand::make_rng::<StdRng>().random::<u32>());
    let seed = args.seed.unwrap_or_else(drawn);
    runtime(time)?.block_on(async {
        if args.hot {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let report = hot::demonstrate(args, time, seed, &mut interrupt).await?;
            tell(args, &report, report.ok())
        } else {
            let report = demonstrate(args, time, seed).await?;
            tell(args, &report, report.ok())
        }
    })
}

fn tell(
    args: &Args,
    report: &(impl Serialize + fmt::Display),
    ok: bool,
) -> Result<ExitCode, DemoError> {
    console::print(report, args.json).map_err(DemoError::Unshown)?;
    Ok(ExitCode::from(u8::from(!ok)))
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
    if !args.servers().is_empty() {
        let warnings = stage.client().warnings().iter();
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
    let fair_shares = fair_shares(stage.client());
    let (began, members) = (stage.clock.now(), fair_shares.len());
    let first = if args.resize { "before" } else { "whole" };
    shared.phases.begin(first, (members, members), began);
    let mut workers = start_workers(args, stage, &shared, seed);
    tracing::info!("the run has begun");
    let mut resizes = args.resize.then(Resizes::default);
    let course = Course {
        stage,
        shared: &shared,
        progress,
        length: args.length,
    };
    let resized = tokio::select! {
        biased;
        () = shared.stop.cancelled() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        resized = run_course(course, resizes.as_mut()) => resized,
        () = progress.follow(&*stage.clock, &shared.deductions) => Ok(()),
    };
    shared.stop.cancel();
    join(&mut workers).await?;
    resized?;
    Ok(Run {
        began,
        ended: stage.clock.now(),
        phases: shared.phases.take(),
        fair_shares,
        resizes,
    })
}

/// Waits until the duration of the run is over, and the resizes too.
async fn run_course(course: Course<'_>, resizes: Option<&mut Resizes>) -> Result<(), DemoError> {
    match resizes {
        Some(resizes) => resizes.carry_out(course).await,
        None => {
            sleep(course.length).await;
            Ok(())
        }
    }
}

/// The state that the workers share.
fn share(args: &Args, stage: &Stage) -> Result<Shared, AcquireError> {
    Ok(Shared {
        bank: stage.bank.clone(),
        clock: stage.clock.clone(),
        zipf: Zipf::new(args.accounts, args.skew),
        locks: Locks::new(&stage.run)?,
        exclusive: !args.unsafe_no_lock,
        stop: CancellationToken::new(),
        phases: Phases::new(),
        deductions: AtomicU64::new(0),
    })
}

/// Waits until a lock can be acquired.
async fn first_grant(stage: &Stage, locks: &Locks, progress: &Progress) -> Result<(), DemoError> {
    stage.every_shard_grants(progress).await?;
    locks
        .acquire(stage.client(), Key::Account(0))
        .await?
        .release()
        .await;
    Ok(())
}

fn start_workers(
    args: &Args,
    stage: &Stage,
    shared: &Arc<Shared>,
    seed: u64,
) -> JoinSet<Result<(), WorkError>> {
    let mut seeds = StdRng::seed_from_u64(seed);
    let clients = stage.clients.iter().cycle();
    let worker = |(number, client): (u32, &Client)| {
        let random = StdRng::from_rng(&mut seeds);
        Worker::new(number, client.clone(), shared.clone(), random).work()
    };
    (1..=args.workers).zip(clients).map(worker).collect()
}

/// Waits for every worker. Returns the error of one that failed, if any.
async fn join(workers: &mut JoinSet<Result<(), WorkError>>) -> Result<(), WorkError> {
    let mut all = Ok(());
    while let Some(worked) = workers.join_next().await {
        all = all.and(worked.expect("workers neither panic nor are aborted"));
    }
    all
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
