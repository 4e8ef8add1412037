//! `ringfence demo --hot`: one account under a lock, and from counters; with what can be expected of segments there.

use super::{Output, demo};
use serde_json::Value;

fn hot(args: &[&str]) -> Output {
    demo(&[&["--hot", "--for", "400ms"], args].concat())
}

#[test]
fn every_coin_is_accounted_for_in_each_row() {
    let output = hot(&["--json"]);
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["audit"]["ok"], true, "{report}");
    let rows = report["rows"].as_array().unwrap();
    let segments: Vec<_> = rows.iter().map(|row| row["segments"].as_u64()).collect();
    assert_eq!(segments, [None, Some(1), Some(4), Some(16)], "{report}");
    for row in rows {
        assert!(row["deductions"].as_u64().unwrap() > 0, "{report}");
        assert_eq!(row["coins_off"], 0, "{report}");
    }
}

#[test]
fn it_says_whether_segments_can_help_where_it_ran() {
    let cores = std::thread::available_parallelism().unwrap();
    for (args, words) in [
        (
            &["--shards", "64"][..],
            "64 shards and 64 workers share one process and its",
        ),
        (
            &["--seed", "7"],
            "More segments cannot help here: simulated shards take no time",
        ),
        (
            &["--spawn-redis", "2"],
            "2 servers and this process share the",
        ),
    ] {
        let shown = hot(args);
        let text = shown
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(words), "{shown:?}");
        assert!(
            args[0] == "--seed" || text.contains(&format!("{cores} cores")),
            "{shown:?}"
        );
    }
}

#[test]
fn a_hot_run_of_a_given_number_of_coins_is_refused() {
    let refused = hot(&["--coins", "10"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--coins"), "{refused:?}");
}
