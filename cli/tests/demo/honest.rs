//! A sceptical reader finds nothing hidden in the demo: without locks on accounts it does the same
//! work at the same pace, and says so; its output is short.

use serde_json::Value;

use super::{demo, passed};

#[test]
fn without_locks_deductions_are_lost_and_named() {
    for time in [&["--seed", "7"][..], &["--shards", "2"]] {
        let args = [time, &["--for", "500ms", "--unsafe-no-lock"]].concat();
        let shown = demo(&args);
        assert_eq!(shown.code, 1, "{shown:?}");
        for words in [
            "WITHOUT LOCKS ON THEM",
            "each worker locked a key of its own",
            "audit: FAILED",
            "account 0: lost: ",
            "account 0: overwritten: op ",
        ] {
            assert!(shown.stdout.contains(words), "{words}: {shown:?}");
        }

        let failed = demo(&[&args[..], &["--json"]].concat());
        assert_eq!(failed.code, 1);
        let report: Value = serde_json::from_str(&failed.stdout).unwrap();
        let audit = &report["audit"];
        assert_eq!(audit["ok"], false);
        assert!(audit["coins_off"].as_u64().unwrap() > 0, "{report}");
        let violations = audit["violations"].as_array().unwrap();
        assert!(violations.len() <= 20, "{report}");
        assert!(
            audit["violations_total"].as_u64().unwrap() >= violations.len() as u64,
            "{report}"
        );
        let lost = violations
            .iter()
            .find(|violation| violation["kind"] == "lost")
            .unwrap();
        assert_eq!(
            (&lost["account"], &lost["of"]["token"]),
            (&0.into(), &Value::Null)
        );
    }
}

#[test]
fn without_locks_on_accounts_the_work_and_its_pace_are_the_same() {
    // One worker never waits for a lock, in either run.
    let args = ["--seed", "7", "--for", "1m", "--workers", "1", "--json"];
    let report = passed(&demo(&args));
    let unlocked = passed(&demo(&[&args[..], &["--unsafe-no-lock"]].concat()));
    assert_eq!(unlocked["locked"], false, "{unlocked}");
    let pace = |report: &Value| report["deductions"].as_f64().unwrap();
    let ratio = pace(&unlocked) / pace(&report);
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn without_locks_deductions_are_lost_while_the_ring_is_resized() {
    let args = [
        "--resize",
        "--seed",
        "7",
        "--unsafe-no-lock",
        "--workers",
        "16",
        "--for",
        "2s",
    ];
    let failed = demo(&args);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("audit: FAILED"), "{failed:?}");
    assert!(failed.stdout.contains("account 0: lost: "), "{failed:?}");
}

#[test]
fn every_line_of_a_report_has_80_columns_at_most() {
    let short = ["--for", "300ms"];
    for args in [
        &[][..],
        &["--unsafe-no-lock"],
        &["--seed", "18446744073709551615"],
        &["--seed", "7", "--unsafe-no-lock"],
        &["--seed", "7", "--workers", "16", "--resize"],
        &[
            "--seed",
            "7",
            "--workers",
            "16",
            "--resize",
            "--unsafe-no-lock",
        ],
        &["--hot"],
        &["--seed", "7", "--hot", "--segments", "1,1024"],
        &["--hot", "--spawn-redis", "2"],
    ] {
        let shown = demo(&[&short, args].concat());
        for line in shown.stdout.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line:?}");
        }
    }
}
