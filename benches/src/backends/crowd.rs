//! A crowd: many clients, each with connections of its own as a process has them, want one key. While they wait, one of them
//! holds it for longer than its lease; then they pass it on.

use std::time::Duration;

use ringfence_client::Client;
use serde::Serialize;
use tokio::{task::JoinSet, time::sleep};

use super::contenders::{Engine, Task};
use crate::{Common, Effort, Failure, Machine, Slice, Spread, Timing, now, print_table};

/// The lease of each client: the holder renews it while the others wait.
const LEASE: Duration = Duration::from_secs(6);

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Plan {
    clients: [usize; 2],
    hold_ms: u64,
    rounds: usize,
    timing: Timing,
}

impl Plan {
    pub(super) fn of(effort: Effort) -> Self {
        let (clients, hold_ms, rounds, timing) = match effort {
            Effort::Full => ([10, 100], 15_000, 5, Timing::of_ms(2_000, 4_000)),
            Effort::Quick => ([10, 100], 8_000, 3, Timing::of_ms(1_000, 2_000)),
            Effort::Smoke => ([2, 3], 50, 1, Timing::of_ms(5, 20)),
        };
        Self {
            clients,
            hold_ms,
            rounds,
            timing,
        }
    }
}

/// What a crowd did.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    engine: &'static str,
    clients: usize,
    grants_per_s: Spread,
    /// The holder had the lock until its release.
    is_kept: bool,
    release_ms: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    machine: Machine,
    plan: Plan,
    rows: Vec<Row>,
}

/// Measures the crowds of `engine`.
pub(super) async fn run(engine: Engine, plan: &Plan) -> Result<Vec<Row>, Failure> {
    let server = engine.start(0).await?;
    let mut rows = Vec::new();
    for count in plan.clients {
        eprintln!("{}: {count} clients", engine.name());
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(server.client_without_hand_off().await?);
        }
        let (is_kept, release_ms) = held(&clients, Duration::from_millis(plan.hold_ms)).await?;
        let mut grants_per_s = Vec::new();
        for _ in 0..plan.rounds {
            let lock = |client: &Client| Task::Lock(client.lock("crowd").lease(LEASE));
            let tasks: Vec<Task> = clients.iter().map(lock).collect();
            let slice = Slice::run(tasks, plan.timing, || Ok(now())).await?;
            grants_per_s.push(slice.pairs() / (slice.to - slice.from).as_secs_f64());
        }
        rows.push(Row {
            engine: engine.name(),
            clients: count,
            grants_per_s: Spread::of(grants_per_s),
            is_kept,
            release_ms,
        });
    }
    Ok(rows)
}

/// One of `clients` holds the key for `length` while the others wait, and they have it once each. Returns whether the holder
/// kept it, and how long its release took.
async fn held(clients: &[Client], length: Duration) -> Result<(bool, f64), Failure> {
    let lock = |client: &Client| client.lock("crowd").lease(LEASE);
    let [holder, others @ ..] = clients else {
        return Err("a crowd of nobody".into());
    };
    let guard = lock(holder).acquire().await?;
    let mut waiting = JoinSet::new();
    for client in others {
        let lock = lock(client);
        waiting.spawn(async move {
            lock.acquire().await?.release().await;
            Ok::<_, Failure>(())
        });
    }
    sleep(length).await;
    let is_kept = guard.is_held();
    let begun = now();
    guard.release().await;
    let release_ms = (now() - begun).as_secs_f64() * 1e3;
    while let Some(done) = waiting.join_next().await {
        done??;
    }
    Ok((is_kept, release_ms))
}

/// Prints what was found, and writes it.
pub(super) fn publish(plan: Plan, rows: Vec<Row>, common: &Common) -> Result<(), Failure> {
    let report = Report {
        bench: "crowd",
        machine: Machine::here(),
        plan,
        rows,
    };
    println!("{}", report.machine);
    println!("{} rounds; {}\n", plan.rounds, plan.timing);
    let cells = report.rows.iter().map(|row| {
        let is_kept = if row.is_kept { "kept it" } else { "LOST IT" };
        vec![
            format!("{}, {} clients", row.engine, row.clients),
            format!("{:.0}", row.grants_per_s),
            is_kept.to_owned(),
            format!("{:.1}", row.release_ms),
        ]
    });
    let head = ["one key", "grants/s", "the holder", "release, ms"];
    print_table(&head, &cells.collect::<Vec<_>>());
    common.write(report.bench, &report)
}
