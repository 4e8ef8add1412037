//! The lease is lost: the command is gone before somebody else can have the lock.

use std::time::Duration;

use nix::sys::signal::Signal;
use ringfence_test_support::eventually;
use tokio::time::sleep;

use super::{Stage, our_line, runs, unix};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(4);
const LOST: &str = "the lock was lost: its lease was not renewed in time, or it was taken away";

/// Writes down the time for as long as it lives, and that it was told to end.
const CLOCK: &str = r#"
    trap "date +%s%N >> told" TERM
    sh -c 'trap "" TERM; while :; do sleep 0.1; done' & echo $! > grandchild
    while :; do date +%s%N >> times; sleep 0.02; done
"#;

/// As that, but ends when it is told to.
const OBEDIENT: &str = r#"
    trap "exit 3" TERM
    while :; do date +%s%N >> times; sleep 0.02; done
"#;

impl Stage {
    /// Until when a command was seen alive, since 1970.
    fn last_time(&self) -> Duration {
        let times = self.written("times");
        let whole = &times[..times.rfind('\n').unwrap()];
        let last = whole.lines().last().unwrap();
        Duration::from_nanos(last.parse().unwrap())
    }
}

#[tokio::test]
async fn a_command_deaf_to_sigterm_is_dead_before_the_lease_ends() {
    a_deaf_command_is_dead_in_time(&Stage::set(1, LEASE).await, LEASE).await;
}

/// What ends is the view of the topology: the lease is six times as long.
#[tokio::test]
async fn a_command_deaf_to_sigterm_is_dead_before_the_view_ends_where_removal_is_leased() {
    a_deaf_command_is_dead_in_time(&Stage::leased(1, 6 * LEASE).await, LEASE).await;
}

/// Once nothing is answered any more, the lock is held for `length` at most.
async fn a_deaf_command_is_dead_in_time(stage: &Stage, length: Duration) {
    let running = stage.start("key", &[], &["sh", "-c", CLOCK]);
    stage.line_of("times").await;
    // It is held beyond its first lease.
    sleep(length * 5 / 4).await;
    let stopped = unix();
    stage.servers.servers[0].stop();
    let ran = running.output().await;
    let last = stage.last_time();
    stage.servers.servers[0].cont();

    assert_eq!((ran.code, our_line(&ran)), (80, LOST), "{ran:?}");
    assert_eq!(stage.written("told").lines().count(), 1);
    assert!(
        last > stopped + length / 4,
        "not at the first renewal that failed"
    );
    assert!(last < stopped + length * 99 / 100, "{:?}", last - stopped);
    let grandchild = stage.line_of("grandchild").await;
    assert!(!runs(&grandchild), "all of the group");
}

#[tokio::test]
async fn a_command_runs_to_its_end_where_removal_is_leased() {
    // A view is believed for 5 s, and for 2 s.
    let leases = [30 * SECOND, 12 * SECOND];
    for max_lease in leases {
        let stage = Stage::leased(3, max_lease).await;
        for ttl in [max_lease, 3 * SECOND] {
            let ttl = format!("{}ms", ttl.as_millis());
            let ran = stage.run("key", &["--ttl", &ttl], &["sh", "-c", "sleep 4; exit 4"]);
            assert_eq!((ran.code, &*ran.stderr), (4, ""), "{max_lease:?}: {ran:?}");
        }
    }
}

/// A member that is killed, and one that is silent: the view of the topology is confirmed without it, and new processes
/// are not refused.
#[tokio::test]
async fn a_member_that_is_lost_ends_no_command_on_others_where_removal_is_leased() {
    // A view is believed for 1 s.
    let mut stage = Stage::leased(3, 6 * SECOND).await;
    let (key, other) = (stage.key_on(0).await, stage.key_on(1).await);
    let script = "echo > begun; until [ -e over ]; do sleep 0.1; done; exit 4";
    let running = stage.start(&key, &[], &["sh", "-c", script]);
    stage.line_of("begun").await;
    for is_killed in [false, true] {
        match is_killed {
            false => stage.servers.servers[2].stop(),
            true => stage.servers.servers[2].kill(),
        }
        sleep(2 * SECOND).await;
        let ran = stage.run(&other, &["--wait", "120s"], &["true"]);
        assert_eq!(ran.code, 0, "killed: {is_killed}: {ran:?}");
    }
    std::fs::write(stage.path("over"), "").unwrap();
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stderr), (4, ""), "{ran:?}");
}

#[tokio::test]
async fn a_command_is_told_in_time_to_end_by_itself() {
    // A tenth of it is for a busy machine.
    const LEASE: Duration = Duration::from_secs(15);
    let stage = Stage::set(1, LEASE).await;
    let running = stage.start("key", &[], &["sh", "-c", OBEDIENT]);
    stage.line_of("times").await;
    let stopped = unix();
    stage.servers.servers[0].stop();
    let ran = running.output().await;
    assert_eq!(
        (ran.code, our_line(&ran)),
        (80, LOST),
        "its own code would be a lie"
    );
    assert!(
        stage.last_time() < stopped + LEASE * 8 / 10,
        "a third is left"
    );
    stage.servers.servers[0].cont();
}

