//! Servers that speak TLS, and a user with exactly the rights that docs/operate/servers.md lists.

use ringfence_client::{Client, ReleaseAnswer};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Secured, eventually};

use super::{DEADLINE, SECOND};

#[tokio::test]
async fn certificates_and_the_rights_that_the_readme_lists_are_enough() {
    let secured = Secured::default();
    let (mut servers, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (server, port) = secured.spawn(RedisServer::builder()).await;
        servers.push(server);
        urls.push(secured.url(port, true));
    }
    let builder = |urls: &[String]| Client::builder().redis(urls.to_vec()).servers_are_new(true);
    let founder = builder(&urls).build().await.unwrap();
    // What the record says of the other server is enough to reach it: certificates are one's own.
    let client = builder(&urls[..1]).build().await.unwrap();
    assert_eq!(client.topology(), founder.topology());
    let mut guards = Vec::new();
    for index in 0..10 {
        let key = format!("key/{index}");
        let lock = client.lock(&key).lease(6 * SECOND).wait(DEADLINE);
        guards.push((lock.acquire().await.unwrap(), key));
    }
    for (guard, _) in &guards {
        let before = guard.deadline();
        eventually("renewed", async || guard.deadline() > before).await;
    }
    for (guard, key) in guards {
        let found = founder.lock(&key).inspect().await.unwrap().holder;
        assert_eq!(found.map(|found| found.token), Some(guard.token()));
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    let shards = client.shards().await;
    assert!(
        shards.values().all(|shard| shard.error.is_none()),
        "{shards:?}"
    );
    let shown = format!("{:?} {:?}", builder(&urls), client.topology());
    assert!(
        !shown.contains("s3cret") && !shown.contains(".key"),
        "{shown}"
    );
}
