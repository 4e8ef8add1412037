//! The output of `show` and `plan`.

use ringfence_test_support::Servers;
use serde_json::{Value, json};

use super::{each, everything, founded, ring, told};
use crate::binary::ringfence;

#[tokio::test]
async fn show_describes_the_ring() {
    let servers = founded(3, 0).await;
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(shown["resize"], Value::Null);
    let shards = &shown["shards"];
    assert_eq!(each(shards, "id"), ["a", "b", "c"]);
    assert_eq!(each(shards, "weight"), [1, 1, 1]);
    assert_eq!(each(shards, "membership"), ["member"; 3]);
    assert_eq!(each(shards, "slots"), [5_462, 5_461, 5_461]);

    let plain = ring(&servers, &["show"]);
    assert_eq!((plain.code, &*plain.stderr), (0, ""), "{plain:?}");
    assert!(plain.stdout.starts_with("topology "), "{plain:?}");
}

#[tokio::test]
async fn a_plan_tells_moves_and_shares_and_changes_nothing() {
    let servers = founded(3, 1).await;
    let urls = servers.urls();
    ring(&servers, &["show"]);
    let before = everything(&servers).await;

    let added = told(&ring(&servers, &["plan", "--json", "--add", &urls[3]]));
    assert_eq!(each(&added["shards"], "id"), ["a", "b", "c", "d"]);
    assert_eq!(each(&added["shards"], "slots_after"), [4_096; 4]);
    assert_eq!(added["shards"][3]["weight_before"], Value::Null);
    assert_eq!(added["shards"][3]["share_before"], 0.0);
    assert_eq!(added["shards"][3]["share_after"], 0.25);
    assert_eq!(
        added["moves"],
        json!([
            {"from": "a", "to": "d", "slots": 1_366},
            {"from": "b", "to": "d", "slots": 1_365},
            {"from": "c", "to": "d", "slots": 1_365},
        ])
    );
    assert_eq!(added["slots_to_move"], 4_096);
    assert_eq!(added["optimum"], 4_096);

    let all = [
        "plan",
        "--add",
        &format!("{}=2", urls[3]),
        "--remove",
        "a",
        "--weigh",
        "b=3",
    ];
    let all = ring(&servers, &all);
    assert_eq!((all.code, &*all.stderr), (0, ""), "{all:?}");
    for part in [
        "planned, not begun",
        "16.7 %",
        "33.3 %",
        "50.0 %",
        "of 16,384 slots move",
    ] {
        assert!(all.stdout.contains(part), "{part}: {all:?}");
    }
    assert_eq!(everything(&servers).await, before);
}

#[tokio::test]
async fn plans_that_are_impossible_are_refused_by_name() {
    let servers = founded(2, 1).await;
    let urls = servers.urls();
    let before = everything(&servers).await;
    let member = urls[1].replace("redis://", "redis://coin:s3cret@");
    for (args, told) in [
        (
            &["--remove", "z"][..],
            "shard z is not a member; the members are a, b",
        ),
        (&["--weigh", "z=2"], "shard z is not a member"),
        (&["--weigh", "a=0"], "weight is 0, must be 1 to 10000"),
        (&["--weigh", "a"], "must be ID=WEIGHT"),
        (
            &["--add", &format!("{}=10001", urls[2])],
            "weight is 10001, must be 1 to 10000",
        ),
        (&["--add", &member], "is taken, by shard b"),
        (
            &["--add", &urls[2], "--add", &urls[2]],
            "is taken, by shard c",
        ),
        (&["--add", "http://coin:s3cret@h"], "an address begins with"),
        (
            &["--remove", "a", "--remove", "b"],
            "shards is 0, must be 1 to 1024",
        ),
        (&["--weigh", "a=1"], "nothing changes"),
        (&[], "required"),
    ] {
        let refused = ring(&servers, &[&["plan"], args].concat());
        assert_eq!(
            (refused.code, &*refused.stdout),
            (2, ""),
            "{args:?} {refused:?}"
        );
        assert!(refused.stderr.contains(told), "{args:?} {refused:?}");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
    assert_eq!(everything(&servers).await, before);
}

#[tokio::test]
async fn errors_are_json_where_json_is_asked_for() {
    let servers = Servers::spawn(1).await;
    let url = &servers.urls()[0];
    let nobody = "redis://127.0.0.1:1";
    for (args, code, retryable) in [
        (&["ring", "show", "--redis", nobody][..], 1, true),
        (&["ring", "show", "--redis", url], 1, false),
        (&["locks", "show", "key", "--redis", nobody], 1, true),
        (&["locks", "show", "", "--redis", url], 2, false),
        (&["locks", "list"], 2, false),
        (&["counter", "balance", "a", "--redis", nobody], 69, true),
        (&["ring", "show", "--rediss", url], 2, false),
    ] {
        let failed = ringfence(&[args, &["--json"]].concat());
        assert_eq!(failed.code, code, "{args:?} {failed:?}");
        let error = &serde_json::from_str::<Value>(&failed.stdout).unwrap()["error"];
        assert_eq!(error["code"], code, "{args:?} {failed:?}");
        assert_eq!(error["retryable"], retryable, "{args:?} {failed:?}");
        assert_eq!(error["effect"], "none", "{args:?} {failed:?}");
        let message = error["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && failed.stderr.contains(message),
            "{failed:?}"
        );
        assert_eq!(ringfence(args).stdout, "", "{args:?}");
    }
}
