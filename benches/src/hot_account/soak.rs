//! One counter with the default terms for many minutes: whether the rate stays, how much memory the remembered ids take, and
//! whether any deduction is refused because the segments are full.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_client::{
    Client, Counter, Counters,
    counter::{Amount, CounterError, Terms, segment::Refusal},
};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::ask;
use serde::Serialize;

use super::{
    contenders::{self, Account, Contender, PUT_IN, Taker},
    measure::Row,
    servers::Servers,
    setup::{How, Log, Setup},
};
use crate::{Bound, Clocks, Common, Failure, Limit, Machine, Place, Spread, Timing, print_bounds};

/// Between two lines of the report.
const MINUTE: Duration = Duration::from_secs(60);

/// The set-up: a counter of four segments on one server without a log.
const SETUP: Setup = Setup::new(How::Counter, 4, 1, Log::Off);

/// A counter with the default terms.
struct Soaked {
    counters: Counters,
    counter: Counter,
    refused: AtomicU64,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    machine: Machine,
    tasks: usize,
    minutes: Vec<Minute>,
    bounds: Vec<Bound>,
}

#[derive(Debug, Serialize)]
struct Minute {
    deductions_per_s: f64,
    /// Processor time of the server per deduction, in microseconds: hardly depends on other work of the machine.
    server_us: f64,
    /// Memory that the server uses.
    server_mb: f64,
    /// Ids that the segments remember at the end of the minute.
    ids_kept: u64,
    /// Ids forgotten since the beginning.
    ids_forgotten: u64,
    /// Deductions refused in that minute, since a segment was full.
    refused: u64,
    /// Processors that were busy with neither the server nor this process.
    others: f64,
}

/// Soaks for `length`, rounded up to minutes, with so many tasks; writes the report.
pub(crate) async fn run(
    length: Duration,
    tasks: usize,
    place: Place,
    machine: Machine,
    common: &Common,
) -> Result<(), Failure> {
    let servers = Servers::start(&[SETUP], place).await?;
    let server = servers.redis(&SETUP);
    let soaked = Arc::new(Soaked::open(&servers).await?);
    let contender = Contender {
        setup: SETUP,
        account: soaked.clone(),
        reach: servers.reach(&SETUP),
        taken: Arc::default(),
    };
    let clocks = Clocks::of(&servers.pids(), &[std::process::id()])?;
    println!("{machine}\n{SETUP}, default terms, {tasks} tasks\n");
    println!("minute  deductions/s  server µs  server MB   ids kept  forgotten  refused");
    let mut row = Row::new(SETUP, (tasks, 1));
    let mut minutes: Vec<Minute> = Vec::new();
    for number in 1..=length.as_secs().div_ceil(MINUTE.as_secs()).max(1) {
        let timing = Timing {
            warm_up: Duration::ZERO,
            length: MINUTE,
        };
        let (from, taken) = (clocks.read()?, contender.taken.load(Relaxed));
        row.slice(&contender, timing, &servers).await?;
        let busy = clocks.read()?.server - from.server;
        let taken = contender.taken.load(Relaxed) - taken;
        // One for each deduction, and one for the deposit in each segment.
        let ids = contender.taken.load(Relaxed) + u64::from(SETUP.segments);
        let kept = ids_kept(server).await?;
        let minute = Minute {
            deductions_per_s: row.deductions_per_s.last().copied().unwrap_or_default(),
            server_us: busy.as_secs_f64() * 1e6 / taken.max(1) as f64,
            server_mb: used_memory(server).await? as f64 / 1e6,
            ids_kept: kept,
            ids_forgotten: ids.saturating_sub(kept),
            refused: soaked.refused.swap(0, Relaxed),
            others: row.others.last().copied().unwrap_or_default(),
        };
        println!(
            "{number:6}  {:12.0}  {:9.2}  {:9.0}  {:9}  {:9}  {:7}",
            minute.deductions_per_s,
            minute.server_us,
            minute.server_mb,
            minute.ids_kept,
            minute.ids_forgotten,
            minute.refused
        );
        minutes.push(minute);
    }
    println!();
    contenders::audit(&[contender]).await?;
    let others = Spread::of(minutes.iter().map(|minute| minute.others));
    let bounds = bounds(&minutes);
    print_bounds(&bounds, minutes.len(), others);
    let report = Report {
        bench: "hot-account --soak",
        machine,
        tasks,
        minutes,
        bounds,
    };
    common.write("hot-account.soak", &report)
}

/// The rate is flat, and nothing is refused.
fn bounds(minutes: &[Minute]) -> Vec<Bound> {
    let rates = Spread::of(minutes.iter().map(|minute| minute.deductions_per_s));
    let refused: u64 = minutes.iter().map(|minute| minute.refused).sum();
    [
        (
            "slowest minute / median",
            Limit::AtLeast(0.9),
            rates.min / rates.median,
        ),
        (
            "fastest minute / median",
            Limit::AtMost(1.1),
            rates.max / rates.median,
        ),
        ("deductions refused", Limit::AtMost(0.0), refused as f64),
    ]
    .into_iter()
    .map(|(of, limit, measured)| Bound::new(of.into(), limit, Spread::of([measured]), None))
    .collect()
}

/// Ids that all segments on `server` remember.
async fn ids_kept(server: &RedisServer) -> Result<u64, Failure> {
    let segments: Vec<String> = ask(server, &["KEYS", "*:seg"]).await;
    let mut kept = 0;
    for segment in segments {
        let fields = ["HMGET", &segment, "newest_count", "packed_count", "open"];
        let counts: Vec<Option<u64>> = ask(server, &fields).await;
        kept += counts.into_iter().flatten().sum::<u64>();
    }
    Ok(kept)
}

async fn used_memory(server: &RedisServer) -> Result<u64, Failure> {
    let info: String = ask(server, &["INFO", "memory"]).await;
    let used = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used
        .ok_or("the server does not say how much memory it uses")?
        .trim()
        .parse()?)
}

impl Soaked {
    async fn open(servers: &Servers) -> Result<Self, Failure> {
        let client = Client::builder()
            .redis(servers.reach(&SETUP).redis)
            .servers_are_new(true);
        let counters = client.build().await?.counters();
        let counter = counters
            .create("soaked", Terms::in_memory(), SETUP.segments)
            .await?;
        contenders::fill(&counters, &counter, SETUP.segments).await?;
        Ok(Self {
            counters,
            counter,
            refused: AtomicU64::new(0),
        })
    }
}

#[async_trait]
impl Account for Soaked {
    /// A deduction that a full segment refuses is counted, and made as a new request later.
    async fn deduct(&self, _taker: Taker) -> Result<(), Failure> {
        let one = Amount::new(1).expect("1 is an amount");
        loop {
            match self.counter.deduct(&self.counters.new_request(), one).await {
                Err(CounterError::Refused(Refusal::TooManyIds { retry_after_ms, .. })) => {
                    self.refused.fetch_add(1, Relaxed);
                    tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
                }
                done => return Ok(done.map(drop)?),
            }
        }
    }

    /// Nothing: the default terms are to do without a sweep.
    async fn keep(&self, _takers: usize) {
        std::future::pending().await
    }

    async fn left(&self) -> Result<i128, Failure> {
        let left = self.counter.exact_balance().await?.available;
        // Of what was put in, the rest did not fit the segments evenly.
        Ok(left + i128::from(PUT_IN % i64::from(SETUP.segments)))
    }
}
