//! The lock that everybody writes first: SET key nonce NX PX lease, believed in for the lease.

use ringfence_chaos::history::{Deed, History, Kind, Phase, Recorder, Token};
use ringfence_client::{BootClock, Clock as _, Instant};

use super::stage::{KEY, LEASE, Stage};

/// The server forgets that one client holds the key; another asks for it.
pub(crate) async fn restarted_empty() -> History {
    let mut stage = Stage::set().await;
    acquire(&stage, 0, 1).await;
    stage.restart_empty().await;
    acquire(&stage, 0, 2).await;
    stage.history()
}

/// By a consistent hash of its own each client finds the server of the key. One client holds it, a server
/// comes, the key is the newcomer's; another client asks for it there.
pub(crate) async fn resized_while_held() -> History {
    let stage = Stage::of(2, LEASE).await;
    acquire(&stage, 0, 1).await;
    acquire(&stage, 1, 2).await;
    stage.history()
}

/// Takes the lock on a server.
async fn acquire(stage: &Stage, server: usize, number: u64) {
    let sent = BootClock.now();
    assert!(set(stage, server, number).await);
    record(stage, sent, number);
}

/// Whether a server grants the lock.
pub(super) async fn set(stage: &Stage, server: usize, number: u64) -> bool {
    let client = redis::Client::open(stage.members[server].url()).unwrap();
    let Ok(mut connection) = client.get_multiplexed_async_connection().await else {
        return false;
    };
    let mut set = redis::cmd("SET");
    set.arg(KEY)
        .arg(nonce(number))
        .arg("NX")
        .arg("PX")
        .arg(LEASE.as_millis() as u64);
    let answer: Option<String> = set.query_async(&mut connection).await.unwrap();
    answer.as_deref() == Some("OK")
}

/// Records that the lock was granted. It has no tokens: `number` stands in for one, and rises.
pub(super) fn record(stage: &Stage, sent: Instant, number: u64) {
    let recorder: Recorder = stage.recorder();
    recorder.record(Deed {
        key: Some(KEY.into()),
        nonce: Some(nonce(number)),
        token: Some(Token { te: 1, ctr: number }),
        lease_ms: Some(LEASE.as_millis() as u64),
        sent_ns: Some(sent.as_nanos()),
        ..Deed::ended(recorder.next_op(), Kind::Acquire, Phase::Ok)
    });
}

fn nonce(number: u64) -> String {
    format!("nonce {number}")
}
