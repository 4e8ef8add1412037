//! The announcements of a home.

use tokio::time::timeout;

use super::*;
use crate::topology::server::news::News;

/// The limit of every wait in these tests.
const SOON: Duration = Duration::from_secs(10);

/// Waits for a reason to look at `home` beyond the first `reasons`.
async fn hear(news: &News, reasons: u64, home: &Arc<Member>) {
    let heard = timeout(SOON, news.since(reasons, home)).await;
    heard.expect("there is a reason to look");
}

async fn hear_nothing(news: &News, home: &Arc<Member>) {
    let since = news.since(news.reasons(), home);
    let quiet = timeout(Duration::from_millis(100), since).await;
    assert!(quiet.is_err(), "nothing was said");
}

#[tokio::test]
async fn there_is_a_look_behind_the_moment_from_which_on_everything_is_heard() {
    let server = Server::spawn().await;
    let mut known = server.claimed(1).await;
    let Server { member, .. } = server;
    let (home, news) = (member, News::default());
    hear(&news, news.reasons(), &home).await;

    hear_nothing(&news, &home).await;
    for _ in 0..2 {
        let next = active(&known);
        let swapped = home.swap(known.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swapped::Done), "{swapped:?}");
        hear(&news, news.reasons(), &home).await;
        known = next;
    }
    hear_nothing(&news, &home).await;
}

#[tokio::test]
async fn news_reach_all_that_looked_before() {
    let server = Server::spawn().await;
    let known = server.claimed(1).await;
    let Server { member, .. } = server;
    let (home, news) = (member, News::default());
    hear(&news, news.reasons(), &home).await;

    let looked = news.reasons();
    let swap = async {
        let swapped = home.swap(known.version(), &active(&known)).await.unwrap();
        assert!(matches!(swapped, Swapped::Done), "{swapped:?}");
    };
    let waiting = || hear(&news, looked, &home);
    tokio::join!(waiting(), waiting(), swap);
    // The look was slow.
    waiting().await;
    hear_nothing(&news, &home).await;
}
