//! Requests and replies that are late, lost or cut off: what was applied is found, what was not is
//! asked for again, and nothing is left behind.

use std::time::Duration;

use ringfence_client::{AcquireError, Danger, Effect, ReleaseAnswer, ShardError};
use ringfence_test_support::{Deed, Flow, Trap, Whose, eventually};

use super::{DEADLINE, SECOND, scene::Proxied};

/// Of a lock that is not lost, and whose renewals are waited for.
const LEASE: Duration = Duration::from_secs(12);
/// Of a lock that is lost.
const SHORT: Duration = Duration::from_secs(2);

/// Springs at the next script call of a lane: the call was applied.
fn at_script_of(lane: &str, deed: Deed) -> Trap {
    Trap::new(Whose::lane(lane), deed).command(&["FCALL"])
}

fn is_unknown(error: &AcquireError) -> bool {
    let no_reply = matches!(error, AcquireError::Shard(ShardError::NoReply { .. }));
    no_reply && error.is_retryable() && error.effect() == Effect::Unknown
}

/// Every way to lose the reply to a request that was applied.
const LOST_REPLIES: [Deed; 5] = [
    Deed::Cut { reply_bytes: 0 },
    Deed::Cut { reply_bytes: 1 },
    // One less than the shortest, a release's, has: "*1\r\n:0\r\n".
    Deed::Cut { reply_bytes: 7 },
    Deed::HalfOpen,
    Deed::LoseReplies,
];

#[tokio::test]
async fn an_acquire_whose_reply_was_lost_finds_its_grant() {
    let scene = Proxied::new(LEASE).await;
    let Proxied { proxy, client, .. } = &scene;
    for (round, deed) in LOST_REPLIES.into_iter().enumerate() {
        let used = scene.tokens().await;
        proxy.trap(at_script_of("work", deed));
        let lock = client.lock("key").wait(DEADLINE);
        let guard = lock.acquire().await.unwrap();
        assert_eq!(proxy.sprung(), round as u64 + 1, "{deed:?}");
        assert_eq!(
            guard.token().counter(),
            used + 1,
            "{deed:?}: of the first request"
        );
        assert_eq!(guard.release().await, ReleaseAnswer::Held, "{deed:?}");
    }
    scene.is_empty().await;
}

#[tokio::test]
async fn an_abandoned_acquire_whose_reply_was_lost_is_given_back() {
    let scene = Proxied::new(30 * SECOND).await;
    for deed in LOST_REPLIES {
        scene.proxy.trap(at_script_of("work", deed));
        let refused = scene.client.lock("key").try_acquire().await.unwrap_err();
        assert!(is_unknown(&refused), "{deed:?}: {refused:?}");
        scene.is_empty().await;
    }
}

#[tokio::test]
async fn a_release_whose_reply_was_lost_is_unknown_and_done() {
    let scene = Proxied::new(30 * SECOND).await;
    for deed in LOST_REPLIES {
        let lock = scene.client.lock("key").wait(DEADLINE);
        let guard = lock.acquire().await.unwrap();
        scene.proxy.trap(at_script_of("work", deed));
        assert_eq!(guard.release().await, ReleaseAnswer::Unknown, "{deed:?}");
        scene.is_empty().await;
    }
}

