//! One hot account: under one lock, then from counters of more and more segments.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_client::{
    Client, Clock, Counters,
    counter::{Amount, Counter, CounterError, Terms},
};
use tokio::{signal::unix::Signal, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Args, DemoError, Time, audit, perform,
    progress::Progress,
    setting,
    stage::Stage,
    tally::{Tally, record},
};

mod report;

pub(super) use report::{HotReport, Row};

/// How long each part of the run is, at least.
const PART_MIN: Duration = Duration::from_millis(50);

/// Takes coins from one account, one way after the other.
pub(super) async fn demonstrate(
    args: &Args,
    time: Time,
    seed: u64,
    interrupt: &mut Signal,
) -> Result<HotReport, DemoError> {
    let parts = u32::try_from(args.segments.len())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    let args = Args {
        accounts: 1,
        length: (args.length / parts).max(PART_MIN),
        ..args.clone()
    };
    let progress = Progress::new(args.length);
    let stage = Stage::set(&args, time, seed).await?;
    let rows = rows(&args, &stage, seed, &progress, interrupt).await;
    progress.end();
    let setting = setting(&args, &stage, seed);
    let books = stage.clear().await;
    let mut rows = rows?;
    rows[0].lost_or_made = audit::audit(&books?).len() as i128;
    Ok(HotReport::new(&setting, rows))
}

async fn rows(
    args: &Args,
    stage: &Stage,
    seed: u64,
    progress: &Progress,
    interrupt: &mut Signal,
) -> Result<Vec<Row>, DemoError> {
    let locked = perform(args, stage, seed, progress, interrupt).await?;
    let mut tally = Tally::new();
    let seconds = locked.ended.since(locked.began).as_secs_f64();
    locked
        .phases
        .iter()
        .for_each(|phase| tally.add(&phase.tally));
    let mut rows = vec![Row::new(
        "one lock".into(),
        tally.deductions(),
        seconds,
        &tally.whole_us,
    )];
    for &segments in &args.segments {
        progress.say(&format!("{segments} segments"));
        rows.push(tokio::select! {
            biased;
            _ = interrupt.recv() => break,
            row = counted(args, stage, segments) => row?,
        });
    }
    Ok(rows)
}

/// What everybody who takes from a counter shares.
struct Shared {
    counters: Counters,
    counter: Counter,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    taken: AtomicU64,
}

/// Takes coins from a counter of so many segments.
async fn counted(args: &Args, stage: &Stage, segments: u32) -> Result<Row, DemoError> {
    let shared = Arc::new(open(args, stage.client(), stage, segments).await?);
    let began = stage.clock.now();
    let mut workers: JoinSet<_> = (0..args.workers).map(|_| take(shared.clone())).collect();
    tokio::select! {
        () = sleep(args.length) => {}
        () = shared.stop.cancelled() => {}
    }
    shared.stop.cancel();
    let mut tally = Tally::new();
    while let Some(worked) = workers.join_next().await {
        tally.add(&worked.expect("workers neither panic nor are aborted")?);
    }
    let seconds = stage.clock.now().since(began).as_secs_f64();
    let taken = shared.taken.load(Relaxed);
    let left = shared.counter.exact_balance().await?.available;
    let name = match segments {
        1 => "a counter of 1 segment".to_owned(),
        _ => format!("a counter of {segments} segments"),
    };
    let mut row = Row::new(name, taken, seconds, &tally.whole_us);
    row.lost_or_made = left + i128::from(taken) - i128::from(args.coins);
    Ok(row)
}

async fn open(
    args: &Args,
    client: &Client,
    stage: &Stage,
    segments: u32,
) -> Result<Shared, CounterError> {
    let counters = client.counters();
    let name = format!("demo {} {segments}", stage.run);
    let counter = counters.create(&name, Terms::default(), segments).await?;
    if args.coins > 0 {
        let coins = Amount::new(args.coins).expect("checked as it was read");
        counter.deposit(&counters.new_request(), coins).await?;
    }
    Ok(Shared {
        counters,
        counter,
        clock: stage.clock.clone(),
        stop: CancellationToken::new(),
        taken: AtomicU64::new(0),
    })
}

/// Takes a coin at a time until told to stop, or there are no more.
async fn take(shared: Arc<Shared>) -> Result<Tally, CounterError> {
    let mut tally = Tally::new();
    let one = Amount::new(1).expect("1 is an amount");
    while !shared.stop.is_cancelled() {
        let (id, asked) = (shared.counters.new_request(), shared.clock.now());
        match shared.counter.deduct(&id, one).await {
            Ok(()) => _ = shared.taken.fetch_add(1, Relaxed),
            Err(CounterError::Insufficient) => shared.stop.cancel(),
            Err(error) => {
                shared.stop.cancel();
                return Err(error);
            }
        }
        record(&mut tally.whole_us, asked, shared.clock.now());
    }
    Ok(tally)
}
