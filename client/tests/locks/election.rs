//! Leader election.

use std::time::Duration;

use ringfence_client::{AcquireError, Client, Danger, Leader, ReleaseAnswer};
use tokio::time::{Instant, timeout};

use super::{SECOND, client_of, faults};

fn labelled(leader: Option<&Leader>) -> Option<&str> {
    leader.map(|leader| leader.label.as_str())
}

/// A client of one shard that answers in time, and its election.
async fn stage() -> Client {
    let client = client_of(1).await;
    faults(&client).latency(Duration::from_millis(1)..Duration::from_millis(2));
    client
}

#[tokio::test(start_paused = true)]
async fn candidates_lead_in_their_order_with_rising_tokens() {
    let client = stage().await;
    let election = |label| client.election("scheduler").label(label);
    let first = election("one").campaign().await.unwrap();
    let refused = election("two").try_campaign().await;
    assert!(matches!(refused, Err(AcquireError::Held { .. })));
    let (two, three) = (election("two"), election("three"));
    let (mut second, mut third) = (Box::pin(two.campaign()), Box::pin(three.campaign()));
    timeout(SECOND, &mut second).await.unwrap_err();
    timeout(SECOND, &mut third).await.unwrap_err();
    let token = first.token();
    assert_eq!(first.resign().await, ReleaseAnswer::Held);
    let second = timeout(SECOND, second).await.unwrap().unwrap();
    assert!(second.token() > token && second.is_held());
    timeout(SECOND, &mut third).await.unwrap_err();
    drop(second);
    timeout(SECOND, third)
        .await
        .unwrap()
        .unwrap()
        .resign()
        .await;
    assert_eq!(two.leader().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_each_leader_within_a_second() {
    let client = stage().await;
    let election = client.election("scheduler");
    let mut observer = election.observe();
    let within = async |observer: &mut ringfence_client::Observer| {
        let began = Instant::now();
        let leader = timeout(10 * SECOND, observer.changed()).await.unwrap();
        (leader.unwrap(), began.elapsed() <= SECOND + SECOND / 10)
    };
    assert_eq!(within(&mut observer).await, (None, true));
    for label in ["one", "two"] {
        let leadership = election.clone().label(label).campaign().await.unwrap();
        let (leader, soon) = within(&mut observer).await;
        assert!(soon && labelled(leader.as_ref()) == Some(label));
        assert_eq!(leader.unwrap().token, leadership.token());
        // Nothing changes.
        timeout(5 * SECOND, observer.changed()).await.unwrap_err();
        leadership.resign().await;
        assert_eq!(within(&mut observer).await, (None, true));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_goes_on_after_an_error() {
    let client = stage().await;
    let election = client.election("scheduler").label("one");
    let mut observer = election.observe();
    assert_eq!(observer.changed().await.unwrap(), None);
    let _leadership = election.campaign().await.unwrap();
    faults(&client).unreachable(true);
    faults(&client).hang_up();
    let failed = timeout(30 * SECOND, observer.changed()).await.unwrap();
    assert!(failed.unwrap_err().is_retryable());
    faults(&client).unreachable(false);
    let next = timeout(30 * SECOND, async {
        loop {
            if let Ok(leader) = observer.changed().await {
                break leader;
            }
        }
    });
    assert_eq!(labelled(next.await.unwrap().as_ref()), Some("one"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_warned_before_the_end_and_told_at_the_end() {
    let client = stage().await;
    let election = client.election("scheduler").lease(3 * SECOND);
    let leadership = election.campaign().await.unwrap();
    faults(&client).stall();
    let danger = timeout(5 * SECOND, leadership.danger()).await.unwrap();
    assert!(matches!(
        danger,
        Danger::RenewalFailed | Danger::NearDeadline
    ));
    assert!(leadership.is_held(), "warned too late");
    timeout(5 * SECOND, leadership.lost()).await.unwrap();
    assert!(!leadership.is_held());
    assert_eq!(leadership.resign().await, ReleaseAnswer::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_campaign_that_is_dropped_or_over_leaves_no_leader() {
    let client = stage().await;
    let election = client.election("scheduler").wait(SECOND);
    let leadership = election.campaign().await.unwrap();
    let late = election.campaign().await.unwrap_err();
    assert!(matches!(late, AcquireError::TimedOut { .. }));
    timeout(SECOND / 2, election.campaign()).await.unwrap_err();
    drop(leadership);
    let lock = client.lock("scheduler").namespace("election");
    timeout(SECOND, async {
        while lock.inspect().await.unwrap().holder.is_some() {}
    })
    .await
    .unwrap();
}
