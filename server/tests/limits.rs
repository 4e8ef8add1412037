//! Limits, health and reflection.

use std::{
    collections::HashSet,
    io::ErrorKind,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use http_body::{Body, Frame};
use prost::Message as _;
use prost_types::{FileDescriptorProto, ServiceDescriptorProto};
use ringfence_api::{
    Effect, Error, Reason,
    v1::{
        ReleaseRequest, SessionRequest, SessionTerms, lock_service_client::LockServiceClient,
        session_service_client::SessionServiceClient,
    },
};
use ringfence_server::Roles;
use ringfence_test_support::eventually;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tonic::{
    Code, Status,
    client::GrpcService,
    codegen::{Bytes, http},
    transport::Channel,
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::{
    v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    },
    v1alpha::{
        self, server_reflection_request::MessageRequest as FormerRequest,
        server_reflection_response::MessageResponse as FormerResponse,
    },
};

use super::{
    access::{limited as too_many, principal, with},
    monitor::counted,
    scene::{Scene, acquire, ask},
};

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused() {
    let scene = Scene::set().await;
    let locks = scene.locks().await;
    let mut large = ask("key", 1000, None);
    large.label = "x".repeat(64 * 1024);
    let length = large.encoded_len();
    scene
        .reaches_no_shard(async || {
            let refused = acquire(&mut locks.clone(), large.clone())
                .await
                .unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
            says_too_long(&refused, length);
        })
        .await;
    let message = SessionRequest {
        terms: Some(SessionTerms {
            label: "x".repeat(64 * 1024),
            ttl: None,
        }),
        asks: Vec::new(),
    };
    let length = message.encoded_len();
    let mut sessions = SessionServiceClient::new(scene.channel().await);
    let session = sessions.session(futures_util::stream::iter([message]));
    let answered = session.await.unwrap().into_inner().message().await;
    says_too_long(&answered.unwrap_err(), length);
}

fn says_too_long(refused: &Status, length: usize) {
    let error = Error::from_status(refused);
    assert_eq!(error.reason, Reason::InvalidInput);
    assert!(!error.is_retryable && error.effect == Effect::None);
    let input = error.input.unwrap();
    let said = (&*input.field, &*input.value, &*input.limit);
    let value = format!("{length} bytes");
    assert_eq!(said, ("message", &*value, "at most 65536 bytes"));
}

/// HTTP/2, section 4.2: a frame has at most 16 KiB, unless the receiver allows more.
#[tokio::test]
async fn a_frame_beyond_the_limit_ends_its_connection() {
    const FRAME_BYTES_MAX: u32 = 16 * 1024;
    const HEADERS: u8 = 1;
    const GOAWAY: u8 = 7;
    const FRAME_SIZE_ERROR: u32 = 6;
    let scene = Scene::set().await;
    let address = scene.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();
    // Only its head: the frame is refused before it is read.
    let length = &(FRAME_BYTES_MAX + 1).to_be_bytes()[1..];
    let head = [length, &[HEADERS, 4, 0, 0, 0, 1]].concat();
    stream.write_all(&head).await.unwrap();
    let mut code = None;
    let frames = async {
        while let Ok(length) = stream.read_u32().await {
            // The length has 3 bytes, the type 1; then come 1 byte of flags and 4 of the stream.
            let mut rest = vec![0; 5 + (length >> 8) as usize];
            stream.read_exact(&mut rest).await.unwrap();
            if length as u8 == GOAWAY {
                code = Some(u32::from_be_bytes(rest[9..13].try_into().unwrap()));
            }
        }
    };
    timeout(Duration::from_secs(120), frames).await.unwrap();
    assert_eq!(code, Some(FRAME_SIZE_ERROR));
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let scene = Scene::set_with(|config| config.limits.connections = 1).await;
    let mut first = scene.locks().await;
    acquire(&mut first, ask("one", 1000, None)).await.unwrap();
    let url_taken = async {
        let mut second = scene.locks().await;
        acquire(&mut second, ask("two", 1000, None)).await.unwrap();
    };
    tokio::pin!(url_taken);
    assert!(
        timeout(Duration::from_millis(300), &mut url_taken)
            .await
            .is_err()
    );
    drop(first);
    timeout(Duration::from_secs(120), url_taken).await.unwrap();
}

/// Whether the coordinator closes `stream`.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut sent = Vec::new();
    let closed = timeout(Duration::from_secs(120), stream.read_to_end(&mut sent));
    closed.await.is_ok()
}

