//! Events of semaphores, step by step, for any set of rules.

use std::{pin::pin, time::Duration};

use ringfence_chaos::{client::Holder, history::History};
use ringfence_coordinator::{mover::Phase, shard::LockMode};
use ringfence_test_support::{Flow, Whose, eventually};

use super::{
    ring::Ring,
    stage::{LEASE, Stage},
};

const KEY: &str = "permits/2/0";
/// How long somebody asks for permits that somebody else has.
const WAIT: Duration = Duration::from_secs(2);

/// So many permits of two.
fn permits(count: u32) -> LockMode {
    LockMode::Permits { count, capacity: 2 }
}

/// Takes permits, if they are there in time, and gives them back.
async fn take(holder: &Holder, key: &str, count: u32, wait: Duration) {
    if let Some(taken) = holder.take(key, permits(count), Some(wait)).await {
        holder.release(taken).await;
    }
}

/// The shard forgets that both permits are taken; another client asks for one.
pub(crate) async fn restarted_empty() -> History {
    let mut stage = Stage::set().await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let held = first.take(KEY, permits(2), None).await.unwrap();
    stage.restart_empty().await;
    take(&second, KEY, 1, WAIT).await;
    first.release(held).await;
    stage.history()
}

/// Both permits are taken, and their holder is not heard while their slot moves; another client asks for one.
pub(crate) async fn held_while_it_moves() -> History {
    let mut stage = Stage::of(2, LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let ring = Ring::of(&stage).await;
    let held = first.take(&ring.key, permits(2), None).await.unwrap();
    stage.proxy().requests(&Whose::lane("renew"), Flow::Hold);
    ring.to_the_second().await;
    let mut mover = ring.held_up_at(Phase::Opened);
    mover.is_there().await;
    stage.forget();
    tokio::select! {
        () = take(&second, &ring.key, 1, 4 * WAIT) => {}
        () = stage.hear("queued") => {}
    }
    mover.go_on();
    stage.proxy().heal();
    first.release(held).await;
    eventually("the mover is done", async || mover.has_ended()).await;
    stage.history()
}

/// One of two permits is taken, and a client waits for two; another asks for one.
pub(crate) async fn newcomer_for_one_behind_a_waiter_for_two() -> History {
    let mut stage = Stage::set().await;
    let [first, second, third] = [
        stage.holder().await,
        stage.holder().await,
        stage.holder().await,
    ];
    let held = first.take(KEY, permits(1), None).await.unwrap();
    let mut second = pin!(take(&second, KEY, 2, 4 * WAIT));
    tokio::select! {
        () = &mut second => unreachable!("the first has one"),
        () = stage.hear("queued") => {}
    }
    let newcomer = async {
        take(&third, KEY, 1, WAIT).await;
        first.release(held).await;
    };
    tokio::join!(second, newcomer);
    stage.history()
}