#[tokio::test]
async fn a_renewal_whose_reply_was_lost_moves_no_deadline_and_costs_no_lock() {
    let scene = Proxied::new(LEASE).await;
    let guard = scene.client.lock("key").acquire().await.unwrap();
    for (round, deed) in LOST_REPLIES.into_iter().enumerate() {
        scene.proxy.trap(at_script_of("renew", deed));
        eventually("applied", async || scene.proxy.sprung() > round as u64).await;
        let before = guard.deadline();
        guard.danger().await;
        assert_eq!(guard.deadline(), before, "{deed:?}");
        eventually("renewed", async || guard.deadline() > before).await;
        assert!(guard.is_held(), "{deed:?}");
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn requests_that_were_lost_were_not_applied() {
    let scene = Proxied::new(30 * SECOND).await;
    let Proxied { proxy, client, .. } = &scene;
    drop(client.lock("key").try_acquire().await.unwrap());
    scene.is_empty().await;
    proxy.requests(&Whose::lane("work"), Flow::Lose);
    let refused = client.lock("key").try_acquire().await.unwrap_err();
    assert!(is_unknown(&refused), "{refused:?}");
    assert_eq!(scene.records().await, [""; 0]);
    proxy.heal();
    let guard = client.lock("key").wait(DEADLINE).acquire().await.unwrap();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_release_that_was_lost_is_sent_again() {
    let scene = Proxied::new(30 * SECOND).await;
    let guard = scene.client.lock("key").acquire().await.unwrap();
    scene.proxy.requests(&Whose::lane("work"), Flow::Lose);
    assert_eq!(guard.release().await, ReleaseAnswer::Unknown);
    assert_eq!(scene.records().await.len(), 1);
    scene.proxy.heal();
    scene.is_empty().await;
}

#[tokio::test]
async fn a_shard_that_cannot_be_reached_applies_nothing() {
    let scene = Proxied::new(LEASE).await;
    let Proxied { proxy, client, .. } = &scene;
    let guard = client.lock("key").acquire().await.unwrap();
    proxy.refuse(true);
    proxy.cut(&Whose::All);
    eventually("known to be away", async || {
        let refused = client.lock("other").try_acquire().await.unwrap_err();
        assert!(refused.is_retryable(), "{refused:?}");
        let away = matches!(refused, AcquireError::Shard(ShardError::Unreachable { .. }));
        assert_eq!(refused.effect() == Effect::None, away, "{refused:?}");
        away
    })
    .await;
    assert_eq!(guard.danger().await, Danger::RenewalFailed);
    let before = guard.deadline();
    proxy.heal();
    eventually("renewed", async || guard.deadline() > before).await;
    let other = client.lock("other").wait(DEADLINE);
    drop(other.acquire().await.unwrap());
    drop(guard);
    scene.is_empty().await;
}

#[tokio::test]
async fn a_partition_shorter_than_the_lease_costs_no_lock() {
    let scene = Proxied::new(LEASE).await;
    let guard = scene.client.lock("key").acquire().await.unwrap();
    for _ in 0..3 {
        scene.proxy.both(&Whose::All, Flow::Hold);
        guard.danger().await;
        let before = guard.deadline();
        scene.proxy.heal();
        eventually("renewed", async || guard.deadline() > before).await;
        assert!(guard.is_held());
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_partition_longer_than_the_lease_frees_the_lock_for_others_and_for_good() {
    let scene = Proxied::new(SHORT).await;
    let Proxied { proxy, client, .. } = &scene;
    let guard = client.lock("key").acquire().await.unwrap();
    let record = client.lock("key").inspect().await.unwrap().holder.unwrap();
    let cut_off = Whose::Named(format!("rf:{}:", record.nonce.client));
    proxy.both(&cut_off, Flow::Hold);
    guard.lost().await;

    let rival = scene.rival().await;
    let next = rival.lock("key").wait(DEADLINE).acquire().await.unwrap();
    assert!(next.token() > guard.token());
    // What was held back arrives: renewals of a lock that is another's.
    proxy.heal();
    let end = next.deadline();
    eventually("renewed twice", async || next.deadline() > end + SHORT / 2).await;
    assert!(!guard.is_held());
    assert_eq!(guard.release().await, ReleaseAnswer::Lost);
    assert!(next.is_held());
    assert_eq!(next.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_slow_and_uneven_network_costs_no_lock() {
    let scene = Proxied::new(LEASE).await;
    let Proxied { proxy, client, .. } = &scene;
    proxy.both(
        &Whose::All,
        Flow::Delay(Duration::ZERO..Duration::from_millis(60)),
    );
    let guard = client.lock("key").acquire().await.unwrap();
    let first = guard.deadline();
    while guard.deadline() == first {
        assert!(guard.is_held());
        let other = client.lock("other").acquire().await.unwrap();
        assert!(other.token() > guard.token());
        assert_eq!(other.release().await, ReleaseAnswer::Held);
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_grant_that_arrives_after_its_deadline_is_given_back() {
    let scene = Proxied::new(30 * SECOND).await;
    let Proxied { proxy, client, .. } = &scene;
    drop(client.lock("key").try_acquire().await.unwrap());
    scene.is_empty().await;
    // A connection that is silent for longer is given up.
    let late = Duration::from_millis(600);
    proxy.replies(&Whose::lane("work"), Flow::Delay(late..late * 101 / 100));
    eventually("too late", async || {
        let refused = client.lock("key").lease(late / 2).try_acquire().await;
        scene.is_empty().await;
        matches!(refused.unwrap_err(), AcquireError::TooLate)
    })
    .await;
}

/// In grace a renewal puts back what it does not find: one that was released before it arrived
/// would be a ghost.
#[tokio::test]
async fn a_release_goes_behind_a_renewal_that_got_no_answer() {
    let lease = LEASE;
    let scene = Proxied::new(lease).await;
    let guard = scene.client.lock("key").acquire().await.unwrap();
    scene.begin_grace().await;
    // Longer than the renewal waits for its answer.
    let late = lease / 3 + SECOND;
    let renewals = Whose::lane("renew");
    scene
        .proxy
        .trap(at_script_of("renew", Deed::Cut { reply_bytes: 0 }));
    scene
        .proxy
        .requests(&renewals, Flow::Delay(late..late * 101 / 100));
    guard.danger().await;
    assert_eq!(scene.proxy.sprung(), 0, "it is still on its way");
    assert_eq!(guard.release().await, ReleaseAnswer::Unknown);
    eventually("the renewal arrived", async || scene.proxy.sprung() == 1).await;
    scene.proxy.heal();
    let given_back = tokio::time::timeout(lease * 2 / 3, scene.is_empty());
    given_back.await.expect("before a ghost would expire");
}
