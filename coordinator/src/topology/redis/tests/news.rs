//! What a home is heard to say.

use std::sync::Arc;

use tokio::time::timeout;

use super::*;
use crate::topology::redis::news::News;

/// Whoever waits longer waits in vain.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn there_is_a_look_behind_the_moment_from_which_on_everything_is_heard() {
    let server = Server::spawn().await;
    let creating = server.claimed(1).await;
    let mut next = active(&creating);
    let Server { member, .. } = server;
    let (home, news) = (Arc::new(member), News::default());
    let heard = timeout(SOON, news.of(&home, creating.version())).await;
    heard.expect("nobody listened until now");

    let quiet = timeout(
        Duration::from_millis(100),
        news.of(&home, creating.version()),
    )
    .await;
    assert!(quiet.is_err(), "nothing was said");
    let mut known = creating;
    for _ in 0..2 {
        let swapped = home.swap(known.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swapped::Done), "{swapped:?}");
        let heard = timeout(SOON, news.of(&home, known.version())).await;
        heard.expect("it was said");
        known = next;
        next = active(&known);
    }
    let quiet = timeout(Duration::from_millis(100), news.of(&home, known.version())).await;
    assert!(quiet.is_err(), "nothing else was said");
}
