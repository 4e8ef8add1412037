//! What it exits with, and the line that comes with it.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use tokio::time::Instant;

use super::{Stage, our_line};
use crate::binary::{Output, ringfence};

/// It ends long after what is waited for.
const LEASE: Duration = Duration::from_secs(1000);

#[tokio::test]
async fn the_commands_own_code_is_passed_on_and_the_lock_given_back() {
    let stage = Stage::set(2, LEASE).await;
    for code in [0, 1, 7, 75, 255] {
        let ran = stage.run("key", &[], &["sh", "-c", &format!("exit {code}")]);
        assert_eq!((ran.code, &*ran.stderr), (code, ""), "{ran:?}");
        assert!(stage.is_free("key"), "after {code}");
    }
}

#[tokio::test]
async fn death_by_a_signal_is_128_and_the_signal() {
    let stage = Stage::set(1, LEASE).await;
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139)] {
        let script = format!("kill -{signal} $$");
        let ran = stage.run("key", &[], &["sh", "-c", &script]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(
            our_line(&ran),
            format!("the command was killed by SIG{signal}")
        );
    }
    assert!(stage.is_free("key"));
}

#[tokio::test]
async fn a_lock_not_acquired_in_time_is_75_or_as_requested() {
    let stage = Stage::set(1, LEASE).await;
    let client = stage.servers.client().await;
    let guard = client.lock("key").label("payroll").acquire().await.unwrap();

    let asked = Instant::now();
    let refused = stage.run("key", &["--wait", "0s"], &["touch", "ran"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let line = our_line(&refused);
    let expected = "not acquired within 0s: held by payroll for at most ";
    assert!(line.starts_with(expected), "{line}");

    let refused = stage.run("key", &["--wait", "300ms", "-E", "9"], &["touch", "ran"]);
    assert_eq!(refused.code, 9, "{refused:?}");
    assert!(our_line(&refused).starts_with("not acquired within 300ms: held by payroll"));
    assert!(asked.elapsed() >= Duration::from_millis(300));
    assert!(!stage.path("ran").exists());
    // In another namespace it is another lock.
    let other = stage.run("key", &["--wait", "0s", "--namespace", "other"], &["true"]);
    assert_eq!(other.code, 0, "{other:?}");

    guard.release().await;
    client.close().await;
}

/// A job that nobody holds is not skipped in silence.
#[tokio::test]
async fn a_conflict_code_covers_neither_a_recovery_period_nor_an_outage() {
    let mut stage = Stage::set(2, LEASE).await;
    let key = stage.key_on(1).await;
    let once = ["--wait", "0s", "-E", "0"];
    stage.servers.servers[1].restart().await.unwrap();
    let refused = eventually_recovering(&stage, &key, &once).await;
    assert_eq!(refused.code, 75, "{refused:?}");
    let line = our_line(&refused);
    assert!(line.starts_with("not acquired within 0s: shard b is recovering: new locks in "));
    let refused = stage.run(&key, &["--wait", "700ms", "-E", "0"], &["touch", "ran"]);
    assert_eq!(refused.code, 75, "{refused:?}");

    stage.servers.servers[1].kill();
    let failed = stage.run(&key, &once, &["touch", "ran"]);
    assert_eq!(failed.code, 69, "{failed:?}");
    assert!(!stage.path("ran").exists());
}

/// The first answer that names the recovery period: before that, the shard may not be activated yet.
async fn eventually_recovering(stage: &Stage, key: &str, options: &[&str]) -> Output {
    let deadline = Instant::now() + LEASE / 2;
    loop {
        let refused = stage.run(key, options, &["touch", "ran"]);
        if refused.stderr.contains("is recovering: new locks") || Instant::now() > deadline {
            return refused;
        }
    }
}

#[tokio::test]
async fn servers_that_are_not_there_are_69_once_the_wait_is_over() {
    for wait in ["0s", "2s"] {
        let asked = Instant::now();
        let url = "redis://127.0.0.1:1";
        let failed = ringfence(&["lock", "key", "--wait", wait, "--redis", url, "--", "true"]);
        assert_eq!(failed.code, 69, "{failed:?}");
        let last = failed.stderr.lines().last().unwrap();
        let expected = "ringfence: servers unreachable or misconfigured: ";
        assert!(last.starts_with(expected), "{failed:?}");
        assert!(last.contains("redis://127.0.0.1:1/0"), "{failed:?}");
        let said_meanwhile = failed.stderr.starts_with("ringfence: waiting: ");
        let waited = asked.elapsed() >= Duration::from_secs(2);
        assert_eq!(
            (said_meanwhile, waited),
            (wait != "0s", wait != "0s"),
            "{failed:?}"
        );
    }
}

/// A cron job is to fail rather than to pile up.
#[tokio::test]
async fn without_a_wait_servers_that_are_not_there_are_given_up() {
    let asked = Instant::now();
    let failed = ringfence(&[
        "lock",
        "key",
        "--redis",
        "redis://127.0.0.1:1",
        "--",
        "true",
    ]);
    assert_eq!(failed.code, 69, "{failed:?}");
    assert!(asked.elapsed() >= Duration::from_secs(10), "{failed:?}");
}

#[tokio::test]
async fn a_shard_that_is_not_there_is_69_for_its_own_keys_only() {
    let mut stage = Stage::set(2, LEASE).await;
    let (here, gone) = (stage.key_on(0).await, stage.key_on(1).await);
    stage.servers.servers[1].kill();
    for wait in [&["--wait", "0s"][..], &["--wait", "700ms"], &[]] {
        let failed = stage.run(&gone, wait, &["true"]);
        assert_eq!(failed.code, 69, "{wait:?} {failed:?}");
        let last = failed.stderr.lines().last().unwrap();
        let expected = "ringfence: servers misconfigured: ";
        assert!(last.starts_with(expected), "{failed:?}");
        assert!(stage.is_free(&here));
    }
}

#[tokio::test]
async fn invalid_arguments_are_2() {
    let stage = Stage::set(1, Duration::from_secs(5)).await;
    let long_key = "k".repeat(513);
    for (args, problem) in [
        (
            &["key", "--ttl", "6s"][..],
            "--ttl 6s is too long: at most 5s (the topology's max_lease)",
        ),
        (
            &["key", "--ttl", "50ms"],
            "--ttl 50ms is too short: at least 100ms",
        ),
        (
            &["key", "--ttl", "5"],
            "'--ttl <LENGTH>': 5 has no unit: write 5ms, 5s, 5m, 5h or 5d",
        ),
        (
            &["key", "--timeout", "5s"],
            "a similar argument exists: '--wait'",
        ),
        (&["key", "--lease=5s"], "a similar argument exists: '--ttl'"),
        (&["key", "-n"], "a similar argument exists: '--wait 0s'"),
        (&["key", "--wait=-1s"], "--wait"),
        (&["key", "-E", "256"], "256"),
        (
            &["key", "--namespace", "No Such"],
            "namespace \"No Such\": 1 to 64",
        ),
        (&[""], "KEY has 0 bytes, must have 1 to 512"),
        (&[&long_key], "KEY has 513 bytes, must have 1 to 512"),
    ] {
        let refused = stage.run(args[0], &args[1..], &["touch", "ran"]);
        assert_eq!(
            (refused.code, &*refused.stdout),
            (2, ""),
            "{args:?} {refused:?}"
        );
        let line = refused.stderr.strip_prefix("ringfence: ");
        assert!(
            line.is_some_and(|line| line.contains(problem)),
            "{refused:?}"
        );
    }
    assert_eq!(ringfence(&["lock"]).code, 2);
    assert!(!stage.path("ran").exists());
}

/// As with a variable that is empty: `lock key -- $CMD`. Nothing would run, and the lock would be held until stdin closes.
#[tokio::test]
async fn a_command_that_is_empty_is_2() {
    let stage = Stage::set(1, LEASE).await;
    let file = stage.file();
    let lock = ["lock", "--redis-file", &file];
    for rest in [
        &["key", "--"][..],
        &["key", "--wait", "0s", "--"],
        &["key", "--", ""],
        &["key", "", "argument"],
    ] {
        let refused = ringfence(&[&lock, rest].concat());
        assert_eq!(
            (refused.code, &*refused.stdout),
            (2, ""),
            "{rest:?} {refused:?}"
        );
        let line = our_line(&refused);
        assert!(line.starts_with("CMD is empty"), "{rest:?} {line}");
    }
    // Here the dashes stand before the key.
    let kept = ringfence(&[&lock[..], &["--until-eof", "--", "key"]].concat());
    assert_eq!(kept.code, 0, "{kept:?}");
    // As with `&` in a script, where it would hold nothing.
    let refused = ringfence(&[&lock[..], &["key"]].concat());
    assert_eq!(refused.code, 2, "{refused:?}");
    let line = our_line(&refused);
    assert!(
        line.starts_with("no CMD, and stdin is not a terminal"),
        "{line}"
    );
    // Words for a shell.
    let missing = ringfence(&[&lock[..], &["key", "true && true"]].concat());
    assert_eq!(missing.code, 127, "{missing:?}");
    let line = our_line(&missing);
    assert!(line.ends_with("-- sh -c 'true && true'"), "{line}");
}

#[test]
fn without_a_server_it_says_that_embedded_shards_would_exclude_nobody() {
    let refused = ringfence(&["lock", "key", "--", "true"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let line = our_line(&refused);
    assert!(
        line.contains("no server is named: give --redis URL"),
        "{line}"
    );
    assert!(
        line.contains("embedded shards") && line.contains("exclude no other process"),
        "{line}"
    );
}

#[tokio::test]
async fn a_command_that_cannot_start_releases_the_lock_at_once() {
    let stage = Stage::set(1, LEASE).await;
    for (name, mode) in [("not-executable", 0o644), ("no-interpreter", 0o755)] {
        // Through a shell, the latter would run.
        fs::write(stage.path(name), "touch ran\n").unwrap();
        fs::set_permissions(stage.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (program, code, problem) in [
        ("./no-such-program", 127, "./no-such-program is not found"),
        ("no-such-program", 127, "no-such-program is not found"),
        (
            "./not-executable",
            126,
            "./not-executable cannot be executed: Permission denied",
        ),
        (
            "./no-interpreter",
            126,
            "./no-interpreter cannot be executed: Exec format error",
        ),
    ] {
        let failed = stage.run("key", &[], &[program]);
        assert_eq!(failed.code, code, "{failed:?}");
        assert!(our_line(&failed).starts_with(problem), "{failed:?}");
        assert!(stage.is_free("key"), "{program}");
    }
    assert!(!stage.path("ran").exists());
}

#[test]
fn help_tells_the_exit_codes() {
    let help = ringfence(&["lock", "--help"]);
    assert_eq!((help.code, &*help.stderr), (0, ""));
    for code in ["69", "71", "75", "80", "126", "127", "128 + signal"] {
        assert!(help.stdout.contains(code), "{code}: {}", help.stdout);
    }
    assert!(!help.stdout.contains("guard-process-group"));
    assert!(
        !ringfence(&["--help"])
            .stdout
            .contains("guard-process-group")
    );
}

#[test]
fn nobody_is_killed_by_a_guardian_started_by_hand() {
    // It is not a group leader here: the group is the test's.
    let refused = ringfence(&["guard-process-group"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        our_line(&refused).contains("only `ringfence lock`"),
        "{refused:?}"
    );
}
