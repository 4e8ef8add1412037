//! What the command is given: arguments, environment, files, signals.

use std::{process::Command, time::Duration};

use nix::sys::signal::Signal;
use tokio::{io::AsyncWriteExt, time::Instant};

use super::{Running, Stage, unix};
use crate::binary;

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_environment_names_key_token_and_first_deadline() {
    let stage = Stage::set(1, LEASE).await;
    let print = "echo $RINGFENCE_TOKEN $RINGFENCE_EXPIRES_AT \"$RINGFENCE_KEY\"";
    let mut last_token = 0;
    for ttl in [5, 20] {
        let before = unix();
        let ran = stage.run(
            "a key",
            &["--ttl", &format!("{ttl}s")],
            &["sh", "-c", print],
        );
        let after = unix();
        let [token, expires_at, key] = ran.stdout.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{ran:?}")
        };
        assert_eq!(key, "a key\n");
        let token: u64 = token.parse().unwrap();
        assert!(token > last_token, "tokens rise");
        last_token = token;
        let expires_at = Duration::from_millis(expires_at.parse().unwrap());
        let lease = Duration::from_secs(ttl);
        assert!(
            expires_at > before + lease * 9 / 10,
            "{ran:?} after {before:?}"
        );
        assert!(expires_at < after + lease, "{ran:?} before {after:?}");
    }
    let client = stage.servers.client().await;
    let guard = client.lock("a key").acquire().await.unwrap();
    assert!(guard.token().get() > last_token, "they are fencing tokens");
    guard.release().await;
    client.close().await;
}

#[tokio::test]
async fn arguments_go_through_no_shell() {
    let stage = Stage::set(1, LEASE).await;
    let arguments = ["$HOME", "*", "a b", ";exit 3", "--wait", ""];
    let ran = stage.run("key", &[], &[&["printf", "%s|"][..], &arguments].concat());
    assert_eq!(ran.stdout, "$HOME|*|a b|;exit 3|--wait||", "{ran:?}");
}

#[tokio::test]
async fn files_are_passed_on_and_none_are_added() {
    let stage = Stage::set(1, LEASE).await;
    let mut running = stage.start("key", &[], &["cat"]);
    let mut stdin = running.0.stdin.take().unwrap();
    stdin.write_all(b"through").await.unwrap();
    drop(stdin);
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stdout), (0, "through"), "{ran:?}");

    let list = ["sh", "-c", "ls /proc/$$/fd"];
    let without = Command::new(list[0]).args(&list[1..]).output().unwrap();
    let without = String::from_utf8(without.stdout).unwrap();
    assert_eq!(stage.run("key", &[], &list).stdout, without);
}

/// As with `nohup`.
#[tokio::test]
async fn a_signal_that_was_to_be_ignored_stays_ignored() {
    let stage = Stage::set(1, LEASE).await;
    let binary = env!("CARGO_BIN_EXE_ringfence");
    let file = stage.file();
    let script = format!(
        "trap '' HUP; exec '{binary}' lock key --redis-file {file} -- \
         sh -c 'echo up > up; read line; echo $line'"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(stage.dir.path());
    let mut running = Running::start(command);
    stage.line_of("up").await;
    running.signal(Signal::SIGHUP);
    let mut stdin = running.0.stdin.take().unwrap();
    stdin.write_all(b"still here\n").await.unwrap();
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stdout), (0, "still here\n"), "{ran:?}");
}

