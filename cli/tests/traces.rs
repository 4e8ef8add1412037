//! `ringfence serve` sends traces to a collector of OpenTelemetry.

use std::sync::Arc;

use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use parking_lot::Mutex;
use ringfence_api::v1::{AcquireRequest, lock_service_client::LockServiceClient};
use ringfence_client::Namespace;
use ringfence_test_support::eventually;
use tokio::{net::TcpListener, task::JoinSet};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    binary::{command, output},
    serve::{Coordinator, founded},
};

/// A collector: the spans that it got.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        self.0.lock().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let its = |pair: &&KeyValue| pair.key == name;
    match span
        .attributes
        .iter()
        .find(its)?
        .value
        .as_ref()?
        .value
        .as_ref()?
    {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// The caller's trace.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

impl Collector {
    /// Serves at this URL, until the tasks are dropped.
    async fn start(&self) -> (String, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        let served = TraceServiceServer::new(self.clone());
        serving.spawn(async {
            let server = Server::builder().add_service(served);
            let connections = TcpIncoming::from(listener);
            server.serve_with_incoming(connections).await.unwrap();
        });
        (endpoint, serving)
    }

    /// The acquisitions.
    fn acquires(&self) -> Vec<Span> {
        let spans = self.0.lock();
        let acquires = spans.iter();
        let acquires = acquires.filter(|span| span.name == "/ringfence.v1.LockService/Acquire");
        acquires.cloned().collect()
    }
}

fn acquire(key: &str) -> Request<AcquireRequest> {
    Request::new(AcquireRequest {
        key: key.into(),
        ..AcquireRequest::default()
    })
}

/// As [`acquire`], in the caller's trace.
fn traced(key: &str) -> Request<AcquireRequest> {
    let mut request = acquire(key);
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = request.metadata_mut();
    headers.insert("traceparent", parent.parse().unwrap());
    headers.insert("x-request-id", "job-7".parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_a_span_of_its_callers_trace_with_its_shard() {
    let collector = Collector::default();
    let (endpoint, _serving) = collector.start().await;
    let servers = founded().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let coordinator = Coordinator::start_with(&servers.urls(), "", &environment);
    let mut locks = LockServiceClient::connect(coordinator.url.clone())
        .await
        .unwrap();
    locks.acquire(traced("key")).await.unwrap();
    let is_sent = async || !collector.acquires().is_empty();
    eventually("the span is sent", is_sent).await;
    let span = collector.acquires().remove(0);
    let trace = span.trace_id.iter().map(|byte| format!("{byte:02x}"));
    assert_eq!(trace.collect::<String>(), TRACE);
    let client = servers.client().await;
    let shard = client.shard_of(&Namespace::default(), "key").unwrap();
    assert_eq!(text(&span, "shard"), Some(shard.as_str()));
    assert_eq!(text(&span, "request_id"), Some("job-7"));
    let has_key = |pair: &KeyValue| format!("{pair:?}").contains("\"key\"");
    assert!(!span.attributes.iter().any(has_key));

    // The last ones leave at the end.
    locks.acquire(acquire("other")).await.unwrap();
    coordinator.signal(Signal::SIGTERM);
    let are_sent = async || collector.acquires().len() == 2;
    eventually("the last span is sent", are_sent).await;
}

#[test]
fn a_collector_without_a_usable_address_is_refused() {
    let mut misconfigured = command(&["dev", "--port", "0"]);
    misconfigured.env("OTEL_EXPORTER_OTLP_ENDPOINT", "not a URL");
    let refused = output(&mut misconfigured);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("OTEL_EXPORTER_OTLP"), "{refused:?}");
}
