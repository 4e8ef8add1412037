//! A shard whose primary is named by Sentinels.

use ringfence_client::Client;
use ringfence_test_support::{Pair, Sentinel, eventually};

use super::{
    comeback::{Returning, holders_keep_their_locks_and_newcomers_wait},
    take_and_give_back,
};

/// A primary, its replica, and three Sentinels.
struct Watched {
    pair: Pair,
    sentinels: Vec<Sentinel>,
}

impl Watched {
    async fn spawn() -> Self {
        let pair = Pair::spawn().await;
        let sentinels = Sentinel::watch(pair.server(0), 3).await;
        Self { pair, sentinels }
    }
}

impl Returning for Watched {
    fn url(&self) -> String {
        Sentinel::url(&self.sentinels)
    }

    fn redis(&self) -> Option<String> {
        Some(format!("redis://127.0.0.1:{}", self.pair.server(1).port()))
    }

    async fn forget_from_now(&mut self) {
        self.pair.synced().await;
        self.pair.detach(1).await;
    }

    async fn come_back(&mut self) {
        self.pair.kill(0);
        let promoted = self.pair.server(1).port();
        for sentinel in &self.sentinels {
            eventually("the replica is promoted", async || {
                sentinel.primary().await == promoted
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_stale_replica_that_sentinels_promote_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Watched::spawn().await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

#[tokio::test]
async fn one_sentinel_of_three_is_enough_and_without_any_the_connections_go_on() {
    let mut watched = Watched::spawn().await;
    for sentinel in &mut watched.sentinels[..2] {
        sentinel.kill();
    }
    let builder = Client::builder()
        .redis([watched.url()])
        .servers_are_new(true);
    let client = builder.build().await.unwrap();
    take_and_give_back(&client, "key").await;
    watched.sentinels[2].kill();
    take_and_give_back(&client, "key").await;
}
