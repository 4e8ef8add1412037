//! Calls over HTTP with JSON.

mod any;
mod connections;
mod docs;
mod http;
mod rules;

use std::time::SystemTime;

use ringfence_api::v1::AcquireRequest;
use ringfence_test_support::eventually;
use serde_json::{Value, json};

use self::http::Http;
use super::scene::{Scene, acquire};

#[tokio::test]
async fn a_lock_is_acquired_renewed_and_released() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    let ask = r#"{"key": "größe/1", "lease": "30s", "label": "php", "namespace": "jobs"}"#;
    let held = http.call("locks/acquire", ask).await;
    assert_eq!(held.code, 200, "{held:?}");
    assert!(held.has("content-type: application/json") && held.has("cache-control: no-store"));
    // A string: it may have more digits than a number of JavaScript.
    let token: u64 = held.text("/token").parse().unwrap();
    assert!(held.text("/validFor").ends_with('s'));

    let with = |handle: &str| json!({ "handle": handle }).to_string();
    let handle = held.text("/handle").to_owned();
    let once = r#"{"key": "größe/1", "namespace": "jobs", "wait": "0s"}"#;
    let refused = http.call("locks/acquire", once).await;
    assert_eq!(
        (refused.code, refused.reason()),
        (409, "HELD"),
        "{refused:?}"
    );
    let error = &refused.body["error"];
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!(409), &json!("ABORTED"))
    );
    assert_eq!(
        (&error["retryable"], &error["effect"]),
        (&json!(true), &json!("NONE"))
    );
    assert_eq!(error["heldBy"]["label"], "php");
    assert!(error["heldBy"]["remaining"].is_string(), "{error}");

    // As URLs have it.
    let for_urls = handle.replace('+', "-").replace('/', "_").replace('=', "");
    for handle in [&handle, &for_urls] {
        let renewed = http.call("locks/renew", &with(handle)).await;
        assert_eq!(renewed.code, 200, "{renewed:?}");
    }
    let which = r#"{"key": "größe/1", "namespace": "jobs"}"#;
    let found = http.call("locks/inspect", which).await;
    assert_eq!(found.text("/holder/label"), "php");
    assert_eq!(found.text("/holder/kind"), "MUTEX");
    assert_eq!(found.body["waiters"], json!([]));

    let released = http.call("locks/release", &with(&handle)).await;
    assert_eq!(released.body, json!({ "outcome": "HELD" }));
    let again = http.call("locks/release", &with(&handle)).await;
    assert_eq!(again.body, json!({ "outcome": "LOST" }));
    let lost = http.call("locks/renew", &with(&handle)).await;
    assert_eq!((lost.code, lost.reason()), (400, "LOCK_LOST"));
    let next = http.call("locks/acquire", once).await;
    assert!(next.text("/token").parse::<u64>().unwrap() > token);
}

#[tokio::test]
async fn a_writer_becomes_a_reader() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    // In full, too, and with the names of the protos.
    let ask = r#"{"key": "key", "mode": "LOCK_MODE_WRITE", "hold_for": "30s"}"#;
    let writer = http.call("locks/acquire", ask).await;
    let with = json!({ "handle": writer.text("/handle") }).to_string();
    let reader = http.call("locks/downgrade", &with).await;
    assert_ne!(reader.text("/handle"), writer.text("/handle"));
    let ask = r#"{"key": "key", "mode": "READ", "wait": "0s"}"#;
    assert_eq!(http.call("locks/acquire", ask).await.code, 200);
    let found = http.call("locks/inspect", r#"{"key": "key"}"#).await;
    assert_eq!(found.text("/others/0/kind"), "READ_WRITE");
    assert_eq!(found.body["holder"]["exclusive"], false);
}

