//! The connection on which a shard sends messages.

use std::{convert::Infallible, sync::Arc};

use ringfence_ring::ShardId;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::{Callback, Context, RECONNECT, membership::Membership};
use crate::{
    backoff::Backoff,
    ids::ClientId,
    shard::{Shard, ShardError},
};

/// Receives the notifications of a shard.
pub(super) struct Listener {
    pub(super) id: ShardId,
    pub(super) shard: Arc<dyn Shard>,
    pub(super) client: ClientId,
    pub(super) callback: Callback,
    pub(super) membership: Arc<Membership>,
}

impl Listener {
    /// Starts the task that listens, as long as the engine runs. Waiters find missed messages by
    /// asking again.
    pub(super) fn start(self, around: &Context) {
        let running = around.clone();
        around.tasks.spawn(async move {
            let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
            let listening = async {
                loop {
                    let Err(ended) = self.listen(&mut backoff).await;
                    debug!(shard = %self.id, %ended, "not listening");
                    sleep(backoff.next(&running.random)).await;
                }
            };
            running.stop.run_until_cancelled(listening).await;
        });
    }

    /// Listens until the connection ends, or the topology names another life than the connection's.
    async fn listen(&self, backoff: &mut Backoff) -> Result<Infallible, ShardError> {
        let mut subscription = self.shard.listen(self.client).await?;
        backoff.reset();
        let life = subscription.life().clone();
        let mut present = self.membership.watch();
        let mut was_named = false;
        let named_by = Instant::now() + RECONNECT.1;
        loop {
            let is_named = present.borrow_and_update().life == life;
            if was_named && !is_named {
                return Err(ShardError::Unarmed);
            }
            was_named = is_named;
            tokio::select! {
                biased;
                _ = present.changed() => {}
                notification = subscription.next() => {
                    let notification = notification?;
                    if self.membership.believes(&life, &notification) {
                        (self.callback)(notification);
                    }
                }
                // The topology may be about to name it.
                () = sleep_until(named_by), if !is_named => return Err(ShardError::Unarmed),
            }
        }
    }
}
