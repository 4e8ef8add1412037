//! Calls over HTTP with JSON, for callers without gRPC. A call becomes the same call over gRPC, inside the process: its caller,
//! roles, limits and numbers are looked after there.
//!
//! ```text
//! POST /v1/locks/acquire ─ JSON ─► message ─► routes of gRPC ─► message ─► JSON
//! ```
//!
//! | file | content |
//! |---|---|
//! | `message.rs` | messages as JSON |
//! | `refused.rs` | the answer to a call that failed |
//! | `openapi.rs` | describes the calls: `docs/openapi.json` |

mod message;
#[cfg(test)]
mod openapi;
mod refused;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream};
use prost::{Message as _, bytes::Bytes};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use ringfence_api::{DESCRIPTORS, Error, MESSAGE_BYTES_MAX};
use tokio::time::timeout;
use tonic::{
    Code, Status, Streaming,
    codec::{DecodeBuf, Decoder},
    service::Routes,
};
use tower::ServiceExt as _;

use self::refused::Refused;

/// The services: their paths, and the noun that their methods may end with.
const SERVICES: [(&str, &str, &str); 3] = [
    ("LockService", "/v1/locks", ""),
    ("CounterService", "/v1/accounts", "Account"),
    ("LatchService", "/v1/latches", "Latch"),
];

/// A body that is not complete by then is refused.
const BODY_WITHIN: Duration = Duration::from_secs(10);

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// The types of the API.
static TYPES: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("the build has compiled it"));

struct Json {
    /// By path.
    methods: BTreeMap<String, MethodDescriptor>,
    calls: Router,
}

/// `routes`, and the same calls with JSON.
pub(crate) fn with(routes: Routes) -> Routes {
    let calls = routes.into_axum_router();
    let json = Arc::new(Json {
        methods: methods(),
        calls: calls.clone(),
    });
    let answer = |request: Request| async move { json.answer(request).await };
    calls.fallback(answer).into()
}

fn methods() -> BTreeMap<String, MethodDescriptor> {
    let mut methods = BTreeMap::new();
    for (service, path, noun) in SERVICES {
        let service = TYPES.get_service_by_name(&format!("ringfence.v1.{service}"));
        for method in service.expect("it is in the API").methods() {
            let verb = method.name();
            let of_one = verb.strip_suffix(noun);
            let of_many = || verb.strip_suffix(&*format!("{noun}s"));
            let verb = message::words(of_one.or_else(of_many).unwrap_or(verb), '-');
            methods.insert(format!("{path}/{}", verb.to_lowercase()), method);
        }
    }
    methods
}

impl Json {
    async fn answer(&self, request: Request) -> Response {
        if content_type(request.headers()).starts_with("application/grpc") {
            let answered = self.calls.clone().oneshot(request).await;
            return answered.unwrap_or_else(|never| match never {});
        }
        let answered = self.call(request).await;
        answered.unwrap_or_else(IntoResponse::into_response)
    }

    async fn call(&self, request: Request) -> Result<Response, Refused> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path();
        let method = self.methods.get(path).ok_or_else(|| {
            let limit = "that of a call in docs/openapi.json";
            Refused::with(StatusCode::NOT_FOUND, "path", path, limit)
        })?;
        if parts.method != Method::POST {
            let (code, verb) = (StatusCode::METHOD_NOT_ALLOWED, parts.method.as_str());
            return Err(Refused::with(code, "method", verb, "POST"));
        }
        let kind = content_type(&parts.headers);
        if !kind.eq_ignore_ascii_case(JSON) {
            let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Refused::with(code, "content-type", kind, JSON));
        }
        let call = format!("/{}/{}", method.parent_service().full_name(), method.name());
        parts.uri = call.parse().expect("names are letters and dots");
        parts.headers.insert(CONTENT_TYPE, GRPC);
        // It is read once the caller is known.
        let body = Body::from_stream(stream::once(read(method.input(), body)));
        let request = Request::from_parts(parts, body);
        let answer = self.calls.clone().oneshot(request).await;
        let (head, body) = answer.unwrap_or_else(|never| match never {}).into_parts();
        if let Some(status) = Status::from_header_map(&head.headers)
            && status.code() != Code::Ok
        {
            return Err(status.into());
        }
        let of = Messages(method.output());
        let mut answers = Streaming::new_response(of, body, head.status, None, Some(usize::MAX));
        // An error that comes first is that of the whole call.
        let first = answers.message().await?;
        if method.is_server_streaming() {
            let lines = lines(stream::iter(first.map(Ok)).chain(answers));
            return Ok((headers(LINES), Body::from_stream(lines)).into_response());
        }
        let answer = first.ok_or_else(|| Status::internal("no answer"))?;
        Ok((headers(JSON), message::write(&answer).to_string()).into_response())
    }
}

/// Without its parameters.
fn content_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// Handles are secrets.
fn headers(kind: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ])
}

/// Reads a message of type `of`, as the body of a call over gRPC.
async fn read(of: MessageDescriptor, body: Body) -> Result<Bytes, Status> {
    let read = timeout(BODY_WITHIN, to_bytes(body, MESSAGE_BYTES_MAX)).await;
    let read = read.map_err(|_| {
        let value = format!("incomplete after {BODY_WITHIN:?}");
        Error::invalid("body", value, "sent at once")
    })?;
    let json = read.map_err(|_| too_long())?;
    let json = serde_json::from_slice(&json).map_err(|error| {
        let value = format!("malformed ({error})");
        Error::invalid("body", value, "JSON")
    })?;
    let message = message::read(&of, &json)?.encode_to_vec();
    let length = u32::try_from(message.len()).expect("it is shorter than its JSON");
    // Not compressed.
    Ok([&[0], &length.to_be_bytes()[..], &message].concat().into())
}

/// Its code tells it from other input that is refused.
fn too_long() -> Status {
    let limit = format!("at most {MESSAGE_BYTES_MAX} bytes");
    let status = Status::from(Error::invalid("body", "longer", limit));
    let details = Bytes::copy_from_slice(status.details());
    Status::with_details(Code::OutOfRange, status.message(), details)
}

/// One line per answer, as they come.
fn lines(
    answers: impl Stream<Item = Result<DynamicMessage, Status>>,
) -> impl Stream<Item = Result<String, Infallible>> {
    answers.map(|answer| {
        let line = match answer {
            Ok(answer) => message::write(&answer),
            Err(status) => Refused::from(status).body(),
        };
        Ok(format!("{line}\n"))
    })
}

/// Messages of a type.
struct Messages(MessageDescriptor);

impl Decoder for Messages {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let decoded = DynamicMessage::decode(self.0.clone(), buffer);
        let decoded = decoded.map_err(|error| Status::internal(error.to_string()));
        decoded.map(Some)
    }
}
