//! The ring is reshaped while locks are held.

use ringfence_client::{NewShard, Reshape, ReshapeError, ResizeError, Weight};

use super::{client_of, held};

#[tokio::test(start_paused = true)]
async fn shards_come_weigh_and_go_and_no_lock_is_lost() {
    let client = client_of(3).await;
    let mut guards = Vec::new();
    for number in 0..50 {
        guards.push(held(&client, &format!("key/{number}")).await);
    }
    let ring = client.ring();
    let d = "d".parse().unwrap();
    let shapes = [
        Reshape::new().add_shard(NewShard::embedded()),
        Reshape::new().weigh_shard(d, Weight::new(3).unwrap()),
        Reshape::new().remove_shard("d".parse().unwrap()),
    ];
    for shape in shapes {
        let resized = ring.reshape(shape).await.unwrap().run().await.unwrap();
        assert!(resized.slots_moved > 0);
        assert!(guards.iter().all(ringfence_client::Guard::is_held));
    }
    assert_eq!(client.topology().shards.len(), 3);
    for number in 0..50 {
        let key = format!("key/{number}");
        assert!(client.lock(&key).try_acquire().await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn one_resize_at_a_time_and_any_may_be_turned_back() {
    let client = client_of(2).await;
    let before = client.topology().table.quotas();
    let ring = client.ring();
    let grow = || Reshape::new().add_shard(NewShard::embedded());
    drop(ring.reshape(grow()).await.unwrap());
    let refused = ring.reshape(grow()).await.unwrap_err();
    assert!(
        matches!(refused, ReshapeError::Refused(ResizeError::UnderWay { .. })),
        "{refused}"
    );
    assert_eq!(client.faults().len(), 3, "no fourth was made");
    ring.abort().await.unwrap().run().await.unwrap();
    assert_eq!(client.topology().table.quotas(), before);
    let refused = ring.abort().await.unwrap_err();
    assert!(
        matches!(refused, ReshapeError::Refused(ResizeError::NoneUnderWay)),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn servers_do_not_join_embedded_shards() {
    let client = client_of(1).await;
    let server = NewShard::redis("redis://127.0.0.1:1");
    let refused = client
        .ring()
        .reshape(Reshape::new().add_shard(server))
        .await;
    assert!(matches!(refused, Err(ReshapeError::OtherKind(_))));
}