#[tokio::test]
async fn a_renewal_that_fails_is_no_loss() {
    let stage = Stage::set(1, 3 * LEASE).await;
    let script = "echo up > up; until [ -e over ]; do sleep 0.1; done; exit 4";
    let running = stage.start("key", &[], &["sh", "-c", script]);
    stage.line_of("up").await;
    // No renewal gets an answer for a third of a lease.
    sleep(LEASE / 2).await;
    stage.servers.servers[0].stop();
    sleep(LEASE).await;
    stage.servers.servers[0].cont();
    std::fs::write(stage.path("over"), "").unwrap();
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stderr), (4, ""), "{ran:?}");
    assert!(stage.is_free("key"));
}

/// Nobody is there to see that the lease ends, but the guardian.
#[tokio::test]
async fn a_command_is_dead_before_the_lease_ends_though_ringfence_is_stopped() {
    let stage = Stage::set(1, LEASE).await;
    let running = stage.start("key", &[], &["sh", "-c", CLOCK]);
    stage.line_of("grandchild").await;
    sleep(LEASE * 5 / 4).await;
    running.signal(Signal::SIGSTOP);
    let stopped = unix();
    let grandchild = stage.line_of("grandchild").await;
    eventually("the group is gone", || async { !runs(&grandchild) }).await;
    let last = stage.last_time();
    assert!(
        last > stopped && last < stopped + LEASE * 99 / 100,
        "{:?}",
        last - stopped
    );

    running.signal(Signal::SIGCONT);
    let ran = running.output().await;
    assert_eq!((ran.code, our_line(&ran)), (80, LOST), "{ran:?}");
}

#[tokio::test]
async fn a_command_stopped_for_a_short_while_keeps_the_lock() {
    let stage = Stage::set(1, 3 * LEASE).await;
    let script = "echo up > up; until [ -e over ]; do sleep 0.1; done; exit 4";
    let running = stage.start("key", &[], &["sh", "-c", script]);
    stage.line_of("up").await;
    running.signal(Signal::SIGSTOP);
    sleep(LEASE / 2).await;
    running.signal(Signal::SIGCONT);
    std::fs::write(stage.path("over"), "").unwrap();
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stderr), (4, ""), "{ran:?}");
}

#[tokio::test]
async fn a_lock_taken_by_force_ends_the_command_at_once() {
    let lease = Duration::from_secs(30);
    let stage = Stage::set(1, lease).await;
    // Renewed, and so found to be lost, every five seconds; it would end fifteen after that.
    let running = stage.start("key", &["--ttl", "15s"], &["sh", "-c", CLOCK]);
    stage.line_of("grandchild").await;
    let client = stage.servers.client().await;
    let taken = client.lock("key").force_release("the test").await.unwrap();
    assert_eq!(taken.len(), 1);
    let guard = client.lock("key").try_acquire().await.unwrap();
    let ran = running.output().await;
    assert_eq!((ran.code, our_line(&ran)), (80, LOST), "{ran:?}");
    let told = Duration::from_nanos(stage.written("told").trim().parse().unwrap());
    assert!(stage.last_time() < told + Duration::from_secs(4));
    assert!(guard.is_held(), "the next holder's lock is not given back");
    guard.release().await;
    client.close().await;
}

/// As the kernel may do where memory is short.
#[tokio::test]
async fn a_command_whose_guardian_is_gone_is_dead_before_the_lease_ends() {
    let stage = Stage::set(1, LEASE).await;
    let script = format!("kill -9 $(cut -d' ' -f5 /proc/$$/stat); {CLOCK}");
    let running = stage.start("key", &[], &["sh", "-c", &script]);
    stage.line_of("times").await;
    sleep(LEASE).await;
    let stopped = unix();
    stage.servers.servers[0].stop();
    let ran = running.output().await;
    assert_eq!((ran.code, our_line(&ran)), (80, LOST), "{ran:?}");
    let last = stage.last_time();
    assert!(last < stopped + LEASE * 99 / 100, "{:?}", last - stopped);
    stage.servers.servers[0].cont();
}

/// Its leader is the guardian, and it is stopped with the rest.
#[tokio::test]
async fn a_group_that_is_stopped_is_told_to_end_too() {
    let stage = Stage::set(1, LEASE).await;
    let script = "trap 'touch told; exit' TERM; kill -STOP 0; touch went-on";
    let running = stage.start("key", &[], &["sh", "-c", script]);
    sleep(LEASE / 2).await;
    stage.servers.servers[0].stop();
    let ran = running.output().await;
    assert_eq!((ran.code, our_line(&ran)), (80, LOST), "{ran:?}");
    assert!(stage.path("told").exists() && !stage.path("went-on").exists());
    stage.servers.servers[0].cont();
}
