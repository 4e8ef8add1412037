//! The dashboard, in Chromium and by hand.

use std::time::Duration;

use ringfence_client::{Guard, NewShard, Reshape};
use ringfence_server::{Roles, Scope};
use ringfence_test_support::{Servers, browser::Browser, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{access::principal, scene::Scene};

/// A loss is noticed within a third of it.
const LEASE: Duration = Duration::from_secs(3);

/// Markup, if the page took texts for it.
const KEY: &str = "<img src=x onerror=alert(1)>";
const HOLDER: &str = "<b>nightly</b>";

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

/// Opens the dashboard and signs in, after a wrong token.
async fn sign_in(browser: &mut Browser, scene: &Scene) {
    let url = format!("http://{}/dashboard/", scene.monitor);
    browser.open(&url).await;
    browser.until("document.activeElement.id == 'token'").await;
    browser.type_text("wrong").await;
    browser.enter().await;
    let refused = "document.getElementById('sign-in-error').textContent.includes('not known')";
    browser.until(refused).await;
    browser.type_text(TOKEN).await;
    browser.enter().await;
    browser
        .until("document.getElementById('connection').dataset.state == 'live'")
        .await;
}

/// Releases `held` by force, from its row, and confirms it.
async fn release_by_keyboard(browser: &mut Browser, scene: &Scene, held: &Guard) {
    let row = "document.querySelector('#locks button')";
    browser.value(&format!("{row}.focus()")).await;
    browser.enter().await;
    let shown = format!(
        "document.getElementById('lock').innerText.includes('{}')",
        held.token().get()
    );
    browser.until(&shown).await;
    browser
        .value("document.getElementById('ask-release').focus()")
        .await;
    browser.enter().await;
    browser.until("document.activeElement.id == 'reason'").await;
    let found = scene.other.lock(KEY).inspect().await.unwrap();
    let holder = found
        .holder
        .expect("nothing is released before the confirmation");
    assert_eq!(holder.label.to_string(), HOLDER);
    browser.type_text("its host is dead").await;
    browser.enter().await;
    browser
        .until(
            "document.getElementById('lock-note').innerText.includes('Released: <b>nightly</b>')",
        )
        .await;
}

#[tokio::test]
async fn the_page_shows_a_lock_come_and_go_a_resize_and_a_dead_shard() {
    let set_up = |config: &mut _| principal(config, TOKEN, Roles::all());
    let (mut scene, mut browser) = tokio::join!(Scene::set_with(set_up), Browser::start());
    sign_in(&mut browser, &scene).await;
    browser
        .until("document.querySelectorAll('.state[data-is=ready]').length == 2")
        .await;

    let lock = scene.other.lock(KEY).lease(LEASE).label(HOLDER);
    let held = lock.acquire().await.unwrap();
    let row = "document.querySelector('#locks button')";
    browser
        .until(&format!("{row}.innerText.includes({KEY:?})"))
        .await;
    let markup = browser.value("document.querySelectorAll('#locks img, #locks b').length");
    assert_eq!(markup.await, 0);
    let other = scene.other.clone();
    let waiter = async move { other.lock(KEY).acquire().await };
    let mut waits = tokio::task::JoinSet::new();
    waits.spawn(waiter);
    release_by_keyboard(&mut browser, &scene, &held).await;
    held.lost().await;
    let next = waits.join_next().await.unwrap().unwrap().unwrap();
    next.release().await;
    browser
        .value("document.getElementById('close').click()")
        .await;
    browser
        .until("document.querySelectorAll('#locks li').length == 0")
        .await;

    let new = Servers::spawn(1).await;
    let added = Reshape::new().add_shard(NewShard::redis(new.urls()[0].clone()));
    let resize = scene.other.ring().reshape(added).await.unwrap();
    browser
        .until("document.getElementById('notices').innerText.includes('resize is under way')")
        .await;
    assert!(resize.run().await.unwrap().reached);
    browser
        .until("document.getElementById('notices').children.length == 0")
        .await;
    let shares = "[...document.querySelectorAll('.shards .bar')].filter((bar) => bar.innerText.includes('33.3 %, fair 33.3 %')).length == 3";
    browser.until(shares).await;

    scene.kill_servers();
    browser
        .until("document.getElementById('notices').innerText.includes('Shard a is down')")
        .await;
    let own = browser.value("performance.getEntriesByType('resource').every(({ name }) => name.startsWith(location.origin))");
    assert_eq!(own.await, true, "the page loads only from its coordinator");
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
    let held = scene
        .other
        .lock("key")
        .lease(LEASE)
        .acquire()
        .await
        .unwrap();
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
    assert!(held.is_held());
    assert_eq!(status(&scene, RELEASE, &[&all, json], &release).await, 200);
    held.lost().await;
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
