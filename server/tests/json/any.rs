//! Bodies of any bytes: every call is answered, and the coordinator goes on.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value, json};

use super::{
    http::{Http, JSON},
    rules::paths,
};
use crate::scene::Scene;

/// Names of fields, and some that are none.
const NAMES: [&str; 24] = [
    "key",
    "keyBase64",
    "namespace",
    "lease",
    "hold_for",
    "wait",
    "label",
    "mode",
    "permits",
    "capacity",
    "preferred",
    "nonce",
    "nonceBase64",
    "handle",
    "account",
    "name",
    "id",
    "createdAt",
    "amount",
    "deadline",
    "durability",
    "count",
    "Base64",
    "é",
];

/// Values of texts: right for one of the fields, or nearly.
const TEXTS: [&str; 21] = [
    "",
    "key",
    "default",
    "30s",
    "0.2s",
    "-1s",
    "9223372036854775807.999999999s",
    "1.0000000001s",
    "s",
    "2026-01-31T12:00:00Z",
    "2026-00-00T99:99:99Z",
    "9999999999-01-01T00:00:00Z",
    "-1",
    "18446744073709551616",
    "READ",
    "LOCK_MODE_PERMITS",
    "MEMORY",
    "/w==",
    "_-8",
    "====",
    "é\u{0}",
];

/// A value that is right for one of the fields, or nearly.
fn part() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        select(&TEXTS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    one.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((select(&NAMES[..]), inner), 0..6).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&str, Value)>) -> Value {
    let members = members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    members.collect::<serde_json::Map<_, _>>().into()
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let whole = vec((select(&NAMES[..]), part()), 0..6);
    prop_oneof![
        4 => whole.prop_map(|members| object(members).to_string().into_bytes()),
        1 => part().prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..64),
        1 => Just("[".repeat(60_000).into_bytes()),
        1 => Just(json!({ "é".repeat(30_000): 1 }).to_string().into_bytes()),
    ]
}

#[test]
fn every_body_is_answered() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (scene, http) = runtime.block_on(async {
        let scene = Scene::set().await;
        let http = Http::to(&scene).await;
        (scene, tokio::sync::Mutex::new(http))
    });
    let paths: Vec<_> = paths().into_iter().collect();
    let calls = vec((any::<Index>(), body()), 8);
    let run = TestRunner::new(Config::default()).run(&calls, |calls| {
        runtime.block_on(async {
            let mut http = http.lock().await;
            for (path, body) in &calls {
                answered(&mut http, path.get::<String>(&paths), body).await?;
            }
            Ok(())
        })
    });
    run.unwrap_or_else(|failed| panic!("{failed}"));
    drop(scene);
}

async fn answered(http: &mut Http, path: &str, body: &[u8]) -> Result<(), TestCaseError> {
    let headers = [JSON, "grpc-timeout: 300m"];
    http.send(&format!("POST {path}"), &headers, body).await;
    let (code, head) = http.head().await;
    if head.iter().any(|line| line == "transfer-encoding: chunked") {
        while http.next().await.is_some() {}
        return Ok(());
    }
    let answer = http.body(code, head).await;
    // No error is one of the coordinator itself.
    let codes = [200, 400, 404, 409, 429, 503, 504];
    prop_assert!(codes.contains(&answer.code), "{path}: {answer:?}");
    prop_assert!(answer.body.is_object(), "{path}: {answer:?}");
    prop_assert!(answer.body.to_string().len() < 2500, "{path}: {answer:?}");
    Ok(())
}