/// Whatever it sends: the first bytes of anything, or all of HTTP/2 with calls of a caller that is not known.
#[tokio::test]
async fn a_connection_without_a_call_of_a_known_caller_makes_room_for_others() {
    let scene = Scene::set_with(|config| {
        config.limits.connections = 3;
        principal(config, "known", Roles::all());
    })
    .await;
    let mut locks = scene.locks().await;
    let held = locks.acquire(with("known", ask("key", 30_000, None)));
    let handle = held.await.unwrap().into_inner().handle;
    let address = scene.url.strip_prefix("http://").unwrap();
    let mut begun = TcpStream::connect(address).await.unwrap();
    begun.write_all(b"P").await.unwrap();
    let mut health = HealthClient::new(scene.channel().await);
    let check = HealthCheckRequest::default();
    health.check(check.clone()).await.unwrap();

    let mut next = LockServiceClient::new(scene.lazy_channel());
    let acquired = next.acquire(with("known", ask("other", 30_000, None)));
    let acquired = timeout(Duration::from_secs(120), acquired).await;
    acquired.unwrap().unwrap();
    assert!(is_closed(&mut begun).await);
    assert!(limited(&scene, "connections").await > 0.0);
    eventually("both are closed", async || {
        limited(&scene, "first_call").await == 2.0
    })
    .await;
    // It is kept.
    let release = with("known", ReleaseRequest { handle });
    locks.release(release).await.unwrap();
    assert_eq!(limited(&scene, "first_call").await, 2.0);
}

/// Connections that reached that limit.
async fn limited(scene: &Scene, limit: &str) -> f64 {
    let label = format!("limit=\"{limit}\"");
    counted(scene, "ringfence_connections_limited_total{", &label).await
}

/// A connection to `port` that has sent one byte.
async fn begun(port: SocketAddr) -> TcpStream {
    let mut begun = TcpStream::connect(port).await.unwrap();
    begun.write_all(b"P").await.unwrap();
    begun
}

/// Whether the coordinator has closed `stream`.
fn was_closed(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Their time is not over: an older one, on the other port, is still open.
#[tokio::test]
async fn a_connection_that_says_nothing_makes_room_at_once() {
    let scene = Scene::set_with(|config| config.limits.connections = 2).await;
    let address = scene.url.strip_prefix("http://").unwrap().parse().unwrap();
    eventually("one is closed that could have waited", async || {
        let older = begun(scene.monitor).await;
        let silent = [begun(address).await, begun(address).await];
        let mut locks = scene.locks().await;
        acquire(&mut locks, ask("key", 1000, None)).await.unwrap();
        eventually("one is closed", async || silent.iter().any(was_closed)).await;
        !was_closed(&older)
    })
    .await;
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0--------";

/// The frame of HTTP/2 that begins a call of `method` which has no message.
fn call(method: &str) -> Vec<u8> {
    const HEADERS: u8 = 1;
    const END_STREAM_AND_HEADERS: u8 = 5;
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    // RFC 7541, 6.2.2: a literal without an index.
    let literal = |(name, value): (&str, &str)| {
        let length = |text: &str| [text.len() as u8];
        [
            &[0],
            &length(name)[..],
            name.as_bytes(),
            &length(value),
            value.as_bytes(),
        ]
        .concat()
    };
    let headers = headers.map(literal).concat();
    let length = &(headers.len() as u32).to_be_bytes()[1..];
    let head = [HEADERS, END_STREAM_AND_HEADERS, 0, 0, 0, 1];
    [length, &head, &headers].concat()
}

/// Nothing is read from a connection to which nothing can be written, so no answer to a ping comes, nor does a first call.
#[tokio::test]
async fn a_connection_whose_caller_reads_nothing_is_closed() {
    let scene = Scene::set().await;
    let address = scene.url.strip_prefix("http://").unwrap();
    let known = call("/ringfence.v1.LockService/Inspect");
    for (first, limit) in [(&*known, "unread"), (&[], "first_call")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[PREFACE, first].concat()).await.unwrap();
        let pings = PING.repeat(1000);
        let flood = async { while stream.write_all(&pings).await.is_ok() {} };
        timeout(Duration::from_secs(120), flood).await.unwrap();
        assert_eq!(limited(&scene, limit).await, 1.0, "{limit}");
    }
}

/// Each is answered at once, and costs more than it does to send.
#[tokio::test]
async fn a_connection_that_floods_with_settings_is_closed() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let scene = Scene::set().await;
    let address = scene.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let known = call("/ringfence.v1.LockService/Inspect");
    stream.write_all(&[PREFACE, &known].concat()).await.unwrap();
    stream.write_all(&SETTINGS.repeat(200)).await.unwrap();
    let mut answers = Vec::new();
    // It may be reset, for what was not read.
    let read = timeout(Duration::from_secs(120), stream.read_to_end(&mut answers));
    let _ = read.await.unwrap();
    assert_eq!(limited(&scene, "settings_frames").await, 1.0);
}

