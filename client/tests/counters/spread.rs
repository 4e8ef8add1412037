//! Segments of one account are spread over the shards.

use std::collections::BTreeMap;

use ringfence_client::Namespace;

use super::{account, client_of};

#[tokio::test(start_paused = true)]
async fn no_shard_has_more_than_its_part_of_an_accounts_segments_and_one() {
    for (shards, segments) in [(1, 4), (2, 5), (3, 16), (4, 4), (4, 16)] {
        let client = client_of(shards).await;
        let counter = account(&client.counters(), "coins", 1, 0).await;
        counter.resegment(segments).await.unwrap();
        let manifest = counter.at_shards().unwrap().read_manifest().await.unwrap();
        let mut counts = BTreeMap::new();
        for index in 0..manifest.segments() {
            let key = format!("coins#{index}.{}", manifest.place_of(index));
            let shard = client.shard_of(&Namespace::default(), key).unwrap();
            *counts.entry(shard).or_insert(0) += 1;
        }
        let most = segments.div_ceil(shards as u32) + 1;
        assert_eq!(counts.values().sum::<u32>(), segments);
        assert!(counts.values().all(|count| *count <= most), "{counts:?}");
        client.close().await;
    }
}
