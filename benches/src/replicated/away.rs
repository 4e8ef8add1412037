//! How long acquisitions take while a minority of the servers is away.

use std::{fmt, sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use ringfence_client::{Client, ReleaseAnswer};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Flow, Proxy, Whose};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::contenders::REPLICATED;
use crate::{Bound, Clocks, Common, Failure, Limit, Machine, Spread, print_bounds, print_table};

const TASKS: usize = 8;
/// Between two acquisitions of a task: the processors are not what is scarce.
const PAUSE: Duration = Duration::from_millis(4);
/// What is measured of each state.
const SLICE: Duration = Duration::from_secs(3);
/// The longest lease, and so the recovery period of a server that was restarted.
const MAX_LEASE: Duration = Duration::from_secs(10);
/// How long clients may take to learn that a server is away. Its slowest acquisition is told besides.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
/// The p99 of acquisitions with servers away, against that before.
const P99_MAX: f64 = 2.0;

/// Where a minority of the servers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Away {
    Nowhere,
    CutOff,
    Stopped,
    Killed,
    Recovering,
}

impl Away {
    const ALL: [Self; 5] = [
        Self::Nowhere,
        Self::CutOff,
        Self::Stopped,
        Self::Killed,
        Self::Recovering,
    ];
}

impl fmt::Display for Away {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nowhere => "all there, again",
            Self::CutOff => "cut off",
            Self::Stopped => "stopped",
            Self::Killed => "killed",
            Self::Recovering => "restarted, in their recovery period",
        })
    }
}

/// One state over as many servers: a value per round.
#[derive(Debug, Serialize)]
struct Row {
    servers: u32,
    away: Away,
    p50_ms: Vec<f64>,
    p99_ms: Vec<f64>,
    /// The p99 of the same round with all servers.
    healthy_p99_ms: Vec<f64>,
    /// The slowest acquisition until the state was known.
    slowest_ms: Vec<f64>,
    /// Processors busy with neither servers nor bench, while all servers were there.
    others: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    bounds: Vec<Bound>,
}

/// Measures over each number of servers, and publishes it.
pub(crate) async fn run(counts: &[u32], rounds: usize, common: &Common) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for &count in counts {
        rows.extend(over(count, rounds).await?);
    }
    let bounds = bounds(&rows);
    let report = Report {
        bench: "replicated-away",
        machine: Machine::here(),
        rows,
        bounds,
    };
    report.publish(rounds, common)
}

async fn over(count: u32, rounds: usize) -> Result<Vec<Row>, Failure> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(RedisServer::spawn().await?);
    }
    let mut proxies = Vec::new();
    for server in &servers[..count as usize / 2] {
        proxies.push(Proxy::start(server.port()).await);
    }
    let others = servers[proxies.len()..].iter().map(RedisServer::url);
    let urls: Vec<String> = proxies.iter().map(Proxy::url).chain(others).collect();
    let builder = Client::builder().redis(urls).max_lease(MAX_LEASE);
    let builder = builder.replicas(REPLICATED, count).servers_are_new(true);
    let load = Load::start(&builder.build().await?);
    let mut rows = Away::ALL.map(|away| Row {
        servers: count,
        away,
        p50_ms: Vec::new(),
        p99_ms: Vec::new(),
        healthy_p99_ms: Vec::new(),
        slowest_ms: Vec::new(),
        others: Vec::new(),
    });
    for round in 0..rounds {
        eprintln!("{count} servers, round {} of {rounds}", round + 1);
        load.until_all_replicas(count).await?;
        let pids: Vec<u32> = servers.iter().filter_map(RedisServer::pid).collect();
        let clocks = Clocks::of(&pids, &[std::process::id()])?;
        let from = clocks.read()?;
        let healthy = load.slice(SLICE).await;
        let others = from.others(&clocks.read()?);
        for row in &mut rows {
            row.others.push(others);
            for (server, proxy) in servers.iter_mut().zip(&proxies) {
                match row.away {
                    Away::Nowhere => {}
                    Away::CutOff => proxy.both(&Whose::All, Flow::Hold),
                    Away::Stopped => {
                        proxy.heal();
                        server.stop();
                    }
                    Away::Killed => {
                        server.cont();
                        server.kill();
                    }
                    Away::Recovering => server.restart().await?,
                }
            }
            let first = load.slice(FIRST_TIMEOUT).await;
            row.add(&healthy, &first, &load.slice(SLICE).await);
        }
    }
    load.stop().await?;
    Ok(rows.into())
}