/// Callers that are not known send no more than a first call needs, and what the system buffers.
#[tokio::test]
async fn a_connection_without_a_call_sends_little() {
    const ENOUGH: usize = 64 << 20;
    let scene = Scene::set_with(|config| principal(config, "known", Roles::all())).await;
    let address = scene.url.strip_prefix("http://").unwrap();
    let (mut answers, mut sends) = TcpStream::connect(address).await.unwrap().into_split();
    sends.write_all(PREFACE).await.unwrap();
    let pings = PING.repeat(1000);
    let mut sent = 0;
    let flood = async {
        while sent < ENOUGH && sends.write_all(&pings).await.is_ok() {
            sent += pings.len();
        }
    };
    let read = async {
        let mut answer = [0; 4096];
        while answers.read(&mut answer).await.is_ok_and(|read| read > 0) {}
    };
    let ends = async {
        tokio::select! {
            () = flood => {}
            () = read => {}
        }
    };
    timeout(Duration::from_secs(120), ends).await.unwrap();
    assert!(sent < ENOUGH, "{sent} bytes");
    assert_eq!(limited(&scene, "first_call").await, 1.0);
}

#[tokio::test]
async fn a_principal_leaves_connections_to_others() {
    let scene = Scene::set_with(|config| {
        config.limits.connections = 4;
        principal(config, "greedy", Roles::all());
        principal(config, "other", Roles::all());
    })
    .await;
    let acquires = async |caller: &str, locks: &mut LockServiceClient<Channel>| {
        let asked = with(caller, ask(caller, 1000, None));
        locks.acquire(asked).await.map(drop)
    };
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut locks = scene.locks().await;
        acquires("greedy", &mut locks).await.unwrap();
        all.push(locks);
    }
    let mut fourth = scene.locks().await;
    let refused = acquires("greedy", &mut fourth).await.unwrap_err();
    too_many(&refused);
    assert_eq!(limited(&scene, "connections_per_principal").await, 1.0);
    acquires("other", &mut fourth).await.unwrap();
    drop(fourth);
    // It has as many calls as it likes over those that it has.
    acquires("greedy", &mut all[0]).await.unwrap();
    all.pop();
    eventually("the place of the one that ended is free", async || {
        let mut locks = scene.locks().await;
        acquires("greedy", &mut locks).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn few_streams_of_health_and_reflection_stay_open_on_a_connection() {
    let scene = Scene::set().await;
    let channel = scene.channel().await;
    let health = HealthClient::new(channel.clone());
    let watch = async || {
        let watch = HealthCheckRequest::default();
        health.clone().watch(watch).await
    };
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut changes = watch().await.unwrap().into_inner();
        assert_eq!(changes.message().await.unwrap().unwrap().status, 1);
        open.push(changes);
    }
    too_many(&watch().await.unwrap_err());
    let mut reflection = ServerReflectionClient::new(channel.clone());
    let asked = futures_util::stream::empty::<ServerReflectionRequest>();
    too_many(&reflection.server_reflection_info(asked).await.unwrap_err());
    // Calls of locks have their own places, and other connections too.
    let mut locks = LockServiceClient::new(channel);
    acquire(&mut locks, ask("key", 1000, None)).await.unwrap();
    let mut other = HealthClient::new(scene.channel().await);
    other.watch(HealthCheckRequest::default()).await.unwrap();
    open.pop();
    eventually("one has ended", async || watch().await.is_ok()).await;
}

/// A message whose end does not come.
struct Half(Option<Bytes>);

impl Body for Half {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

#[tokio::test]
async fn messages_that_are_not_complete_have_little_room_on_a_connection() {
    let scene = Scene::set().await;
    let channel = scene.channel().await;
    let half = || {
        let message = [&[0, 0, 0, 0xff, 0xff], &[0; 60_000][..]].concat();
        let request = http::Request::post("/ringfence.v1.LockService/Acquire")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(tonic::body::Body::new(Half(Some(message.into()))));
        let mut channel = channel.clone();
        async move {
            std::future::poll_fn(|context| channel.poll_ready(context))
                .await
                .unwrap();
            let answer = channel.call(request.unwrap()).await.unwrap();
            Status::from_header_map(answer.headers()).unwrap()
        }
    };
    let mut halves: FuturesUnordered<_> = (0..3).map(|_| half()).collect();
    let refused = timeout(Duration::from_secs(120), halves.next()).await;
    too_many(&refused.unwrap().unwrap());
    // A whole one is taken beside the two others.
    let mut locks = LockServiceClient::new(channel);
    acquire(&mut locks, ask("key", 1000, None)).await.unwrap();
}

#[tokio::test]
async fn more_connections_of_one_address_are_closed() {
    let scene = Scene::set_with(|config| config.limits.connections_per_address = 1).await;
    let mut locks = scene.locks().await;
    acquire(&mut locks, ask("key", 1000, None)).await.unwrap();
    let address = scene.url.strip_prefix("http://").unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    assert!(is_closed(&mut second).await);
    assert_eq!(limited(&scene, "connections_per_address").await, 1.0);
    drop(locks);
    let again = async || {
        let mut locks = LockServiceClient::new(scene.lazy_channel());
        acquire(&mut locks, ask("other", 1000, None)).await.is_ok()
    };
    eventually("its place is free", again).await;
}

/// Requests that do not end take no place of others.
#[tokio::test]
async fn the_monitor_answers_while_one_address_sends_no_requests() {
    let scene = Scene::set().await;
    let mut hogs = Vec::new();
    for nth in 0..129 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut hog = socket.connect(scene.monitor).await.unwrap();
        let sent = hog.write_all(b"GET /healthz HT").await;
        assert!(sent.is_ok() || nth == 128);
        hogs.push(hog);
    }
    let mut last = hogs.pop().unwrap();
    assert!(is_closed(&mut last).await, "more than 128");
    assert_eq!(limited(&scene, "connections_per_address").await, 1.0);
    for hog in &mut hogs {
        assert!(is_closed(hog).await, "no request");
    }
    assert_eq!(limited(&scene, "first_call").await, 128.0);
}

#[tokio::test]
async fn a_health_check_answers() {
    let scene = Scene::set().await;
    let mut health = HealthClient::new(scene.channel().await);
    let check = HealthCheckRequest {
        service: String::new(),
    };
    let answer = health.check(check).await.unwrap().into_inner();
    assert_eq!(answer.status, 1, "serving");
}

/// The answer of the reflection, of version v1, to `question`.
async fn reflected(scene: &Scene, question: MessageRequest) -> MessageResponse {
    let mut reflection = ServerReflectionClient::new(scene.channel().await);
    let asked = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(question),
    };
    let asked = futures_util::stream::iter([asked]);
    let answers = reflection.server_reflection_info(asked).await.unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    answer.message_response.unwrap()
}

