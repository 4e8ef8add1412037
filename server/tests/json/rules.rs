//! The rules for callers, and for what they send.

use std::collections::BTreeSet;

use ringfence_server::{Proof, Roles, token_digest};
use serde_json::{Value, json};

use super::http::{Answer, Http, JSON};
use crate::{
    access::principal,
    monitor::counted,
    scene::{Scene, acquire, ask},
};

/// The paths of all calls, as docs/openapi.json has them.
pub(super) fn paths() -> BTreeSet<String> {
    let described: Value =
        serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    let paths = described["paths"].as_object().unwrap();
    paths.keys().cloned().collect()
}

/// The roles of a caller of the key `mine`.
fn of_mine() -> Roles {
    let mine = || ["default/mine", "latch/mine"].map(|scope| scope.parse().unwrap());
    Roles {
        acquire: mine().into(),
        read: mine().into(),
        ..Roles::default()
    }
}

#[tokio::test]
async fn a_call_without_a_token_or_a_role_reaches_no_shard() {
    let scene = Scene::set_with(|config| {
        principal(config, "worker", of_mine());
        principal(config, "nobody", Roles::default());
    })
    .await;
    let body = json!({
        "locks": { "key": "hidden" },
        "accounts": { "account": { "name": "hidden" } },
        "latches": { "name": "hidden" },
    });
    let calls = async || {
        let mut http = Http::to(&scene).await;
        for path in paths() {
            let group = path.split('/').nth(2).unwrap();
            // These need the handle.
            let needs_no_role = ["/renew", "/release", "/downgrade"];
            let needs_no_role = needs_no_role.iter().any(|verb| path.ends_with(verb));
            let is_list = path.ends_with("/list");
            let is_batch = path.ends_with("/batch-change");
            let body = match needs_no_role || is_list {
                true => "{}".into(),
                false if is_batch => json!({ "changes": [{ "deposit": body[group] }] }).to_string(),
                false => body[group].to_string(),
            };
            for (header, code, reason) in [
                ("x-none: 1", 401, "UNAUTHENTICATED"),
                ("authorization: Bearer unknown", 401, "UNAUTHENTICATED"),
                ("authorization: Basic worker", 401, "UNAUTHENTICATED"),
                ("authorization: Bearer nobody", 403, "NOT_ALLOWED"),
                ("authorization: Bearer worker", 403, "NOT_ALLOWED"),
            ] {
                let (code, reason) = match code == 403 && needs_no_role {
                    true => (400, "INVALID_INPUT"),
                    false => (code, reason),
                };
                let request = format!("POST {path}");
                let refused = http.ask(&request, &[JSON, header], body.as_bytes()).await;
                if is_batch && header == "authorization: Bearer worker" {
                    // Each of its changes is refused by itself.
                    let change = refused.text("/answers/0/failure/error/reason");
                    assert!(change.ends_with("NOT_ALLOWED"), "{refused:?}");
                    continue;
                }
                let told = (refused.code, refused.reason());
                assert_eq!(told, (code, reason), "{path} {header}: {refused:?}");
                assert_eq!(refused.has("www-authenticate: bearer"), code == 401);
                assert!(!refused.body.to_string().contains("hidden"), "{refused:?}");
            }
        }
    };
    scene.reaches_no_shard(calls).await;
    let mut http = Http::to(&scene).await;
    let headers = [JSON, "authorization: Bearer worker"];
    let ask = br#"{"key": "mine"}"#;
    let held = http.ask("POST /v1/locks/acquire", &headers, ask).await;
    assert_eq!(held.code, 200, "{held:?}");
    // The handle is the principal's.
    let handle = json!({ "handle": held.text("/handle") }).to_string();
    let headers = [JSON, "authorization: Bearer nobody"];
    let release = "POST /v1/locks/release";
    let stolen = http.ask(release, &headers, handle.as_bytes()).await;
    assert_eq!(stolen.text("/error/invalidInput/field"), "handle");
}