#[tokio::test]
async fn processes_that_the_command_leaves_behind_continue_without_the_lock() {
    let stage = Stage::set(1, LEASE).await;
    let script = "sleep 1000 <&- >&- 2>&- & echo $!";
    let ran = stage.run("key", &[], &["sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let left = ran.stdout.trim();
    assert!(stage.is_free("key"));
    assert!(super::runs(left), "{ran:?}");
    let killed = Command::new("kill").arg(left).status().unwrap();
    assert!(killed.success());
}

#[tokio::test]
async fn passwords_are_told_to_nobody() {
    let stage = Stage::set_with(2, LEASE, |builder| builder.password("s3cret")).await;
    let (file, dir) = (stage.file(), stage.dir.path());
    let trace = |args: &[&str]| {
        let mut command = binary::command(args);
        binary::output(command.env("RUST_LOG", "trace").current_dir(dir))
    };
    // The guardian leads the command's group.
    let guardian = "g=$(cut -d' ' -f5 /proc/$$/stat); cat /proc/$g/cmdline /proc/$g/environ";
    let ran = trace(&[
        "lock",
        "key",
        "--redis-file",
        &file,
        "--",
        "sh",
        "-c",
        guardian,
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("guard-process-group"), "{ran:?}");

    let url = stage.servers.urls()[0].clone();
    let wrong = url.replace("s3cret", "s3cret-no-more");
    let silent = "redis://coin:s3cret@127.0.0.1:1";
    let outputs = [
        trace(&[
            "lock",
            "key",
            "--wait",
            "0s",
            "--redis",
            &url,
            "--",
            "no-such-program",
        ]),
        trace(&[
            "lock", "key", "--wait", "1s", "--redis", &wrong, "--", "true",
        ]),
        trace(&[
            "lock", "key", "--wait", "1s", "--redis", silent, "--", "true",
        ]),
        trace(&[
            "lock",
            "key",
            "--redis",
            "http://coin:s3cret@x",
            "--",
            "true",
        ]),
        trace(&["lock", "key", &url]),
        trace(&["lock", "key", "--redus", "redis://coin:s3'c s3cret@x"]),
        trace(&["lock", "key", "--wait=redis://coin:s3cret@x"]),
        trace(&[
            "lock",
            "key",
            "--redis=redis://a:s3cret@x,redis://b:s3cret@y",
            "--bogus",
        ]),
    ];
    let codes = outputs.each_ref().map(|output| output.code);
    assert_eq!(codes, [127, 69, 69, 2, 2, 2, 2, 2], "{outputs:?}");
    for output in outputs.iter().chain([&ran]) {
        let all = format!("{output:?}");
        assert!(!all.contains("s3cret") && !all.contains("s3'c"), "{all}");
    }
}

/// Two hosts start the same short job, and the clock of one is late.
#[tokio::test]
async fn a_short_job_runs_once_on_two_hosts_whose_clocks_differ() {
    let stage = Stage::set(1, LEASE).await;
    let job = ["sh", "-c", "echo ran >> log; exit 7"];
    let early = stage.start("key", &["--hold-at-least", "1h"], &job);
    stage.line_of("log").await;
    let late = ["--hold-at-least", "1h", "--wait", "0s", "-E", "0", "-q"];
    let late = stage.run("key", &late, &job);
    assert_eq!((late.code, &*late.stderr), (0, ""), "{late:?}");
    assert_eq!(stage.written("log"), "ran\n");
    early.signal(Signal::SIGTERM);
    let early = early.output().await;
    assert_eq!(
        (early.code, &*early.stderr),
        (7, ""),
        "the job's: {early:?}"
    );
    assert!(stage.is_free("key"));
}

#[tokio::test]
async fn a_lock_is_held_at_least_as_long_as_asked_for_and_no_longer() {
    let stage = Stage::set(1, LEASE).await;
    let (begun, at_least) = (Instant::now(), Duration::from_secs(1));
    let ran = stage.run("key", &["--hold-at-least", "1s"], &["true"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    assert!(begun.elapsed() >= at_least);
    assert!(stage.is_free("key"));
    let ran = stage.run("key", &["--hold-at-least", "1s", "--until-eof"], &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = stage.run("key", &["--hold-at-least", "1h"], &["/no/such/job"]);
    assert_eq!(ran.code, 127, "{ran:?}");
    assert!(stage.is_free("key"));
}
