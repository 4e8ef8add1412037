//! Events while slots move, step by step, for any set of rules.

use std::time::Duration;

use ringfence_chaos::{client::Holder, history::History};
use ringfence_coordinator::{mover::Phase, shard::Mode, topology::TopologyStore as _};
use ringfence_test_support::{Deed, Flow, Trap, Whose, eventually};
use tokio::time::timeout;

use super::{
    ring::Ring,
    stage::{LEASE, Stage},
};

/// How long somebody asks for a lock that somebody else holds.
const WAIT: Duration = Duration::from_secs(2);

/// For a schedule that waits for a lease to run out.
const SHORT_LEASE: Duration = Duration::from_secs(6);

/// A connection in the place of another has as many answers before it is used: HELLO, CLIENT SETINFO twice, SETNAME and ID,
/// INFO, CLIENT KILL, and the check of rights.
const ANSWERS: u64 = 8;

async fn set(lease: Duration) -> (Stage, Ring, [Holder; 2]) {
    let stage = Stage::of(2, lease).await;
    let holders = [stage.holder().await, stage.holder().await];
    let ring = Ring::of(&stage).await;
    (stage, ring, holders)
}

/// A mover lists the keys left at the former shard; a client takes the lock; the mover goes on, and
/// another client asks for it.
pub(crate) async fn taken_once_it_was_listed() -> History {
    let (stage, ring, [first, second]) = set(2 * LEASE).await;
    ring.to_the_second().await;
    let mut mover = ring.held_up_at(Phase::Scanned);
    mover.is_there().await;
    let held = first.acquire(&ring.key, Some(LEASE)).await.unwrap();
    mover.go_on();
    eventually("what is left is listed", async || {
        let record = ring.store.load().await.unwrap();
        record.migrations.iter().all(|migration| migration.listed)
    })
    .await;
    let also = second.acquire(&ring.key, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    eventually("the mover is done", async || mover.has_ended()).await;
    stage.history()
}

/// A client holds the lock, and is not heard while a mover is given time to finish; another asks for it.
pub(crate) async fn held_while_it_moves() -> History {
    let (stage, ring, [first, second]) = set(LEASE).await;
    let held = first.acquire(&ring.key, None).await.unwrap();
    stage.proxy().requests(&Whose::lane("renew"), Flow::Hold);
    ring.to_the_second().await;
    let mut mover = ring.held_up_at(Phase::Listed);
    mover.is_there().await;
    mover.go_on();
    let done = async || mover.has_ended();
    // With the rule on it is not.
    let _ = timeout(WAIT, eventually("the mover is done", done)).await;
    let also = second.acquire(&ring.key, Some(WAIT)).await;
    stage.proxy().heal();
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    eventually("the mover is done", done).await;
    stage.history()
}

/// A key moves there, and is on its way back when a step of the first move arrives once more; one client
/// has taken the lock before, another asks for it.
pub(crate) async fn opened_late_by_an_earlier_move() -> History {
    let (stage, ring, [first, second]) = set(LEASE).await;
    ring.to_the_second().await;
    let mut mover = ring.held_up_at(Phase::Planned);
    mover.is_there().await;
    let earlier = ring.migration().await.epoch;
    mover.go_on();
    eventually("the mover is done", async || mover.has_ended()).await;
    ring.to_the_first().await;
    ring.plan().await;
    let last = ring.seal().await;
    ring.import(last).await;
    let held = first.acquire(&ring.key, Some(LEASE)).await.unwrap();
    ring.step(1, earlier, Mode::Open, last).await;
    let also = second.acquire(&ring.key, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}

/// A holder is brought along and does not hear of it; the move is turned back, and it is brought along
/// once more before the shard that it leaves knows. What was there of it first runs out; another client
/// asks for the lock.
pub(crate) async fn brought_along_while_it_is_turned_back() -> History {
    let (mut stage, ring, [first, second]) = set(SHORT_LEASE).await;
    let renew = Whose::lane("renew");
    let held = first.acquire(&ring.key, None).await.unwrap();
    ring.to_the_second().await;
    ring.plan().await;
    let last = ring.seal().await;
    ring.import(last).await;
    let next = stage.members[1].proxy();
    let cut = Deed::Cut { reply_bytes: 0 };
    let before = next.counts(&renew);
    next.trap(Trap::new(renew.clone(), cut).command(&["FCALL"]));
    eventually("it is brought along", async || ring.has_it(1).await).await;
    eventually("the way there is open again", async || {
        let counts = next.counts(&renew);
        counts.connections > before.connections && counts.replies >= before.replies + ANSWERS
    })
    .await;
    next.requests(&renew, Flow::Hold);
    stage.forget();
    stage.hear("renewed").await;
    ring.turn_back().await;
    let last = ring.seal().await;
    stage.forget();
    stage.members[1].proxy().heal();
    stage.hear("renewed").await;
    stage.members[1].proxy().requests(&renew, Flow::Hold);
    // With the rule on it stays where it is.
    let gone = eventually("it is taken away", async || !ring.has_it(0).await);
    let _ = timeout(Duration::from_secs(1), gone).await;
    ring.import(last).await;
    let also = second.acquire(&ring.key, Some(SHORT_LEASE)).await;
    stage.members[1].proxy().heal();
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}
