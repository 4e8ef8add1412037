//! Which locks are held, among all that a server has.

use std::collections::BTreeSet;

use ringfence_client::Client;
use ringfence_test_support::Servers;

async fn listed(client: &Client) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut locks = client.locks(None).unwrap();
    while let Some(page) = locks.next().await {
        found.extend(page.locks.unwrap().iter().map(|lock| lock.key.to_string()));
    }
    found
}

#[tokio::test]
async fn locks_of_another_prefix_are_not_listed() {
    let servers = Servers::spawn(1).await;
    let mut clients = Vec::new();
    for prefix in ["a", "a*", "ab", "[ab]", r"a\*"] {
        let client = servers.builder().prefix(prefix).build().await.unwrap();
        let guard = client.lock(prefix).acquire().await.unwrap();
        clients.push((prefix, client, guard));
    }
    for (prefix, client, _) in &clients {
        let expected = BTreeSet::from([prefix.to_string()]);
        assert_eq!(listed(client).await, expected, "{prefix}");
    }
}

#[tokio::test]
async fn foreign_keys_are_not_listed_and_hide_no_lock() {
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let guard = client.lock("key").acquire().await.unwrap();
    let names: Vec<String> = servers.ask(0, &["KEYS", "ringfence:{*"]).await;
    let [name] = &names[..] else {
        panic!("{names:?}")
    };
    let queue = name.replace("ringfence:", "ringfence:queue:");
    let record: String = servers.ask(0, &["GET", name]).await;
    for words in [
        &["SET", &queue, "not a queue"][..],
        &["SET", "ringfence:{1}:default:text", "not a record"],
        &["HSET", "ringfence:{1}:default:hash", "not", "a record"],
        &["SET", "ringfence:{1}:Default:key", &record],
        &["SET", "ringfence:{99999}:default:key", &record],
        &["SET", "ringfence:{1}:nothing more", &record],
    ] {
        servers.ask::<redis::Value>(0, words).await;
    }
    assert_eq!(listed(&client).await, BTreeSet::from(["key".to_owned()]));
    let found = client.lock("key").inspect().await.unwrap();
    assert_eq!(found.holder.unwrap().token, guard.token());
    assert_eq!(found.waiters, []);
    for key in ["text", "hash"] {
        assert_eq!(client.lock(key).inspect().await.unwrap().holder, None);
    }
}
