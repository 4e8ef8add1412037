//! One hot account: first under one lock, then in counters with more and more segments.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_client::{
    Clock, Counter, Counters,
    counter::{Amount, CounterError, Terms},
};
use tokio::{signal::unix::Signal, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Args, DemoError, Time, audit, perform,
    progress::Progress,
    report::Audit,
    stage::Stage,
    tally::{Tally, record},
};

mod report;

pub(super) use report::{HotReport, Row};

/// Shortest part of the run.
const PART_MIN: Duration = Duration::from_millis(50);

/// Coins in the account at the beginning: more than a run can take.
const COINS: i64 = 1_000_000_000_000;

/// How long a counter remembers requests: a long run forgets some during the run, as services do over days.
const REMEMBERED_MS: u64 = 10_000;

/// Takes coins from one account in several ways, one after the other.
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
        coins: COINS,
        length: (args.length / parts).max(PART_MIN),
        ..args.clone()
    };
    let progress = Progress::new(args.length);
    let stage = Stage::set(&args, time, seed).await?;
    let rows = rows(&args, &stage, seed, &progress, interrupt).await;
    progress.end();
    let place = stage.place.clone();
    let books = stage.clear().await;
    let (rows, audit) = (rows?, Audit::new(audit::audit(&books?)));
    Ok(HotReport::new(&args, (time, seed, place), rows, audit))
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
    let mut rows = vec![Row::new(None, tally.deductions(), seconds, &tally.whole_us)];
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

/// The state that all tasks of a counter share.
struct Shared {
    counters: Counters,
    counter: Counter,
    put_in: i64,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    taken: AtomicU64,
}

/// Takes coins from a counter with this many segments.
async fn counted(args: &Args, stage: &Stage, segments: u32) -> Result<Row, DemoError> {
    let shared = Arc::new(open(stage, segments).await?);
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
    let mut row = Row::new(Some(segments), taken, seconds, &tally.whole_us);
    row.coins_off = i128::from(shared.put_in) - i128::from(taken) - left;
    Ok(row)
}

/// A counter with this many segments and the same number of coins in each: none has to borrow, as in an account with
/// many deposits.
async fn open(stage: &Stage, segments: u32) -> Result<Shared, CounterError> {
    let counters = stage.client().counters();
    let name = format!("demo {} {segments}", stage.run);
    let terms = Terms {
        idempotency_for_ms: REMEMBERED_MS,
        idempotency_at_least_ms: REMEMBERED_MS / 10,
        ..Terms::in_memory()
    };
    let counter = counters.create(&name, terms, segments).await?;
    let account = counter.at_shards().expect("the client reaches its shards");
    let manifest = account.read_manifest().await?;
    let each = COINS / i64::from(segments);
    let amount = Amount::new(each).expect("there are more coins than segments");
    for segment in 0..segments {
        let mut ids = iter::repeat_with(|| counters.new_request());
        let id = ids.find(|id| manifest.home_of(id) == Some(segment));
        let id = id.expect("there is always another");
        counter.deposit(&id, amount).await?;
    }
    Ok(Shared {
        counters,
        counter,
        put_in: each * i64::from(segments),
        clock: stage.clock.clone(),
        stop: CancellationToken::new(),
        taken: AtomicU64::new(0),
    })
}

/// Takes one coin after the other until told to stop.
async fn take(shared: Arc<Shared>) -> Result<Tally, CounterError> {
    let mut tally = Tally::new();
    let one = Amount::new(1).expect("1 is an amount");
    while !shared.stop.is_cancelled() {
        let (id, asked) = (shared.counters.new_request(), shared.clock.now());
        match shared.counter.deduct(&id, one).await {
            Ok(_) => _ = shared.taken.fetch_add(1, Relaxed),
            Err(error) => {
                shared.stop.cancel();
                return Err(error);
            }
        }
        record(&mut tally.whole_us, asked, shared.clock.now());
    }
    Ok(tally)
}
