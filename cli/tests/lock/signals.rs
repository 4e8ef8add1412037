//! Signals, and the end of `ringfence` itself.

use std::{os::unix::process::CommandExt, time::Duration};

use nix::sys::signal::{Signal, killpg};
use ringfence_test_support::eventually;
use tokio::time::sleep;

use super::{Running, Stage, our_line, our_lines, runs};

/// It ends long after what is waited for.
const LEASE: Duration = Duration::from_secs(1000);

/// A command and one of its own, which both write down the signal $1 they get.
const TWO_OF_THEM: &str = r#"
    trap "echo parent >> got; exit 5" $1
    sh -c 'trap "echo child >> got; exit" $1; echo up > up; while :; do sleep 0.02; done' - $1
    exit 6
"#;

#[tokio::test]
async fn signals_reach_the_whole_group() {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    let stage = Stage::set(1, LEASE).await;
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2] {
        for file in ["got", "up"] {
            let _ = std::fs::remove_file(stage.path(file));
        }
        let name = &signal.as_str()["SIG".len()..];
        let running = stage.start("key", &[], &["sh", "-c", TWO_OF_THEM, "-", name]);
        stage.line_of("up").await;
        running.signal(signal);
        let ran = running.output().await;
        assert_eq!(
            (ran.code, our_lines(&ran).len()),
            (5, 0),
            "{signal} {ran:?}"
        );
        let mut got: Vec<_> = stage.written("got").lines().map(str::to_owned).collect();
        got.sort();
        assert_eq!(got, ["child", "parent"], "{signal}");
        assert!(stage.is_free("key"), "{signal}");
    }
}

#[tokio::test]
async fn a_command_that_dies_by_a_signal_passed_on_gives_the_lock_back() {
    let stage = Stage::set(1, LEASE).await;
    let running = stage.start("key", &[], &["sh", "-c", "echo up > up; exec sleep 1000"]);
    stage.line_of("up").await;
    running.signal(Signal::SIGTERM);
    let ran = running.output().await;
    assert_eq!(ran.code, 128 + 15, "{ran:?}");
    assert_eq!(our_line(&ran), "the command was killed by SIGTERM");
    assert!(stage.is_free("key"));
}

/// As an interactive shell does.
#[tokio::test]
async fn signals_reach_a_command_that_left_the_group() {
    let stage = Stage::set(1, LEASE).await;
    let script = "echo up > up; exec sleep 1000";
    let running = stage.start("key", &[], &["setsid", "sh", "-c", script]);
    stage.line_of("up").await;
    running.signal(Signal::SIGTERM);
    let ran = running.output().await;
    assert_eq!(ran.code, 128 + 15, "{ran:?}");
}

#[tokio::test]
async fn an_interrupted_wait_leaves_nothing_behind() {
    let stage = Stage::set(1, LEASE).await;
    let client = stage.servers.client().await;
    let guard = client.lock("key").acquire().await.unwrap();
    let running = stage.start("key", &[], &["touch", "ran"]);
    // It waits: its connections are there, beside those of this client.
    let asks = || async {
        let clients: String = stage.servers.ask(0, &["CLIENT", "LIST"]).await;
        clients
            .lines()
            .filter(|line| line.contains(":work"))
            .count()
            > 2
    };
    eventually("it asks for the lock", asks).await;
    running.signal(Signal::SIGINT);
    let ran = running.output().await;
    assert_eq!(ran.code, 128 + 2, "{ran:?}");
    let expected = "interrupted by SIGINT while waiting for the lock";
    assert!(
        ran.stderr.ends_with(&format!("ringfence: {expected}\n")),
        "{ran:?}"
    );
    guard.release().await;
    client.close().await;
    assert!(stage.is_free("key"));
    assert!(!stage.path("ran").exists());
}

/// Deaf to all but SIGKILL, with a process of its own that is too. Writes down the group.
const DEAF: &str = r#"
    trap "" INT TERM HUP QUIT USR1 USR2
    sh -c 'echo $$ > grandchild; while :; do sleep 0.1; done' &
    until [ -s grandchild ]; do sleep 0.01; done
    echo $$ $(cat grandchild) $(cut -d" " -f5 /proc/$$/stat) > up
    while :; do sleep 0.1; done
"#;

async fn deaf(stage: &Stage) -> (Running, Vec<String>) {
    let mut command = stage.lock("key", &[], &["sh", "-c", DEAF]);
    let running = Running::start({
        command.process_group(0);
        command
    });
    let pids = stage.line_of("up").await;
    let pids: Vec<_> = pids.split(' ').map(str::to_owned).collect();
    assert!(
        pids.len() == 3 && pids.iter().all(|pid| runs(pid)),
        "{pids:?}"
    );
    (running, pids)
}

async fn gone(pids: &[String]) {
    let gone = || async { !pids.iter().any(|pid| runs(pid)) };
    eventually("the group is gone", gone).await;
}

#[tokio::test]
async fn the_group_is_gone_after_a_sigkill_and_long_before_the_lease_ends() {
    let stage = Stage::set(1, LEASE).await;
    let (mut running, pids) = deaf(&stage).await;
    // None of these is for the guardian.
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1] {
        running.signal(signal);
    }
    sleep(Duration::from_millis(300)).await;
    running.0.kill().await.unwrap();
    gone(&pids).await;
    // Nobody was there to give it back: it ends with its lease.
    assert!(!stage.is_free("key"));
}

#[tokio::test]
async fn the_group_is_gone_when_all_of_our_own_group_is_killed() {
    let stage = Stage::set(1, LEASE).await;
    let (mut running, pids) = deaf(&stage).await;
    killpg(running.pid(), Signal::SIGKILL).unwrap();
    running.0.wait().await.unwrap();
    gone(&pids).await;
}

#[tokio::test]
async fn no_guardian_is_left_when_the_command_has_ended() {
    let stage = Stage::set(1, LEASE).await;
    let print_group = "cut -d' ' -f5 /proc/$$/stat";
    let ran = stage.run("key", &[], &["sh", "-c", print_group]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!runs(ran.stdout.trim()), "{ran:?}");
}
