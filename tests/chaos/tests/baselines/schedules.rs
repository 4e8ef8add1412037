//! What is done, step by step, whichever rules are on.

use std::{pin::pin, time::Duration};

use ringfence_chaos::{
    client::Holder,
    history::{Fault, History},
};
use ringfence_client::AcquireError;
use ringfence_test_support::{Flow, Whose, eventually};
use tokio::time::timeout;

use super::stage::{KEY, Stage};

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

/// The shard is flushed after the lock was granted many times, and grants it once more.
pub(crate) async fn flushed() -> History {
    let mut stage = Stage::of(1, Duration::from_secs(2)).await;
    let holder = stage.holder().await;
    // Refused requests take tokens, too: more before the flush than in the recovery period after it.
    for _ in 0..100 {
        let held = holder.acquire(KEY, None).await.unwrap();
        holder.release(held).await;
    }
    stage.suffer(Fault::FlushAll).await;
    let held = holder.acquire(KEY, Some(WAIT * 4)).await.unwrap();
    holder.release(held).await;
    stage.history()
}

/// The shard follows a replica that has not heard that one client holds the key, and is a primary
/// again; another client asks for it, over a connection of before.
pub(crate) async fn demoted_and_promoted() -> History {
    let mut stage = Stage::set().await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    stage.begin(Fault::ThereAndBack);
    stage.members[0].leave_replica_behind().await;
    let held = first.acquire(KEY, None).await.unwrap();
    stage.members[0].go_there_and_back().await;
    stage.end(Fault::ThereAndBack);
    let also = second.acquire(KEY, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}

/// One client holds the key, another waits; the first gives it back, and a third asks before the second
/// has got round to its message.
pub(crate) async fn newcomer_behind_a_waiter() -> History {
    let mut stage = Stage::set().await;
    let holders = [
        stage.holder().await,
        stage.holder().await,
        stage.holder().await,
    ];
    let [first, second, third] = &holders;
    let held = first.acquire(KEY, None).await.unwrap();
    let waiting = async |holder: &Holder| {
        let held = holder.acquire(KEY, Some(WAIT)).await.unwrap();
        holder.release(held).await;
    };
    let mut second = pin!(waiting(second));
    tokio::select! {
        () = &mut second => unreachable!("the first has it"),
        () = stage.hear("queued") => {}
    }
    let proxy = stage.proxy();
    proxy.replies(&Whose::lane("notify"), Flow::Hold);
    first.release(held).await;
    tokio::join!(second, waiting(third));
    proxy.heal();
    stage.history()
}

/// In grace a renewal is on its way for long, and its holder gives the lock back meanwhile.
pub(crate) async fn released_while_renewing() -> History {
    let mut stage = Stage::set().await;
    let holder = stage.holder().await;
    let held = holder.acquire(KEY, None).await.unwrap();
    stage.restart_empty().await;
    stage.hear("renewed").await;
    // Of other keys: who asks for one that this process holds is refused without asking the shard.
    for other in 0..8 {
        eventually("every connection is of the new life", async || {
            let key = format!("another/{other}");
            let refused = holder.client.lock(&key).try_acquire().await;
            matches!(refused, Err(AcquireError::Grace { .. }))
        })
        .await;
    }
    let renew = Whose::lane("renew");
    stage.proxy().requests(&renew, Flow::Hold);
    stage.hear("renewing").await;
    let replies = stage.proxy().counts(&renew).replies;
    let mut releasing = Box::pin(holder.release(held));
    // Behind the renewal it is not answered before that is let go.
    let released = timeout(Duration::from_millis(300), &mut releasing).await;
    stage.proxy().heal();
    if released.is_err() {
        releasing.await;
    }
    // Its answer is what shows it.
    eventually("the renewal is answered", async || {
        stage.proxy().counts(&renew).replies > replies
    })
    .await;
    holder.client.close().await;
    stage.history()
}