/// As grpcurl does it: the list, then each symbol, then the files that its file needs.
#[tokio::test]
async fn reflection_has_every_service_and_the_files_that_it_needs() {
    let scene = Scene::set().await;
    let listed = reflected(&scene, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = listed else {
        panic!("no list: {listed:?}");
    };
    let names: Vec<_> = listed
        .service
        .iter()
        .map(|service| &*service.name)
        .collect();
    for name in ["Lock", "Session", "Counter", "Latch", "Admin"] {
        let name = format!("ringfence.v1.{name}Service");
        assert!(names.contains(&&*name), "{name}: {names:?}");
    }
    for name in names {
        let mut missing = vec![MessageRequest::FileContainingSymbol(name.into())];
        let mut known = HashSet::new();
        let mut services = Vec::new();
        while let Some(question) = missing.pop() {
            let answer = reflected(&scene, question.clone()).await;
            let MessageResponse::FileDescriptorResponse(files) = answer else {
                panic!("{name}: {question:?}: {answer:?}");
            };
            for file in files.file_descriptor_proto {
                let file = FileDescriptorProto::decode(&*file).unwrap();
                let of = |service: &ServiceDescriptorProto| {
                    format!("{}.{}", file.package(), service.name())
                };
                services.extend(file.service.iter().map(of));
                known.insert(file.name().to_owned());
                let new = file
                    .dependency
                    .iter()
                    .filter(|needed| known.insert((*needed).clone()));
                missing.extend(new.cloned().map(MessageRequest::FileByFilename));
            }
        }
        assert!(
            services.iter().any(|service| service == name),
            "{name}: {services:?}"
        );
    }
}

/// Many tools know only this version.
#[tokio::test]
async fn the_former_version_of_reflection_resolves_a_service() {
    let scene = Scene::set().await;
    let mut former =
        v1alpha::server_reflection_client::ServerReflectionClient::new(scene.channel().await);
    let symbol = "ringfence.v1.SessionService".into();
    let asked = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(FormerRequest::FileContainingSymbol(symbol)),
    };
    let asked = futures_util::stream::iter([asked]);
    let answers = former.server_reflection_info(asked).await.unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    let Some(FormerResponse::FileDescriptorResponse(files)) = answer.message_response else {
        panic!("no file: {answer:?}");
    };
    let file = FileDescriptorProto::decode(&*files.file_descriptor_proto[0]).unwrap();
    assert_eq!(file.service[0].name(), "SessionService");
}