impl Row {
    fn add(&mut self, healthy: &Times, first: &Times, then: &Times) {
        let ms = |micros: u64| micros as f64 / 1e3;
        self.p50_ms.push(ms(then.value_at_quantile(0.5)));
        self.p99_ms.push(ms(then.value_at_quantile(0.99)));
        self.healthy_p99_ms
            .push(ms(healthy.value_at_quantile(0.99)));
        self.slowest_ms.push(ms(first.max()));
    }

    fn ratio(&self) -> Spread {
        Spread::of_ratios(&self.p99_ms, &self.healthy_p99_ms)
    }
}

/// Acquisitions, in microseconds.
type Times = Histogram<u64>;

/// Tasks that acquire and release keys of their own.
struct Load {
    client: Client,
    tasks: JoinSet<Result<(), Failure>>,
    times: Arc<Mutex<Times>>,
}

impl Load {
    fn start(client: &Client) -> Self {
        let times = Arc::new(Mutex::new(times()));
        let mut tasks = JoinSet::new();
        for number in 0..TASKS {
            tasks.spawn(work(
                client.clone(),
                format!("task/{number}"),
                times.clone(),
            ));
        }
        Self {
            client: client.clone(),
            tasks,
            times,
        }
    }

    /// What is acquired from now on, for `length`.
    async fn slice(&self, length: Duration) -> Times {
        *self.times.lock() = times();
        sleep(length).await;
        std::mem::replace(&mut self.times.lock(), times())
    }

    /// Waits until every server grants.
    async fn until_all_replicas(&self, count: u32) -> Result<(), Failure> {
        let until = Instant::now() + 2 * MAX_LEASE;
        loop {
            let lock = self.client.lock("all").namespace(REPLICATED);
            let guard = lock.acquire().await?;
            sleep(Duration::from_millis(100)).await;
            if guard.replicas().live == count {
                return Ok(());
            }
            guard.release().await;
            if Instant::now() > until {
                return Err(format!("not all of {count} servers grant").into());
            }
        }
    }

    async fn stop(mut self) -> Result<(), Failure> {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(ended) => ended?,
                Err(aborted) if aborted.is_cancelled() => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Ok(())
    }
}

async fn work(client: Client, key: String, times: Arc<Mutex<Times>>) -> Result<(), Failure> {
    let lock = client.lock(&key).namespace(REPLICATED);
    loop {
        let begun = Instant::now();
        let guard = lock.acquire().await?;
        times
            .lock()
            .saturating_record(begun.elapsed().as_micros() as u64);
        match guard.release().await {
            ReleaseAnswer::Held | ReleaseAnswer::Unknown => sleep(PAUSE).await,
            other => return Err(format!("{key}: released, and it was {other:?}").into()),
        }
    }
}

fn times() -> Times {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order")
}

fn bounds(rows: &[Row]) -> Vec<Bound> {
    let again = |row: &Row| {
        let mut all = rows.iter();
        all.find(|other| other.servers == row.servers && other.away == Away::Nowhere)
            .map(Row::ratio)
    };
    let away = rows.iter().filter(|row| row.away != Away::Nowhere);
    away.map(|row| {
        let of = format!("p99 ÷ before: {} servers, {}", row.servers, row.away);
        Bound::new(of, Limit::AtMost(P99_MAX), row.ratio(), again(row))
    })
    .collect()
}

impl Report {
    fn publish(&self, rounds: usize, common: &Common) -> Result<(), Failure> {
        println!("{}", self.machine);
        println!(
            "{rounds} rounds; {TASKS} tasks with a key each and a pause of {PAUSE:?}; a minority is away for {SLICE:?}, \
             measured {FIRST_TIMEOUT:?} after that began"
        );
        println!("median (min … max) of the rounds\n");
        let head = [
            "servers",
            "a minority is",
            "p50 ms",
            "p99 ms",
            "÷ before",
            "slowest at first, ms",
        ];
        let cells = self.rows.iter().map(|row| {
            let spread = |values: &[f64]| Spread::of(values.iter().copied());
            vec![
                row.servers.to_string(),
                row.away.to_string(),
                format!("{:.2}", spread(&row.p50_ms)),
                format!("{:.2}", spread(&row.p99_ms)),
                format!("{:.2} x", row.ratio()),
                format!("{:.0}", spread(&row.slowest_ms)),
            ]
        });
        print_table(&head, &cells.collect::<Vec<_>>());
        println!();
        let others = self.rows.iter().flat_map(|row| row.others.iter().copied());
        print_bounds(&self.bounds, rounds, Spread::of(others));
        common.write(self.bench, self)
    }
}