#[tokio::test]
async fn keys_are_text_and_others_have_another_name() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    for key in [&b"text"[..], b"\xff\x00"] {
        let ask = AcquireRequest {
            key: key.to_vec(),
            ..AcquireRequest::default()
        };
        acquire(&mut locks, ask).await.unwrap();
    }
    let mut http = Http::to(&scene).await;
    http.send("POST /v1/locks/list", &[http::JSON], b"{}").await;
    let (code, head) = http.head().await;
    let lines = "content-type: application/x-ndjson";
    assert!(
        code == 200 && head.iter().any(|line| line == lines),
        "{head:?}"
    );
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    while let Some(page) = http.next().await {
        assert_eq!(page["error"], "");
        for lock in page["locks"].as_array().unwrap() {
            keys.extend(lock["key"].as_str().map(str::to_owned));
            others.extend(lock["keyBase64"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(
        (&*keys, &*others),
        (&["text".into()][..], &["/wA=".into()][..])
    );
    for name in [
        r#""key": "text""#,
        r#""keyBase64": "/wA=""#,
        r#""keyBase64": "_wA""#,
    ] {
        let found = http.call("locks/inspect", &format!("{{{name}}}")).await;
        assert!(found.body["holder"].is_object(), "{name}: {found:?}");
    }
    let free = http.call("locks/inspect", r#"{"key": "/wA="}"#).await;
    assert!(free.body["holder"].is_null(), "{free:?}");
}

#[tokio::test]
async fn coins_are_deducted_once() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    let create = r#"{"account": {"name": "coins"}, "durability": "MEMORY", "segments": 2}"#;
    assert_eq!(http.call("accounts/create", create).await.body, json!({}));
    let change = |name: &str, amount: Value| {
        let id = json!({ "createdAt": now(), "name": name });
        json!({ "account": { "name": "coins" }, "id": id, "amount": amount }).to_string()
    };
    let deposit = change("a", json!("100"));
    assert_eq!(
        http.call("accounts/deposit", &deposit).await.body,
        json!({})
    );
    let deduct = change("b", json!(30));
    for _ in 0..2 {
        let deducted = http.call("accounts/deduct", &deduct).await;
        assert_eq!(deducted.code, 200, "{deducted:?}");
    }
    let short = http.call("accounts/deduct", &change("c", json!(71))).await;
    assert_eq!(
        (short.code, short.reason()),
        (400, "INSUFFICIENT"),
        "{short:?}"
    );
    let which = r#"{"account": {"name": "coins"}, "exact": true}"#;
    let balance = http.call("accounts/get-balance", which).await;
    assert_eq!(balance.text("/available"), "70");
    assert_eq!(
        (balance.text("/held"), &balance.body["countsTwice"]),
        ("0", &json!(false))
    );
    let one: Value = serde_json::from_str(&deduct).unwrap();
    let other: Value = serde_json::from_str(&change("d", json!(1000))).unwrap();
    let batch = json!({ "changes": [{ "deduct": one }, { "deduct": other }] }).to_string();
    let made = http.call("accounts/batch-change", &batch).await;
    assert_eq!(made.body["answers"].as_array().unwrap().len(), 2);
    assert!(made.body["answers"][0]["failure"].is_null(), "{made:?}");
    let reason = made.text("/answers/1/failure/error/reason");
    assert!(reason.ends_with("INSUFFICIENT"), "{made:?}");
    for (batch, field, limit) in [
        (r#"{"changes": {}}"#, "changes", "a list"),
        (r#"{"changes": [{}, 1]}"#, "changes[1]", "an object"),
        (
            r#"{"changes": [{"deduct": {}, "deposit": {}}]}"#,
            "changes[0].deposit",
            "the only one of deposit, deduct, reserve, confirm, cancel, transfer",
        ),
    ] {
        let refused = http.call("accounts/batch-change", batch).await;
        assert_eq!(refused.text("/error/invalidInput/field"), field);
        assert_eq!(refused.text("/error/invalidInput/limit"), limit);
    }
    let find = json!({ "account": one["account"], "id": one["id"] }).to_string();
    let found = http.call("accounts/find", &find).await;
    assert_eq!(found.text("/decision"), "DONE");
    let none = r#"{"account": {"name": "none"}}"#;
    let none = http.call("accounts/get-balance", none).await;
    assert_eq!((none.code, none.reason()), (404, "NO_ACCOUNT"));
}

/// As clients write it.
#[expect(clippy::disallowed_methods, reason = "callers have no other clock")]
fn now() -> String {
    prost_types::Timestamp::from(SystemTime::now()).to_string()
}

#[tokio::test]
async fn a_latch_opens() {
    let scene = Scene::set().await;
    let mut http = Http::to(&scene).await;
    let set = r#"{"name": "ready", "count": 1, "durability": "MEMORY"}"#;
    assert_eq!(http.call("latches/set", set).await.body, json!({}));
    let name = r#"{"name": "ready"}"#;
    let state = http.call("latches/get", name).await;
    assert_eq!(state.body, json!({ "remaining": "1" }));
    let id = json!({ "createdAt": now(), "name": "one" });
    let count = json!({ "name": "ready", "id": id }).to_string();
    assert_eq!(http.call("latches/count-down", &count).await.code, 200);
    assert_eq!(http.call("latches/wait", name).await.code, 200);
    let state = http.call("latches/get", name).await;
    assert_eq!(state.body, json!({ "remaining": "0" }));
}

#[tokio::test]
async fn an_acquisition_says_why_it_waits() {
    let scene = Scene::set().await;
    let held = scene
        .other
        .lock("key")
        .label("worker 7")
        .acquire()
        .await
        .unwrap();
    let mut http = Http::to(&scene).await;
    http.send(
        "POST /v1/locks/acquire-and-watch",
        &[http::JSON],
        br#"{"key": "key"}"#,
    )
    .await;
    assert_eq!(http.head().await.0, 200);
    let waits = http.next().await.unwrap();
    assert_eq!(waits["wait"]["reason"], "HELD", "{waits}");
    assert_eq!(waits["wait"]["heldBy"]["label"], "worker 7");
    held.release().await;
    let granted = loop {
        let event = http.next().await.unwrap();
        if let Value::Object(granted) = &event["granted"] {
            break granted.clone();
        }
    };
    assert!(http.next().await.is_none());
    let handle = json!({ "handle": granted["handle"] }).to_string();
    assert_eq!(
        http.call("locks/release", &handle).await.body,
        json!({ "outcome": "HELD" })
    );

    // An error that comes before the first reason is that of the call.
    let _held = scene.other.lock("key").acquire().await.unwrap();
    let once = http
        .call("locks/acquire-and-watch", r#"{"key": "key", "wait": "0s"}"#)
        .await;
    assert_eq!((once.code, once.reason()), (409, "HELD"));
    let ask = br#"{"key": "key", "wait": "0.2s"}"#;
    http.send("POST /v1/locks/acquire-and-watch", &[http::JSON], ask)
        .await;
    assert_eq!(http.head().await.0, 200);
    let mut last = Value::Null;
    while let Some(event) = http.next().await {
        last = event;
    }
    assert_eq!(last["error"]["reason"], "TIMED_OUT", "{last}");
    assert_eq!(last["error"]["code"], 504);
}

/// Over HTTP/1.1, the end of the connection is the end of its calls.
#[tokio::test]
async fn a_caller_that_goes_leaves_nothing_locked() {
    let scene = Scene::set().await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    for call in ["acquire", "acquire-and-watch"] {
        let mut http = Http::to(&scene).await;
        let path = format!("POST /v1/locks/{call}");
        http.send(&path, &[http::JSON], br#"{"key": "key"}"#).await;
        eventually("it waits", async || scene.waiters("key").await == 1).await;
        drop(http);
        let is_gone = async || scene.waiters("key").await == 0;
        eventually("its place is gone", is_gone).await;
    }
    held.release().await;
    assert!(scene.is_free("key").await);
}
