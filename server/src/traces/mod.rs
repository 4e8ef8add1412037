//! Spans of calls: the method, the id of the request, and the shard of its key.

#[cfg(feature = "otlp")]
mod otlp;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringfence_client::Client;
use tonic::codegen::http;
use tracing::{Span, debug_span, field};

#[cfg(feature = "otlp")]
pub use otlp::{Traces, TracesError};

/// The target of the spans.
pub(crate) const TARGET: &str = "ringfence::call";

/// The header with the caller's own id of a request.
const REQUEST_ID: &str = "x-request-id";

/// Bytes of a caller's id, at most.
const ID_BYTES_MAX: usize = 64;

/// The span of a call.
pub(crate) fn of_call(request: &http::Request<()>) -> Span {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let span = debug_span!(
        target: TARGET,
        "call",
        otel.name = request.uri().path(),
        otel.kind = "server",
        request_id = field::Empty,
        shard = field::Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let own = request.headers().get(REQUEST_ID);
    let own = own.and_then(|id| id.to_str().ok());
    match own.filter(|id| (1..=ID_BYTES_MAX).contains(&id.len())) {
        Some(id) => span.record("request_id", id),
        None => span.record("request_id", CALLS.fetch_add(1, Relaxed)),
    };
    #[cfg(feature = "otlp")]
    otlp::join(&span, request.headers());
    span
}

/// Notes the shard that owns `key` now in the span of the call.
pub(crate) fn shard(client: &Client, namespace: &str, key: &[u8]) {
    let span = Span::current();
    if !span.is_disabled()
        && let Ok(namespace) = ringfence_client::Namespace::new(namespace)
        && let Ok(shard) = client.shard_of(&namespace, key)
    {
        span.record("shard", field::display(shard));
    }
}
