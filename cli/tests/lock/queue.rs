//! Processes in a lock's queue that die, or stop for a while.

use std::time::Duration;

use nix::sys::signal::Signal;
use ringfence_client::{
    Client, Guard, Inspection, Nonce,
    limits::{CLAIM_MAX, TICKET_KEEP},
};
use ringfence_test_support::eventually;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{Running, Stage};

const LEASE: Duration = Duration::from_secs(30);
const KEY: &str = "key";
const DEADLINE: Duration = Duration::from_secs(120);

/// A lock that is held; `ringfence lock` is first in its queue, and a client is behind it.
struct Line {
    stage: Stage,
    guard: Guard,
    head: Running,
    nonce: Nonce,
    client: Client,
    behind: JoinSet<Guard>,
}

async fn inspect(client: &Client) -> Inspection {
    client.lock(KEY).inspect().await.unwrap()
}

/// Waits until so many are in the queue.
async fn queued(client: &Client, waiters: usize) -> Inspection {
    eventually("a place in the queue", async || {
        inspect(client).await.waiters.len() == waiters
    })
    .await;
    inspect(client).await
}

impl Line {
    async fn form() -> Self {
        Self::form_on(Stage::set(1, LEASE).await, "0.2").await
    }

    /// On a stage of one shard. The command of the head takes so many seconds.
    async fn form_on(stage: Stage, seconds: &str) -> Self {
        let (holder, client) = (stage.servers.client().await, stage.servers.client().await);
        let guard = holder.lock(KEY).acquire().await.unwrap();
        let script = format!("sleep {seconds}; echo ran > ran");
        let head = stage.start(KEY, &[], &["sh", "-c", &script]);
        let nonce = queued(&client, 1).await.waiters[0].nonce;
        let mut behind = JoinSet::new();
        let waits = client.clone();
        behind.spawn(async move { waits.lock(KEY).acquire().await.unwrap() });
        queued(&client, 2).await;
        Self {
            stage,
            guard,
            head,
            nonce,
            client,
            behind,
        }
    }
}

/// The turn of the waiter behind.
async fn turn(behind: &mut JoinSet<Guard>) -> Guard {
    let turn = timeout(DEADLINE, behind.join_next()).await;
    turn.expect("its turn").unwrap().unwrap()
}

/// A turn is for far less than a lease: no reason to end the command, for it is renewed at once.
#[tokio::test]
async fn a_command_whose_lock_came_by_a_turn_runs_to_its_end() {
    runs_after_its_turn(Line::form().await).await;
}

/// The command takes longer than a view of the topology is believed.
#[tokio::test]
async fn a_command_whose_lock_came_by_a_turn_runs_to_its_end_where_removal_is_leased() {
    let stage = Stage::leased(1, Duration::from_secs(12)).await;
    runs_after_its_turn(Line::form_on(stage, "5").await).await;
}

async fn runs_after_its_turn(mut line: Line) {
    line.guard.release().await;
    let ran = line.head.output().await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(line.stage.written("ran"), "ran\n");
    drop(turn(&mut line.behind).await);
}

#[tokio::test]
async fn a_process_killed_first_in_the_queue_delays_the_next_by_its_claim_at_most() {
    let Line {
        guard,
        head,
        nonce,
        client,
        mut behind,
        stage: _stage,
    } = Line::form().await;
    let first = guard.token();
    head.signal(Signal::SIGKILL);
    guard.release().await;
    let free = Instant::now();
    let granted = inspect(&client).await.holder.unwrap();
    assert_eq!(granted.nonce, nonce, "the dead one has its turn");
    assert!(behind.try_join_next().is_none());
    let next = turn(&mut behind).await;
    assert!(free.elapsed() > CLAIM_MAX / 2, "no two had it");
    assert!(first < granted.token && granted.token < next.token());
}

#[tokio::test]
async fn a_process_killed_in_the_queue_long_before_its_turn_delays_nobody() {
    let Line {
        guard,
        head,
        client,
        mut behind,
        stage: _stage,
        nonce,
    } = Line::form().await;
    head.signal(Signal::SIGKILL);
    queued(&client, 1).await;
    guard.release().await;
    let granted = inspect(&client).await.holder.unwrap();
    assert_ne!(granted.nonce, nonce, "the dead one has its turn");
    drop(turn(&mut behind).await);
}

/// It wakes up with its turn in its socket, and somebody else has the lock.
#[tokio::test]
async fn a_process_that_was_stopped_through_its_turn_waits_for_the_next_one() {
    let Line {
        stage,
        guard,
        head,
        nonce,
        client,
        mut behind,
    } = Line::form().await;
    head.signal(Signal::SIGSTOP);
    guard.release().await;
    assert_eq!(inspect(&client).await.holder.unwrap().nonce, nonce);
    let next = turn(&mut behind).await;
    head.signal(Signal::SIGCONT);
    queued(&client, 1).await;
    sleep(TICKET_KEEP / 10).await;
    assert_eq!(stage.written("ran"), "");
    assert!(next.is_held());
    next.release().await;
    let ran = head.output().await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(stage.written("ran"), "ran\n");
}
