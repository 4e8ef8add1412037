//! Connections of HTTP/1.1: their protocols, their ends, and their limits.

use std::{fs, sync::Arc, time::Duration};

use ringfence_server::{Principal, Proof, Roles};
use ringfence_test_support::{Secured, eventually};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{body::Body, codegen::http};
use tower::ServiceExt as _;

use super::http::{Http, JSON};
use crate::{
    access::principal,
    scene::{Coordinator, Scene},
    tls,
};

const ASK: &[u8] = br#"{"key": "key", "wait": "0s"}"#;
const ACQUIRE: &str = "POST /v1/locks/acquire";

/// A connection with a certificate of `secured`, if `shown`, that offers `protocols`.
async fn connect(
    coordinator: &Coordinator,
    secured: &Secured,
    shown: bool,
    protocols: &[&str],
) -> Http<TlsStream<TcpStream>> {
    let read = |name| fs::read(secured.path(name)).unwrap();
    let certificate = |name| CertificateDer::from_pem_slice(&read(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let mut config = match shown {
        true => {
            let key = PrivateKeyDer::from_pem_slice(&read("client.key")).unwrap();
            let shown = vec![certificate("client.pem")];
            config.with_client_auth_cert(shown, key).unwrap()
        }
        false => config.with_no_client_auth(),
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let address = coordinator.url.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
    Http::over(stream.await.unwrap())
}

#[tokio::test]
async fn callers_that_offer_http_1_1_alone_are_served_over_tls() {
    let secured = Secured::default();
    let scene = Scene::set_with(|config| {
        tls::tls(config, &secured, false);
        principal(config, "php", Roles::all());
    })
    .await;
    for protocols in [&["http/1.1"][..], &[]] {
        let mut http = connect(&scene, &secured, false, protocols).await;
        let refused = http.ask(ACQUIRE, &[JSON], ASK).await;
        assert_eq!(refused.code, 401, "{protocols:?}: {refused:?}");
        let token = "authorization: Bearer php";
        let ask = format!(r#"{{"key": "{}"}}"#, protocols.len());
        let held = http.ask(ACQUIRE, &[JSON, token], ask.as_bytes()).await;
        assert_eq!(held.code, 200, "{protocols:?}: {held:?}");
    }
}

#[tokio::test]
async fn a_certificate_names_a_caller() {
    let secured = Secured::default();
    let scene = Scene::set_with(|config| {
        tls::tls(config, &secured, true);
        secured.issue("client", "billing.example.org");
        let billing = Principal {
            proofs: vec![Proof::Certificate("billing.example.org".into())],
            roles: Roles::all(),
            accounts_per_hour: None,
        };
        config.principals.insert("billing".into(), billing);
    })
    .await;
    let mut http = connect(&scene, &secured, true, &["http/1.1"]).await;
    assert_eq!(http.ask(ACQUIRE, &[JSON], ASK).await.code, 200);
    // A browser shows its certificate for every page.
    let headers = [JSON, "origin: https://example.org"];
    let refused = http.ask(ACQUIRE, &headers, ASK).await;
    assert_eq!((refused.code, refused.reason()), (403, "NOT_ALLOWED"));
}

/// Over HTTP/2, calls of a connection have its places, whichever their form.
#[tokio::test]
async fn calls_with_json_take_places_of_their_connection() {
    let scene = Scene::set_with(|config| config.limits.streams = 1).await;
    let _held = scene.other.lock("key").acquire().await.unwrap();
    let channel = scene.channel().await;
    let ask = |body: &'static str| {
        let request = http::Request::post("/v1/locks/acquire");
        let request = request.header("content-type", "application/json");
        let body = Body::new(axum::body::Body::from(body));
        let called = channel.clone().oneshot(request.body(body).unwrap());
        async { called.await.unwrap() }
    };
    let waits = ask(r#"{"key": "key"}"#);
    tokio::pin!(waits);
    let one_waits = eventually("it waits", async || scene.waiters("key").await == 1);
    tokio::select! {
        biased;
        answer = &mut waits => panic!("{answer:?}"),
        () = one_waits => {}
    }
    let refused = async {
        let refused = ask(r#"{"key": "other"}"#).await;
        assert_eq!(refused.status(), 429, "{refused:?}");
    };
    tokio::select! {
        biased;
        () = refused => {}
        answer = &mut waits => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_coordinator_that_stops_ends_connections() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::from_secs(120)).await;
    let other = scene.other.lock("key").acquire().await.unwrap();
    let (mut idle, mut waits, mut holds) = (
        Http::to(&scene).await,
        Http::to(&scene).await,
        Http::to(&scene).await,
    );
    let held = holds.call("locks/acquire", r#"{"key": "held"}"#).await;
    assert_eq!(
        idle.call("locks/inspect", r#"{"key": "key"}"#).await.code,
        200
    );
    waits.send(ACQUIRE, &[JSON], br#"{"key": "key"}"#).await;
    eventually("it waits", async || scene.waiters("key").await == 1).await;
    scene.stop();
    let stopping = waits.answer().await;
    assert_eq!((stopping.code, stopping.reason()), (503, "STOPPING"));
    idle.ended().await;
    holds.ended().await;
    let handle = serde_json::json!({ "handle": held.text("/handle") }).to_string();
    let mut http = Http::to(&scene).await;
    assert_eq!(http.call("locks/release", &handle).await.code, 200);
    scene.ended().await;
    other.release().await;
}

/// The system asks a silent host whether it is there.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_host_that_is_gone_is_noticed() {
    let scene = Scene::set().await;
    let _http = Http::to(&scene).await;
    let port: u16 = scene.url.rsplit(':').next().unwrap().parse().unwrap();
    let of_coordinator = format!("0100007F:{port:04X}");
    eventually("a timer runs", async || {
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let mut connections = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        connections.any(|fields| {
            // 01: established. 02: the timer of keepalive.
            fields.get(1) == Some(&&*of_coordinator)
                && fields[3] == "01"
                && fields[5].starts_with("02:")
        })
    })
    .await;
}

/// Their limits are 10 s and 30 s.
#[tokio::test]
async fn a_slow_body_and_an_idle_connection_are_ended() {
    const PATIENCE: Duration = Duration::from_secs(120);
    let scene = Scene::set().await;
    let (mut idle, mut slow) = (Http::to(&scene).await, Http::to(&scene).await);
    let known = r#"{"key": "key"}"#;
    assert_eq!(idle.call("locks/inspect", known).await.code, 200);
    slow.begin(ACQUIRE, &[JSON, "content-length: 2"]).await;
    let refused = timeout(PATIENCE, slow.answer()).await.unwrap();
    assert_eq!(refused.code, 400);
    let message = "body is incomplete after 10s, must be sent at once";
    assert_eq!(refused.text("/error/message"), message);
    timeout(PATIENCE, idle.ended()).await.unwrap();
}
