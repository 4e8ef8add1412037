//! What is done, step by step, whichever rules are on.

use std::time::Duration;

use ringfence_chaos::history::{Fault, History};
use ringfence_client::AcquireError;
use ringfence_test_support::{Flow, Whose, eventually};
use tokio::time::{sleep, timeout};

use crate::stage::{KEY, Stage};

/// How long somebody asks for a lock that somebody else holds.
const WAIT: Duration = Duration::from_secs(5);

/// The shard forgets that one client holds the key; another asks for it.
pub(crate) async fn restarted_empty() -> History {
    let mut stage = Stage::set().await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let held = first.acquire(KEY, None).await.unwrap();
    stage.restart_empty().await;
    let also = second.acquire(KEY, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}

/// The shard follows a replica that has not heard that one client holds the key, and is a primary
/// again; another client asks for it, over a connection of before.
pub(crate) async fn demoted_and_promoted() -> History {
    let mut stage = Stage::set().await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    stage.begin(Fault::ThereAndBack);
    stage.member.leave_replica_behind().await;
    let held = first.acquire(KEY, None).await.unwrap();
    stage.member.go_there_and_back().await;
    stage.end(Fault::ThereAndBack);
    let also = second.acquire(KEY, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}

/// In grace a renewal is on its way for long, and its holder gives the lock back meanwhile.
pub(crate) async fn released_while_renewing() -> History {
    let mut stage = Stage::set().await;
    let holder = stage.holder().await;
    let held = holder.acquire(KEY, None).await.unwrap();
    stage.restart_empty().await;
    stage.hear("renewed").await;
    eventually("the other connection is of the new life, too", async || {
        let refused = holder.client.lock(KEY).try_acquire().await;
        matches!(refused, Err(AcquireError::Grace { .. }))
    })
    .await;
    stage
        .member
        .proxy()
        .requests(&Whose::lane("renew"), Flow::Hold);
    stage.hear("renewing").await;
    let mut releasing = Box::pin(holder.release(held));
    // Behind the renewal it is not answered before that is let go.
    let released = timeout(Duration::from_millis(300), &mut releasing).await;
    stage.member.proxy().heal();
    if released.is_err() {
        releasing.await;
    }
    // Let the renewal arrive: its answer is what shows it.
    sleep(Duration::from_secs(1)).await;
    stage.history()
}
