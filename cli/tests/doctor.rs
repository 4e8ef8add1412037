//! `ringfence doctor`, on real servers.

use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::Servers;
use serde_json::Value;

use crate::binary::ringfence;

#[tokio::test]
async fn each_server_is_told_with_what_it_lacks() {
    let servers = Servers::spawn(1).await;
    let url = servers.urls().remove(0);
    let founded = ringfence(&["ring", "init", "--servers-are-new", "--redis", &url]);
    assert_eq!(founded.code, 0, "{founded:?}");
    let started = async |builder: ringfence_coordinator::spawn::RedisServerBuilder| {
        builder.spawn().await.unwrap()
    };
    let evicts = started(RedisServer::builder().set("maxmemory-policy", "allkeys-lru")).await;
    let managed = started(RedisServer::builder().without("CONFIG")).await;
    let bare = started(RedisServer::builder().without("FUNCTION")).await;
    let urls = [evicts.url(), managed.url(), bare.url()];
    let dead = "redis://127.0.0.1:1";

    let all = ["doctor", "--json", &url, &urls[0], &urls[1], &urls[2], dead];
    let told = ringfence(&all);
    assert_eq!((told.code, &*told.stderr), (1, ""), "{told:?}");
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let told = told["servers"].as_array().unwrap();
    let ok: Vec<_> = told.iter().map(|server| server["ok"] == true).collect();
    assert_eq!(ok, [true, false, true, true, false], "{told:?}");
    for (place, problem) in [
        (1, "CONFIG SET maxmemory-policy noeviction"),
        (4, "Connection refused"),
    ] {
        let said = told[place]["problem"].as_str().unwrap();
        assert!(said.contains(problem), "{said}");
    }
    assert!(told[0]["topology"].as_str().unwrap().contains("version"));
    assert_eq!(
        (&told[2]["topology"], &told[2]["problem"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&told[2]["scripts"], &told[3]["scripts"]),
        (&"FCALL".into(), &"EVALSHA".into())
    );
    assert_eq!(
        (&told[0]["role"], &told[1]["eviction"]),
        (&"master".into(), &"allkeys-lru".into())
    );
    assert!(told[0]["clock_ahead_ms"].is_i64() && told[0]["connections_left"].is_u64());

    let one = ringfence(&["doctor", "--redis", &url]);
    assert_eq!((one.code, &*one.stderr), (0, ""), "{one:?}");
    assert!(
        one.stdout.lines().count() == 2 && one.stdout.contains(" yes "),
        "{one:?}"
    );
}
