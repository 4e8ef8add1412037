//! Spans for a collector of OpenTelemetry.

use std::{env, io, time::Duration};

use opentelemetry::{
    propagation::{Extractor, TextMapPropagator},
    trace::TracerProvider,
};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::runtime::{self, Runtime};
use tonic::codegen::http::HeaderMap;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::TARGET;

/// The variables that name the collector.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// The last spans have this long to be sent.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// Sends the spans of calls to a collector. Dropping it sends the last ones, for at most 2 s.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    /// Of the connection to the collector.
    runtime: Runtime,
}

/// Traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The settings of the collector cannot be used.
    #[error("the variables OTEL_EXPORTER_OTLP_… cannot be used")]
    Exporter(#[from] ExporterBuildError),
    /// The system refused a thread.
    #[error("the system refused")]
    System(#[from] io::Error),
}

impl Traces {
    /// To the collector that the variables of OpenTelemetry name (`OTEL_EXPORTER_OTLP_ENDPOINT`, gRPC), as the
    /// service `OTEL_SERVICE_NAME` (default: `ringfence`). None: they name no collector.
    ///
    /// # Errors
    ///
    /// [`TracesError`]. A collector that does not answer is no error: its spans are lost.
    pub fn from_env() -> Result<Option<Self>, TracesError> {
        if ENDPOINTS.iter().all(|name| env::var_os(name).is_none()) {
            return Ok(None);
        }
        let mut runtime = runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build()?;
        let exporter = {
            let _inside = runtime.enter();
            SpanExporter::builder().with_tonic().build()?
        };
        let resource = Resource::builder();
        let resource = match env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name("ringfence"),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self { provider, runtime }))
    }

    /// The layer that collects the spans.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.provider.tracer("ringfence");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        layer.with_filter(filter_fn(|metadata| metadata.target() == TARGET))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _inside = self.runtime.enter();
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_WITHIN) {
            tracing::warn!(%error, "the last traces are not sent");
        }
    }
}

/// Makes `span` a part of the caller's trace, if `headers` name one.
pub(super) fn join(span: &Span, headers: &HeaderMap) {
    let trace = TraceContextPropagator::new().extract(&Headers(headers));
    // A span that is not sent has no parent.
    let _ = span.set_parent(trace);
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
