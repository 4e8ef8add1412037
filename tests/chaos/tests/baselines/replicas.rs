//! Events of locks with three replicas at four shards, step by step, for any set of rules: a replica moves, or its shard
//! is removed by force.

use std::time::Duration;

use ringfence_chaos::{
    client::{Asked, Holder},
    history::History,
};
use ringfence_coordinator::failpoint::{Rule, switch_off};
use ringfence_test_support::{Flow, Whose, eventually};
use tokio::time::{sleep, timeout};

use super::{
    ring::Ring,
    stage::{LEASE, Stage, connections},
};

/// How long somebody asks for a lock that may not be granted.
const WAIT: Duration = Duration::from_secs(2);
/// For a schedule that waits for a lease, or a view of the topology, to run out.
const SHORT_LEASE: Duration = Duration::from_secs(2);
/// For a schedule in which two leases begin at different times.
const LONG_LEASE: Duration = Duration::from_secs(4);

async fn give_back(holder: &Holder, held: Option<Asked>) {
    if let Some(held) = held {
        holder.release(held).await;
    }
}

/// No request of a client for a lock arrives at the shard in `place`.
fn cut_off(stage: &Stage, place: usize, its: &impl Fn(&str) -> Whose) {
    for lane in ["work", "renew"] {
        stage.members[place]
            .proxy()
            .requests(&its(lane), Flow::Hold);
    }
}

/// A replica's slot is sealed between its grant and the confirmation of another one's token, which is of a later epoch than
/// the move. The next holder has the replica at its next shard, and the third one.
pub(crate) async fn confirmed_after_the_seal() -> History {
    let stage = Stage::of(4, LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let (its, of_second) = (connections(&first).await, connections(&second).await);
    let ring = Ring::of_replicas(&stage).await;
    let (former, [raised, third]) = (ring.place().await, ring.others().await);
    let [raised_proxy, third_proxy] = [raised, third].map(|place| stage.members[place].proxy());
    ring.to_the_second().await;
    ring.plan().await;
    ring.raise(raised).await;
    raised_proxy.requests(&its("work"), Flow::Hold);
    third_proxy.requests(&its("work"), Flow::Hold);
    let mut held = None;
    let mut last = None;
    let acquires = async { held = first.acquire(&ring.key, Some(WAIT)).await };
    let seals = async {
        let granted = async || ring.has_it(former).await;
        eventually("the former shard granted it", granted).await;
        last = Some(ring.seal().await);
        raised_proxy.heal();
    };
    tokio::join!(acquires, seals);
    give_back(&first, held).await;
    third_proxy.heal();
    let last = last.expect("sealed");
    ring.import(last).await;
    ring.open(last).await;
    raised_proxy.requests(&of_second("work"), Flow::Hold);
    let next = second.acquire(&ring.key, Some(2 * WAIT)).await;
    give_back(&second, next).await;
    stage.history()
}

/// A client that does not hear that a shard was declared dead has a token confirmed there, of an epoch that was allotted
/// after that. The next holder has the dead shard's replica at its next shard, and the third one.
pub(crate) async fn confirmed_at_a_dead_shard() -> History {
    let stage = Stage::leased(4, SHORT_LEASE, SHORT_LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let (its, of_second) = (connections(&first).await, connections(&second).await);
    let ring = Ring::of_first_replica(&stage).await;
    let (place, [raised, third]) = (ring.place().await, ring.others().await);
    let proxies = [place, raised, third].map(|place| stage.members[place].proxy());
    let [dead, raised_proxy, third] = proxies;
    // The mover does not reach it either. Who is connected stays connected.
    dead.refuse(true);
    stage.home.both(&its(""), Flow::Hold);
    ring.remove_by_force(place).await;
    ring.raise(raised).await;
    third.requests(&its("work"), Flow::Hold);
    let held = first.acquire(&ring.key, Some(WAIT / 2)).await;
    give_back(&first, held).await;
    third.heal();
    let mover = ring.mover();
    eventually("the mover is done", async || mover.has_ended()).await;
    raised_proxy.requests(&of_second("work"), Flow::Hold);
    let next = second.acquire(&ring.key, Some(3 * WAIT)).await;
    give_back(&second, next).await;
    stage.history()
}

/// A holder lacks the first replica, with which another client waits. That shard restarts empty, and the holder installs its
/// record there in the recovery period, later than its second record was renewed. The other client puts its own record back,
/// and gets the second replica as soon as that one has run out.
pub(crate) async fn installed_in_a_recovery_period() -> History {
    // Otherwise the other client does not keep the first replica.
    let _keeps = switch_off(Rule::PassOverLead);
    let mut stage = Stage::of(3, LONG_LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let (its, of_second) = (connections(&first).await, connections(&second).await);
    let ring = Ring::of_first_replica(&stage).await;
    let [other, _] = ring.others().await;
    // Of two records in a recovery period, the one of the greater token stays.
    ring.raise(0).await;
    cut_off(&stage, 0, &its);
    let held = first.acquire(&ring.key, Some(LONG_LEASE)).await.unwrap();
    let mut also = None;
    let waits = async { also = second.acquire(&ring.key, Some(2 * LONG_LEASE)).await };
    let happens = async {
        let granted = async || ring.has_it(0).await;
        eventually("the other client has the first replica", granted).await;
        stage.members[0]
            .proxy()
            .requests(&of_second("renew"), Flow::Hold);
        stage.restart_empty().await;
        cut_off(&stage, other, &its);
        sleep(LONG_LEASE / 4).await;
        stage.members[0].proxy().requests(&its("renew"), Flow::Pass);
        // With the rule on it is not.
        let installed = eventually("it is installed", async || ring.has_it(0).await);
        let _ = timeout(LONG_LEASE / 4, installed).await;
        stage.members[0].proxy().requests(&its("renew"), Flow::Hold);
        stage.members[0]
            .proxy()
            .requests(&of_second("renew"), Flow::Pass);
    };
    tokio::join!(waits, happens);
    for member in &stage.members {
        member.proxy().heal();
    }
    first.release(held).await;
    give_back(&second, also).await;
    stage.history()
}
