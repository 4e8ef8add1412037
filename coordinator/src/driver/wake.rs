//! The connection on which a shard speaks by itself.

use std::sync::Arc;

use ringfence_ring::ShardId;
use tracing::debug;

use super::{RECONNECT, Surroundings, Woken};
use crate::{
    backoff::Backoff,
    ids::ClientId,
    shard::{Shard, ShardError},
};

/// Starts the task that listens to `shard`, for as long as the engine runs. What it misses, those who
/// wait find by asking again.
pub(super) fn start(
    id: ShardId,
    shard: Arc<dyn Shard>,
    client: ClientId,
    woken: Woken,
    around: &Surroundings,
) {
    let running = around.clone();
    around.tasks.spawn(async move {
        let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
        let listening = async {
            loop {
                let Err(ended) = listen(&*shard, client, &woken, &mut backoff).await;
                debug!(shard = %id, %ended, "not listening");
                tokio::time::sleep(backoff.next(&running.random)).await;
            }
        };
        running.stop.run_until_cancelled(listening).await;
    });
}

async fn listen(
    shard: &dyn Shard,
    client: ClientId,
    woken: &Woken,
    backoff: &mut Backoff,
) -> Result<std::convert::Infallible, ShardError> {
    let mut wakes = shard.listen(client).await?;
    backoff.reset();
    loop {
        woken(wakes.next().await?);
    }
}
