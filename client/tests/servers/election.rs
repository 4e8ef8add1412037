//! Leader election among processes.

use ringfence_client::{Client, ReleaseAnswer};
use ringfence_test_support::Servers;
use tokio::time::timeout;

use super::{DEADLINE, SECOND};

async fn candidate(servers: &Servers, label: &str) -> Client {
    servers.builder().label(label).build().await.unwrap()
}

#[tokio::test]
async fn processes_lead_one_after_the_other_and_a_third_observes() {
    let servers = Servers::spawn(2).await;
    let (one, two) = (
        candidate(&servers, "one").await,
        candidate(&servers, "two").await,
    );
    let observing = candidate(&servers, "observer").await;
    let mut observer = observing.election("scheduler").observe();
    let mut next = async || {
        let leader = timeout(DEADLINE, observer.changed()).await.unwrap();
        leader
            .unwrap()
            .map(|leader| (leader.label.to_string(), leader.token))
    };
    assert_eq!(next().await, None);
    let first = one.election("scheduler").campaign().await.unwrap();
    assert_eq!(next().await, Some(("one".into(), first.token())));
    let election = two.election("scheduler");
    let mut campaign = Box::pin(election.campaign());
    timeout(SECOND / 4, &mut campaign).await.unwrap_err();
    let token = first.token();
    assert_eq!(first.resign().await, ReleaseAnswer::Held);
    let second = timeout(DEADLINE, campaign).await.unwrap().unwrap();
    assert!(second.token() > token);
    assert_eq!(next().await, Some(("two".into(), second.token())));

    // Removed from office by an operator.
    let lock = observing.lock("scheduler").namespace("election");
    lock.force_release("test").await.unwrap();
    timeout(DEADLINE, second.lost()).await.unwrap();
    assert_eq!(second.resign().await, ReleaseAnswer::Lost);
    assert_eq!(next().await, None);
}
