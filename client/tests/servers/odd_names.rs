//! Names that look like a slot's in what the servers keep.

use ringfence_client::{
    BuildError, Client, NameError, NewShard, Reshape,
    counter::{Amount, Terms},
};
use ringfence_test_support::Servers;

use super::SECOND;

const NAMES: [&str; 5] = ["{7}", "coins/{12}", "{16383}:x", "#{0}", "a:{3}:{7}"];

#[tokio::test]
#[ignore = "long: a resize of three servers"]
async fn names_with_braces_keep_every_coin_and_lock_through_a_resize() {
    let servers = Servers::spawn(3).await;
    let urls = servers.urls();
    let client = builder(&urls[..2]).prefix("shop*[7]:x").build();
    let client = client.await.unwrap();
    let (counters, mut guards) = (client.counters(), Vec::new());
    for name in NAMES {
        let counter = counters.create(name, Terms::in_memory(), 4).await.unwrap();
        for _ in 0..8 {
            let id = counters.new_request();
            let amount = Amount::new(5).unwrap();
            counter.deposit(&id, amount).await.unwrap();
        }
        guards.push(client.lock(name).acquire().await.unwrap());
    }
    let ring = client.ring();
    let removed = client
        .topology()
        .shards
        .first_key_value()
        .unwrap()
        .0
        .0
        .clone();
    for shape in [
        Reshape::new().add_shard(NewShard::redis(&urls[2])),
        Reshape::new().remove_shard(removed),
    ] {
        let resized = ring.reshape(shape).await.unwrap().run().await.unwrap();
        assert!(resized.counters_carried > 0, "{resized:?}");
        for name in NAMES {
            let counter = counters.open(name).unwrap();
            let balance = counter.exact_balance().await.unwrap();
            assert_eq!(balance.available, 40, "{name}");
        }
        assert!(guards.iter().all(|guard| guard.is_held()));
    }
    client.close().await;
}

#[tokio::test]
async fn a_key_prefix_that_looks_like_a_slot_or_a_queue_is_refused() {
    let long = "x".repeat(65);
    for prefix in [
        "shop{7}",
        "a{",
        "a}b",
        "",
        "two words",
        "läden",
        "a:queue",
        "a:tickets",
        &long,
    ] {
        // No server is asked.
        let builder = builder(&["redis://127.0.0.1:1".into()]).prefix(prefix);
        let refused = builder.build().await.unwrap_err();
        assert!(
            matches!(&refused, BuildError::Name(NameError::Prefix(_))),
            "{prefix:?}: {refused:?}"
        );
        let told = refused.to_string();
        assert!(
            told.starts_with("prefix is \"") && told.contains("1 to 64"),
            "{told}"
        );
    }
}

fn builder(urls: &[String]) -> ringfence_client::Builder {
    Client::builder()
        .redis(urls)
        .servers_are_new(true)
        .max_lease(5 * SECOND)
}
