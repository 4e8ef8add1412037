//! A process that is stopped (SIGSTOP) while a coordinator answers it.

use std::{fs, time::Duration};

use nix::sys::signal::Signal;
use ringfence_client::ReleaseAnswer;
use ringfence_test_support::eventually;
use tokio::time::{sleep, timeout};

use super::{LEASE, lock_command};
use crate::{
    lock::Running,
    serve::{Coordinator, founded},
};

/// Whether bytes from the server at `port` wait for a process to read them.
fn are_unread(port: u16) -> bool {
    let from = format!(":{port:04X}");
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut sockets = sockets.lines().skip(1).map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        (fields.next().unwrap(), fields.nth(1).unwrap())
    });
    sockets.any(|(peer, queues)| peer.ends_with(&from) && !queues.ends_with(":00000000"))
}

/// It wakes up with the grant in its socket, and another process has the lock. The coordinator, stopped meanwhile, does not
/// tell it that.
#[tokio::test]
async fn a_grant_that_came_while_a_process_was_stopped_counts_from_its_own_ask() {
    let servers = founded().await;
    let coordinator = Coordinator::start(&servers, "");
    let port = coordinator.url.rsplit(':').next().unwrap().parse().unwrap();
    let other = servers.client().await;
    let lock = other.lock("key").lease(LEASE);
    let held = lock.acquire().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let ran = directory.path().join("ran");
    let script = format!("echo $RINGFENCE_TOKEN > {}", ran.display());
    let command = lock_command(&[&coordinator], "key", &["--", "sh", "-c", &script]);
    let waiter = Running::start(command);
    let waits = async || lock.inspect().await.unwrap().waiters.len() == 1;
    eventually("it waits", &waits).await;
    waiter.signal(Signal::SIGSTOP);
    eventually("it is stopped", async || waiter.state() == Some('T')).await;
    assert_eq!(held.release().await, ReleaseAnswer::Held);
    eventually("a grant waits in its socket", async || are_unread(port)).await;
    coordinator.signal(Signal::SIGSTOP);
    let next = timeout(Duration::from_secs(120), lock.acquire())
        .await
        .unwrap()
        .unwrap();
    waiter.signal(Signal::SIGCONT);
    eventually("it reads the grant", async || !are_unread(port)).await;
    sleep(Duration::from_millis(200)).await;
    let ended = waiter.state().is_none_or(|state| state == 'Z');
    assert!(!ended && !ran.exists() && next.is_held());
    coordinator.signal(Signal::SIGCONT);
    eventually("it waits again", waits).await;
    let token = next.token().get();
    next.release().await;
    let output = waiter.output().await;
    assert_eq!(output.code, 0, "{output:?}");
    let its: u64 = fs::read_to_string(ran).unwrap().trim().parse().unwrap();
    assert!(its > token);
}
