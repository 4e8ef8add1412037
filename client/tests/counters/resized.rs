//! Segments, and the shards they are on, change while they are used.

use ringfence_client::{NewShard, Reshape, ShardId};

use super::{account, amount, client_of, deduct_at_once, exact};

#[tokio::test(start_paused = true)]
async fn segments_come_and_go_while_coins_are_taken() {
    let client = client_of(3).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 1000).await;
    let mut taken = 0;
    for segments in [4, 16, 2, 1] {
        let resegment = counter.resegment(segments);
        let (resegmented, served) =
            tokio::join!(resegment, deduct_at_once(&counters, "coins", 100));
        resegmented.unwrap();
        taken += served as i128;
    }
    assert_eq!(exact(&counter).await, 1000 - taken);
    assert_eq!(taken, 400);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn shards_come_and_go_while_coins_are_taken_and_segments_change() {
    let client = client_of(3).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 8, 1000).await;
    let other = account(&counters, "other", 2, 0).await;
    let ring = client.ring();
    let (mut taken, mut carried) = (0, 0);
    let d: ShardId = "d".parse().unwrap();
    let shapes = [
        Reshape::new().add_shard(NewShard::embedded()),
        Reshape::new().remove_shard("a".parse().unwrap()),
        Reshape::new().remove_shard(d),
    ];
    for (shape, segments) in shapes.into_iter().zip([16, 2, 5]) {
        let resize = ring.reshape(shape).await.unwrap();
        let (resized, resegmented, served) = tokio::join!(
            resize.run(),
            counter.resegment(segments),
            deduct_at_once(&counters, "coins", 100),
        );
        resegmented.unwrap();
        carried += resized.unwrap().counters_carried;
        taken += served as i128;
        let id = counters.new_request();
        counter.transfer(&id, amount(10), &other).await.unwrap();
    }
    assert_eq!(taken, 300);
    assert!(carried > 8, "{carried}");
    assert_eq!((exact(&counter).await, exact(&other).await), (670, 30));
    client.close().await;
}