#[tokio::test]
async fn the_rate_and_the_numbers_are_those_of_grpc() {
    let scene = Scene::set_with(|config| config.limits.rate = 2).await;
    let mut http = Http::to(&scene).await;
    let held = http.call("locks/acquire", r#"{"key": "held"}"#).await;
    let limited = loop {
        let asked = http.call("locks/inspect", r#"{"key": "key"}"#).await;
        if asked.code != 200 {
            break asked;
        }
    };
    assert_eq!((limited.code, limited.reason()), (429, "RATE_LIMITED"));
    assert!(limited.has("retry-after: 1"), "{limited:?}");
    assert!(limited.text("/error/retryAfter").ends_with('s'));
    let handle = json!({ "handle": held.text("/handle") }).to_string();
    let renewed = http.call("locks/renew", &handle).await;
    assert_eq!(renewed.code, 200, "it keeps its locks");
    for (method, code, at_least) in [
        ("LockService/Acquire", "Ok", 1.0),
        ("LockService/Inspect", "ResourceExhausted", 1.0),
        ("LockService/Renew", "Ok", 1.0),
    ] {
        let labels = format!("method=\"ringfence.v1.{method}\",code=\"{code}\"");
        let count = counted(&scene, "ringfence_calls_total{", &labels).await;
        assert!(count >= at_least, "{labels}: {count}");
    }
}

#[tokio::test]
async fn pages_of_browsers_need_a_token() {
    let origin = "origin: http://localhost";
    let refusal = "needs the bearer token";
    let ask = br#"{"key": "key"}"#;
    let open = Scene::set().await;
    let calls = async || {
        let mut http = Http::to(&open).await;
        let headers = [JSON, origin, "authorization: Bearer any"];
        let refused = http.ask("POST /v1/locks/acquire", &headers, ask).await;
        assert_eq!((refused.code, refused.reason()), (403, "NOT_ALLOWED"));
        assert!(refused.text("/error/message").contains(refusal));
        // A page can send calls of gRPC over HTTP/1, too.
        let message = b"\0\0\0\0\x05\x12\x03key";
        let path = "POST /ringfence.v1.LockService/Acquire";
        for kind in ["content-type: text/plain", "content-type: application/grpc"] {
            let refused = http.ask(path, &[kind, origin], message).await;
            assert!(refused.has("grpc-status: 7"), "{refused:?}");
        }
        let mut locks = open.locks().await;
        let mut from_a_page = tonic::Request::new(crate::scene::ask("key", 1000, Some(0)));
        let value = "http://localhost".parse().unwrap();
        from_a_page.metadata_mut().insert("origin", value);
        locks.acquire(from_a_page).await.unwrap_err();
        // What a browser asks before it sends JSON to another site.
        let asked = http.ask("OPTIONS /v1/locks/acquire", &[origin], b"").await;
        assert_eq!(asked.code, 405);
        assert!(
            !asked
                .head
                .iter()
                .any(|line| line.starts_with("access-control"))
        );
    };
    open.reaches_no_shard(calls).await;

    let scene = Scene::set_with(|config| principal(config, "page", Roles::all())).await;
    let mut http = Http::to(&scene).await;
    let token = "authorization: Bearer page";
    let path = "POST /v1/locks/acquire";
    assert_eq!(http.ask(path, &[JSON, origin, token], ask).await.code, 200);
}

/// The refusal of `body` by the call that acquires a lock.
async fn refused(http: &mut Http, body: &str) -> Answer {
    let refused = http.call("locks/acquire", body).await;
    assert!(refused.code >= 400, "{body}: {refused:?}");
    assert_eq!(refused.reason(), "INVALID_INPUT");
    assert_eq!(refused.body["error"]["effect"], "NONE");
    refused
}

/// Bodies, the field that their refusal names, and a part of its message.
const BAD: [(&str, &str, &str); 14] = [
    (
        "",
        "body",
        "malformed (EOF while parsing a value at line 1 column 0)",
    ),
    (
        "{\n  \"key\": \"a\",,\n}",
        "body",
        "at line 2 column 14), must be JSON",
    ),
    ("[]", "body", "body is a list, must be an object"),
    (
        r#"{"color": 1}"#,
        "color",
        "color is no field, must be one of namespace, key, lease",
    ),
    (r#"{"key": 5}"#, "key", "key is 5, must be a text"),
    (r#"{"keyBase64": "?"}"#, "keyBase64", "must be base64"),
    (
        r#"{"key": "key", "lease": 30}"#,
        "lease",
        "lease is 30, must be seconds, as \"1.5s\"",
    ),
    (
        r#"{"key": "key", "holdFor": "1h"}"#,
        "holdFor",
        "holdFor is \"1h\", must be seconds",
    ),
    (
        r#"{"key": "key", "mode": "SHARED"}"#,
        "mode",
        "mode is \"SHARED\", must be one of UNSPECIFIED, EXCLUSIVE, READ",
    ),
    (
        r#"{"key": "key", "permits": -1}"#,
        "permits",
        "permits is -1, must be a whole number, 0 to 4294967295",
    ),
    (
        r#"{"key": "key", "preferred": "yes"}"#,
        "preferred",
        "must be true or false",
    ),
    (
        r#"{"key": ""}"#,
        "key",
        "key is 0 bytes long, must be 1 to 512",
    ),
    (
        r#"{"key": "key", "lease": "31s"}"#,
        "lease",
        "lease is 31s, must be at most 30s",
    ),
    (
        r#"{"key": "key", "wait": "-1s"}"#,
        "wait",
        "wait is -1s, must be at least 0s",
    ),
];

#[tokio::test]
async fn bad_input_is_named_as_its_caller_wrote_it() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    for (body, field, message) in BAD {
        let refused = refused(&mut http, body).await;
        assert_eq!(refused.code, 400, "{body}");
        assert_eq!(refused.text("/error/invalidInput/field"), field, "{body}");
        assert!(
            refused.text("/error/message").contains(message),
            "{refused:?}"
        );
    }
    let id = r#"{"account": {"name": "coins"}, "id": {"createdAt": "now"}}"#;
    let refused = http.call("accounts/deduct", id).await;
    assert_eq!(refused.text("/error/invalidInput/field"), "id.createdAt");
    let handle = http.call("locks/renew", r#"{"handle": "a secret"}"#).await;
    assert_eq!(handle.text("/error/invalidInput/field"), "handle");
    assert!(!handle.body.to_string().contains("a secret"));
}

#[tokio::test]
async fn only_calls_with_json_are_taken() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    for (request, header, code, field) in [
        ("POST /v1/locks/steal", JSON, 404, "path"),
        ("GET /", "x-none: 1", 404, "path"),
        ("POST /v1/sessions/session", JSON, 404, "path"),
        ("GET /v1/locks/acquire", "x-none: 1", 405, "method"),
        ("PUT /v1/locks/acquire", JSON, 405, "method"),
        ("POST /v1/locks/acquire", "x-none: 1", 415, "content-type"),
        (
            "POST /v1/locks/acquire",
            "content-type: text/plain",
            415,
            "content-type",
        ),
        (
            "POST /v1/locks/acquire",
            "content-type: application/x-www-form-urlencoded",
            415,
            "content-type",
        ),
    ] {
        let refused = http.ask(request, &[header], b"{}").await;
        assert_eq!(refused.code, code, "{request}: {refused:?}");
        assert_eq!(refused.text("/error/invalidInput/field"), field);
        assert_eq!(refused.has("allow: post"), code == 405);
    }
    let charset = ["Content-Type: Application/JSON; charset=utf-8"];
    let ask = br#"{"key": "key"}"#;
    assert_eq!(
        http.ask("POST /v1/locks/acquire", &charset, ask).await.code,
        200
    );
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let scene = Scene::set().await;
    let body = |bytes: usize| {
        let rest = r#"{"key": "key", "label": ""}"#.len();
        format!(
            r#"{{"key": "key", "label": "{}"}}"#,
            "x".repeat(bytes - rest)
        )
    };
    let mut http = Http::to(&scene).await;
    let most = http.call("locks/acquire", &body(64 * 1024)).await;
    assert_eq!(most.code, 200, "{most:?}");
    let more = Http::to(&scene)
        .await
        .call("locks/acquire", &body(64 * 1024 + 1))
        .await;
    assert_eq!((more.code, more.reason()), (413, "INVALID_INPUT"));
    assert_eq!(
        more.text("/error/invalidInput/limit"),
        "at most 65536 bytes"
    );
    // Of a longer one, no more than that is read.
    let mut http = Http::to(&scene).await;
    let headers = [JSON, "content-length: 1000000000"];
    http.begin("POST /v1/locks/acquire", &headers).await;
    http.write(&[b' '; 64 * 1024 + 1]).await;
    assert_eq!(http.answer().await.code, 413);
}

/// A coordinator for gRPC and one for JSON are the same one.
#[tokio::test]
async fn a_lock_of_one_protocol_is_released_by_the_other() {
    let scene = Scene::set_with(|config| {
        principal(config, "app", Roles::all());
        let app = config.principals.get_mut("app").unwrap();
        app.proofs.push(Proof::Token(token_digest("other")));
    })
    .await;
    let mut http = Http::to(&scene).await;
    let headers = [JSON, "authorization: Bearer other"];
    let ask_json = br#"{"key": "key", "nonce": "n"}"#;
    let held = http.ask("POST /v1/locks/acquire", &headers, ask_json).await;
    let again = http.ask("POST /v1/locks/acquire", &headers, ask_json).await;
    assert_eq!(held.text("/token"), again.text("/token"), "a repeat");
    let mut locks = scene.locks().await;
    let without = acquire(&mut locks, ask("key", 1000, Some(0))).await;
    without.unwrap_err();
    let once = crate::access::with("app", ask("key", 1000, Some(0)));
    let refused = locks.acquire(once).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Aborted);
}
