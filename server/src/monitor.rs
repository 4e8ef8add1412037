//! Numbers and health over HTTP, on a port of their own, for every caller. The dashboard is on the same port.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{
    connections::Requests,
    dashboard::{self, Dashboard},
    readiness::Readiness,
};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct Monitor {
    registry: Registry,
    readiness: Readiness,
}

/// Serves the numbers of `registry`, and the dashboard or the reason why there is none, at `listener`, if there is one. Ends
/// only if the system fails.
pub(crate) async fn serve(
    listener: Option<Requests>,
    registry: Registry,
    readiness: Readiness,
    dashboard: Result<Arc<Dashboard>, &'static str>,
) {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let monitor = Arc::new(Monitor {
        registry,
        readiness,
    });
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(ready))
        .with_state(monitor);
    let served = match dashboard {
        Ok(dashboard) => {
            let router = router.merge(dashboard.clone().router());
            tokio::select! {
                served = axum::serve(listener, router) => served,
                () = dashboard.run() => Ok(()),
            }
        }
        Err(reason) => axum::serve(listener, router.merge(dashboard::off(reason))).await,
    };
    if let Err(error) = served {
        tracing::error!(%error, "the monitor failed");
    }
}

async fn metrics(State(monitor): State<Arc<Monitor>>) -> impl IntoResponse {
    let mut text = String::new();
    match encode(&mut text, &monitor.registry) {
        Ok(()) => Ok(([(CONTENT_TYPE, OPEN_METRICS)], text)),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn ready(State(monitor): State<Arc<Monitor>>) -> (StatusCode, String) {
    match monitor.readiness.why_not() {
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        None => (StatusCode::OK, "ok\n".into()),
    }
}
