//! A lease that another engine was granted, at one shard: confirmed, or released.

use std::sync::Arc;

use super::{
    super::{AcquireError, ReleaseAnswer},
    Routing, ShardLease,
    confirm::request,
    renewer::LeaseRenewer,
};
use crate::{
    clock::Instant,
    driver::Answered,
    ids::Token,
    shard::{Reply, ShardError},
};

impl ShardLease {
    /// Has the shard of `at` extend its record. Returns the time when the request left; None: it has no such record.
    pub(crate) async fn confirmed(
        &self,
        routing: &Routing,
        token: Token,
        at: &LeaseRenewer,
    ) -> Result<Option<Instant>, AcquireError> {
        let shard = || at.driver.id().to_string();
        let forced = routing.is_to_be_forced(&self.key);
        let confirm = at.request(&self.key, request(self, token, false));
        let Ok(answer) = at.driver.submit(confirm).await else {
            return Err(AcquireError::Closed);
        };
        let Answered { reply, sent } = answer?;
        match reply {
            Reply::Renewed { .. } => Ok(Some(sent)),
            Reply::Lost if !forced => Ok(None),
            Reply::Grace { retry_after } => Err(AcquireError::Grace {
                shard: shard(),
                new: routing.topology().is_new(at.driver.id()),
                retry_after,
            }),
            Reply::Moving { .. } => Err(AcquireError::Moving { shard: shard() }),
            Reply::Lost | Reply::Moved { .. } => {
                routing.refresh();
                Err(AcquireError::Moved)
            }
            reply => {
                let (what, reason) = ("confirm", format!("unexpected answer {reply:?}"));
                Err(ShardError::Refused { what, reason }.into())
            }
        }
    }

    /// Releases it wherever it may be. The future waits for the answer.
    pub(crate) fn release_of_another(
        self: Arc<Self>,
        routing: &Routing,
    ) -> impl Future<Output = ReleaseAnswer> + Send + use<> {
        let route = routing.route(&self.key);
        {
            let mut in_flight = self.in_flight.lock();
            for renewer in route.renewers() {
                in_flight.at(&route.renewer, &renewer).comes();
            }
        }
        self.end_here();
        let answer = self.send_release(false, true);
        async move {
            match answer.await {
                // It may have been at the other shard, which is asked in the background.
                ReleaseAnswer::Lost if route.migration.is_some() => ReleaseAnswer::Unknown,
                answer => answer,
            }
        }
    }
}
