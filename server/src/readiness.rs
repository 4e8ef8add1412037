//! Whether a coordinator is ready for calls: for load balancers, over gRPC and HTTP.

use std::time::Duration;

use ringfence_api::v1::{
    admin_service_server, counter_service_server, latch_service_server, lock_service_server,
    session_service_server,
};
use ringfence_client::{Client, EngineMetrics};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(250);

/// What health checks ask for: the coordinator, or one of its services. All are ready, or none.
const SERVICES: [&str; 6] = [
    "",
    admin_service_server::SERVICE_NAME,
    counter_service_server::SERVICE_NAME,
    latch_service_server::SERVICE_NAME,
    lock_service_server::SERVICE_NAME,
    session_service_server::SERVICE_NAME,
];

/// Whether a coordinator is ready.
#[derive(Clone)]
pub(crate) struct Readiness {
    metrics: EngineMetrics,
    /// It grants no new locks.
    stopping: CancellationToken,
}

impl Readiness {
    /// Of the coordinator with `client`, until it is `stopping`.
    pub(crate) fn of(client: &Client, stopping: &CancellationToken) -> Self {
        Self {
            metrics: client.metrics(),
            stopping: stopping.clone(),
        }
    }

    /// Why it is not ready.
    pub(crate) fn why_not(&self) -> Option<&'static str> {
        if self.stopping.is_cancelled() {
            return Some("stopping");
        }
        let reading = self.metrics.read();
        let reaches_a_shard =
            reading.is_some_and(|reading| reading.shards.iter().any(|shard| shard.is_up));
        (!reaches_a_shard).then_some("no connection to any shard")
    }

    /// Tells `health` of each change, until it is dropped.
    pub(crate) async fn tell(self, health: HealthReporter) {
        let mut told = None;
        loop {
            let is_ready = self.why_not().is_none();
            if told.replace(is_ready) != Some(is_ready) {
                let status = match is_ready {
                    true => ServingStatus::Serving,
                    false => ServingStatus::NotServing,
                };
                for service in SERVICES {
                    health.set_service_status(service, status).await;
                }
            }
            tokio::select! {
                () = sleep(EVERY) => {}
                () = self.stopping.cancelled(), if is_ready => {}
            }
        }
    }
}
