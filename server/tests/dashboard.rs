//! The dashboard, in Chromium (page.rs) and by hand.

mod page;

use std::time::Duration;

use ringfence_server::{Roles, Scope};
use ringfence_test_support::eventually;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{access::principal, scene::Scene};

/// A loss is noticed within a third of it.
const LEASE: Duration = Duration::from_secs(9);

const TOKEN: &str = "correct-horse-battery-staple";

/// A request for `path`, with `headers`.
async fn send(scene: &Scene, request: &str, headers: &[&str], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(scene.monitor).await.unwrap();
    let mut head = vec![
        format!("{request} HTTP/1.1"),
        format!("content-length: {}", body.len()),
    ];
    if !headers.iter().any(|header| header.starts_with("host:")) {
        head.push(format!("host: {}", scene.monitor));
    }
    head.extend(headers.iter().map(|header| (*header).to_owned()));
    let request = format!("{}\r\n\r\n{body}", head.join("\r\n"));
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The status code of the answer.
async fn status(scene: &Scene, request: &str, headers: &[&str], body: &str) -> u16 {
    let mut stream = send(scene, request, headers, body).await;
    code(&mut stream).await
}

async fn code(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

const RELEASE: &str = "POST /dashboard/api/release";

/// The body of a release of `key`.
fn release(key: &str) -> String {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!(r#"{{"namespace":"default","hex":"{hex}","reason":"a test"}}"#)
}

#[tokio::test]
async fn nothing_is_shown_or_released_without_a_token_and_its_role() {
    let scene = Scene::set_with(|config| {
        principal(config, TOKEN, Roles::all());
        let read = vec!["shop/".parse::<Scope>().unwrap()];
        let roles = Roles {
            read,
            ..Roles::default()
        };
        principal(config, "reader", roles);
    })
    .await;
    // Its holder renews it seldom: not while the calls below are made.
    let lock = scene.other.lock("key").lease(Duration::from_secs(30));
    let held = lock.acquire().await.unwrap();
    let (reader, all) = (
        "authorization: Bearer reader",
        format!("authorization: Bearer {TOKEN}"),
    );
    let json = "content-type: application/json";
    let release = release("key");
    let refused = async || {
        for request in [
            "GET /dashboard/api/live",
            "GET /dashboard/api/locks",
            "GET /dashboard/api/lock?namespace=default&hex=6b6579",
            "GET /dashboard/api/account?name=coins",
            "GET /dashboard/api/accounts?condition=all",
            RELEASE,
        ] {
            for (header, expected) in [
                ("x-none: 1", 401),
                ("authorization: Bearer x", 401),
                (reader, 403),
            ] {
                let code = status(&scene, request, &[header, json], &release).await;
                assert_eq!(code, expected, "{request} {header}");
            }
        }
    };
    scene.reaches_no_shard(refused).await;
    let shop = "GET /dashboard/api/locks?namespace=shop";
    assert_eq!(status(&scene, shop, &[reader], "").await, 200);
    assert!(held.is_held() && !scene.is_free("key").await);
    assert_eq!(status(&scene, RELEASE, &[&all, json], &release).await, 200);
    assert!(scene.is_free("key").await);
}

#[tokio::test]
async fn pages_of_other_sites_release_nothing() {
    let scene = Scene::set().await;
    let held = scene
        .other
        .lock("key")
        .lease(LEASE)
        .acquire()
        .await
        .unwrap();
    let own = format!("origin: http://{}", scene.monitor);
    let json = "content-type: application/json";
    let release = release("key");
    for (headers, expected) in [
        // A name that resolves to this host.
        (vec!["host: rebound.example.org", json], 403),
        (vec!["origin: http://example.org", json], 403),
        (vec!["origin: null", json], 403),
        (vec!["sec-fetch-site: cross-site", json], 403),
        // Forms.
        (vec!["content-type: text/plain"], 415),
        (vec!["content-type: application/x-www-form-urlencoded"], 415),
    ] {
        let code = status(&scene, RELEASE, &headers, &release).await;
        assert_eq!(code, expected, "{headers:?}");
    }
    let asked = status(
        &scene,
        "OPTIONS /dashboard/api/release",
        &["origin: http://example.org"],
        "",
    );
    assert_eq!(asked.await, 405);
    assert!(
        scene
            .other
            .lock("key")
            .inspect()
            .await
            .unwrap()
            .holder
            .is_some()
            && held.is_held()
    );
    let headers = [json, &own, "sec-fetch-site: same-origin"];
    assert_eq!(status(&scene, RELEASE, &headers, &release).await, 200);
    held.lost().await;
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field_and_pages_are_limited() {
    let scene = Scene::set().await;
    for (request, field) in [
        (
            "GET /dashboard/api/lock?namespace=default&hex=6",
            "hex is 1 bytes long, must be",
        ),
        (
            "GET /dashboard/api/locks?namespace=NO",
            "namespace is \\\"NO\\\", must be",
        ),
        (
            "GET /dashboard/api/locks?color=red",
            "unknown field `color`",
        ),
    ] {
        let mut answer = String::new();
        let mut stream = send(&scene, request, &["connection: close"], "").await;
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 400") && answer.contains(field),
            "{answer}"
        );
        assert!(answer.contains("default-src 'none'"), "{answer}");
    }
    let mut pages = Vec::new();
    for _ in 0..64 {
        let mut page = send(&scene, "GET /dashboard/api/live", &[], "").await;
        assert_eq!(code(&mut page).await, 200);
        pages.push(page);
    }
    let one_more = async || status(&scene, "GET /dashboard/api/live", &[], "").await;
    assert_eq!(one_more().await, 429);
    pages.pop();
    eventually("a closed page gives its place back", || async {
        one_more().await == 200
    })
    .await;
}

#[tokio::test]
async fn a_public_port_without_principals_has_no_dashboard() {
    let scene = Scene::set_with(|config| config.monitor = Some("0.0.0.0:0".parse().unwrap())).await;
    let mut answer = String::new();
    let mut stream = send(&scene, "GET /dashboard/", &["connection: close"], "").await;
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("monitor is a public address"),
        "{answer}"
    );
    assert_eq!(
        status(&scene, RELEASE, &["content-type: application/json"], "{}").await,
        404
    );
    assert_eq!(status(&scene, "GET /metrics", &[], "").await, 200);
}
