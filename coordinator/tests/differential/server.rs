//! Operations on the server under a shard.

use crate::redis_fixture::Redis;

impl Redis {
    /// Empties the server. The life goes on, without state.
    pub(crate) async fn flush(&self) {
        let mut raw = self.raw().await;
        redis::cmd("FLUSHALL").exec_async(&mut raw).await.unwrap();
        self.point().await;
    }

    /// Takes the state from every life, and leaves the records and queues.
    pub(crate) async fn lose_state(&self) {
        let mut raw = self.raw().await;
        let mut state: Vec<String> = redis::cmd("KEYS")
            .arg("ringfence:life:*")
            .query_async(&mut raw)
            .await
            .unwrap();
        state.retain(|name| !name.ends_with(":queues"));
        if !state.is_empty() {
            redis::cmd("UNLINK")
                .arg(state)
                .exec_async(&mut raw)
                .await
                .unwrap();
        }
    }
}
