//! Calls without end.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use futures_util::{future::join_all, stream};
use ringfence_api::v1::{
    AcquireRequest, InspectRequest, ListRequest, ReleaseRequest, RenewRequest, WaitLatchRequest,
    latch_service_client::LatchServiceClient, lock_service_client::LockServiceClient,
};
use tokio::time::sleep;
use tonic::{Status, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use super::{
    attacker::{AttackerArgs, Tally, with},
    target::ATTACKER,
};

/// Connections of a flood, and its calls under way on each.
const FLOOD: (usize, usize) = (8, 32);
/// Connections of calls that wait, and such calls on each.
const WAITING: (usize, usize) = (40, 250);
/// A call that waits and is refused is repeated after this time.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const LABEL_BYTES: usize = 60_000;
const LEASE: Duration = Duration::from_secs(30);

/// Makes `call` without end, as often at a time as [`FLOOD`] says.
async fn flood(at: &AttackerArgs, tally: &Tally, call: impl AsyncFn(Channel, u64)) {
    let (connections, at_a_time) = FLOOD;
    tally.height(connections * at_a_time);
    let next = AtomicU64::new(0);
    let floods = (0..connections).map(async |number| {
        let channel = at.channel(number);
        let calls = (0..at_a_time).map(async |_| {
            loop {
                call(channel.clone(), next.fetch_add(1, Relaxed)).await;
                tally.sent();
            }
        });
        join_all(calls).await
    });
    join_all(floods).await;
}

/// Begins as many calls as `waiting` has, each of which waits; one that ended is repeated.
async fn wait(
    at: &AttackerArgs,
    tally: &Tally,
    (connections, on_each): (usize, usize),
    call: impl AsyncFn(Channel, usize) -> Result<(), Status>,
) {
    tally.height(connections * on_each);
    let waits = (0..connections).map(async |number| {
        let channel = at.channel(number);
        // The connection is one of a known caller.
        let _ = inspect(&channel).await;
        let calls = (0..on_each).map(async |index| {
            loop {
                tally.sent();
                let _ = call(channel.clone(), number * on_each + index).await;
                sleep(AGAIN_AFTER).await;
            }
        });
        join_all(calls).await
    });
    join_all(waits).await;
}

async fn inspect(channel: &Channel) -> Result<(), Status> {
    let inspected = InspectRequest {
        namespace: "attack".into(),
        key: b"none".into(),
    };
    let mut locks = LockServiceClient::new(channel.clone());
    locks.inspect(with(ATTACKER, inspected)).await.map(drop)
}

fn ask(key: impl Into<Vec<u8>>) -> AcquireRequest {
    AcquireRequest {
        namespace: "attack".into(),
        key: key.into(),
        lease: LEASE.try_into().ok(),
        ..AcquireRequest::default()
    }
}

/// Connections that stay, each with a call now and then.
pub(super) async fn connections(at: &AttackerArgs, tally: &Tally) {
    const COUNT: usize = 1500;
    // Fewer find a place.
    tally.height(COUNT / 3);
    let all = (0..COUNT).map(async |number| {
        let channel = at.channel(number % 10);
        loop {
            let _ = inspect(&channel).await;
            tally.sent();
            sleep(Duration::from_secs(2)).await;
        }
    });
    join_all(all).await;
}

/// Waiters with long labels.
pub(super) async fn labels(at: &AttackerArgs, tally: &Tally) {
    wait(at, tally, (16, 250), async |channel, _| {
        let asked = AcquireRequest {
            label: "x".repeat(LABEL_BYTES),
            ..ask("one")
        };
        let mut locks = LockServiceClient::new(channel);
        locks.acquire(with(ATTACKER, asked)).await.map(drop)
    })
    .await;
}

/// Locks with long keys.
pub(super) async fn holds(at: &AttackerArgs, tally: &Tally) {
    let flood = flood(at, tally, async |channel, number| {
        let asked = ask(format!("{number:0>500}"));
        let mut locks = LockServiceClient::new(channel);
        let _ = locks.acquire(with(ATTACKER, asked)).await;
    });
    let height = async {
        tally.height(60_000);
        std::future::pending::<()>().await;
    };
    futures_util::future::join(flood, height).await;
}

/// Acquires without the role for it, or without a known token.
pub(super) async fn acquire_as(token: &str, at: &AttackerArgs, tally: &Tally) {
    flood(at, tally, async |channel, number| {
        let mut locks = LockServiceClient::new(channel);
        let asked = ask(number.to_string());
        let _ = locks.acquire(with(token, asked)).await;
    })
    .await;
}

/// The handle of a lock that was released.
pub(super) async fn ended(at: &AttackerArgs) -> Vec<u8> {
    let mut locks = LockServiceClient::new(at.channel(0));
    loop {
        if let Ok(held) = locks.acquire(with(ATTACKER, ask("ended"))).await {
            let handle = held.into_inner().handle;
            let release = ReleaseRequest {
                handle: handle.clone(),
            };
            if locks.release(with(ATTACKER, release)).await.is_ok() {
                return handle;
            }
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Renewals and releases of a lock that has ended.
pub(super) async fn ended_locks(at: &AttackerArgs, tally: &Tally) {
    let handle = ended(at).await;
    renew_and_release(at, tally, handle).await;
}

/// Renewals and releases of no lock.
pub(super) async fn forged_handles(at: &AttackerArgs, tally: &Tally) {
    renew_and_release(at, tally, vec![1; 1000]).await;
}

async fn renew_and_release(at: &AttackerArgs, tally: &Tally, handle: Vec<u8>) {
    flood(at, tally, async |channel, number| {
        let mut locks = LockServiceClient::new(channel);
        let handle = handle.clone();
        match number % 2 {
            0 => drop(locks.renew(with(ATTACKER, RenewRequest { handle })).await),
            _ => drop(
                locks
                    .release(with(ATTACKER, ReleaseRequest { handle }))
                    .await,
            ),
        }
    })
    .await;
}

/// Waits for latches that nobody sets.
pub(super) async fn latches(at: &AttackerArgs, tally: &Tally) {
    wait(at, tally, WAITING, async |channel, number| {
        let mut latches = LatchServiceClient::new(channel);
        let name = format!("latch/{number}");
        let wait = WaitLatchRequest { name, wait: None };
        latches.wait_latch(with(ATTACKER, wait)).await.map(drop)
    })
    .await;
}

/// Acquires thousands of locks, for lists to have something to say.
pub(super) async fn fill(at: &AttackerArgs) {
    let mut locks = LockServiceClient::new(at.channel(100));
    for number in 0..3000 {
        let _ = locks
            .acquire(with(ATTACKER, ask(format!("listed/{number}"))))
            .await;
    }
}

/// Lists of thousands of locks.
pub(super) async fn lists(at: &AttackerArgs, tally: &Tally) {
    fill(at).await;
    flood(at, tally, async |channel, _| {
        let mut locks = LockServiceClient::new(channel);
        let all = ListRequest::default();
        if let Ok(pages) = locks.list(with(ATTACKER, all)).await {
            let mut pages = pages.into_inner();
            while let Ok(Some(_)) = pages.message().await {}
        }
    })
    .await;
}

/// Watches of the health, by callers that are known.
pub(super) async fn watches(at: &AttackerArgs, tally: &Tally) {
    wait(at, tally, WAITING, async |channel, _| {
        let mut health = HealthClient::new(channel);
        let watch = health.watch(HealthCheckRequest::default()).await?;
        let mut changes = watch.into_inner();
        while changes.message().await?.is_some() {}
        Ok(())
    })
    .await;
}

/// Streams of reflection, each of which asks for a file without end.
pub(super) async fn reflection(at: &AttackerArgs, tally: &Tally) {
    wait(at, tally, WAITING, async |channel, _| {
        let mut reflection = ServerReflectionClient::new(channel);
        let symbol = "ringfence.v1.AdminService".to_owned();
        let asks = stream::repeat(ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(symbol)),
        });
        let answers = reflection.server_reflection_info(with(ATTACKER, asks));
        let mut answers = answers.await?.into_inner();
        while answers.message().await?.is_some() {}
        Ok(())
    })
    .await;
}
