//! A lock that notifies waiters: try, subscribe to the key's channel, try again, wait for a
//! message, try again. Redisson's RLock works like this, and others. The first one to try after a
//! release gets it.

use futures_util::StreamExt as _;
use redis::aio::{MultiplexedConnection, PubSub};
use ringfence_chaos::history::{Answer, Deed, History, Kind, Phase, Recorder, Token};

use super::stage::{KEY, LEASE, Stage};

const CHANNEL: &str = "released";

/// Deletes the key if it is still the caller's, and tells everybody.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                       redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], '') end";

/// One client holds the key, another waits; the first gives it back, and a third asks before the second
/// has got round to its message.
pub(crate) async fn newcomer_behind_a_waiter() -> History {
    let stage = Stage::set().await;
    let mut first = Contender::new(&stage, 1).await;
    let mut second = Contender::new(&stage, 2).await;
    let mut third = Contender::new(&stage, 3).await;
    assert!(first.tries(1).await);
    let mut messages = second.subscribes().await;
    assert!(!second.tries(0).await);
    second.waits();
    first.release().await;
    assert!(third.tries(2).await);
    third.release().await;
    messages.on_message().next().await.unwrap();
    assert!(second.tries(3).await);
    stage.history()
}

/// A client. The lock has no tokens: a number stands in for one, and rises.
struct Contender {
    client: redis::Client,
    connection: MultiplexedConnection,
    recorder: Recorder,
    nonce: String,
    /// When its last try left.
    sent_ns: u64,
    token: Option<Token>,
}

impl Contender {
    async fn new(stage: &Stage, number: u32) -> Self {
        let client = redis::Client::open(stage.members[0].url()).unwrap();
        Self {
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            client,
            recorder: stage.recorder(),
            nonce: format!("nonce {number}"),
            sent_ns: 0,
            token: None,
        }
    }

    /// Asks once. Whether it has the lock, with `token`.
    async fn tries(&mut self, token: u64) -> bool {
        self.sent_ns = self.recorder.now();
        self.record(self.sent_ns, Kind::Ask, Phase::Ok);
        let mut set = redis::cmd("SET");
        set.arg(KEY).arg(&self.nonce).arg("NX");
        set.arg("PX").arg(LEASE.as_millis() as u64);
        let answer: Option<String> = set.query_async(&mut self.connection).await.unwrap();
        if answer.is_some() {
            self.token = Some(Token { te: 1, ctr: token });
            self.record(self.recorder.now(), Kind::Grant, Phase::Ok);
            self.record(self.recorder.now(), Kind::Acquire, Phase::Ok);
        }
        answer.is_some()
    }

    async fn subscribes(&self) -> PubSub {
        let mut messages = self.client.get_async_pubsub().await.unwrap();
        messages.subscribe(CHANNEL).await.unwrap();
        messages
    }

    /// Refused once more, and told of the next release: what there is of a place.
    fn waits(&self) {
        self.record(self.recorder.now(), Kind::Queue, Phase::Ok);
    }

    async fn release(&mut self) {
        let mut release = redis::cmd("EVAL");
        release.arg(RELEASE).arg(1).arg(KEY);
        release.arg(&self.nonce).arg(CHANNEL);
        self.record(self.recorder.now(), Kind::Release, Phase::Invoke);
        let () = release.query_async(&mut self.connection).await.unwrap();
    }

    fn record(&self, t_ns: u64, kind: Kind, phase: Phase) {
        let deed = Deed {
            key: Some(KEY.into()),
            nonce: Some(self.nonce.clone()),
            token: self.token,
            lease_ms: Some(LEASE.as_millis() as u64),
            sent_ns: Some(self.sent_ns),
            answer: (kind == Kind::Queue).then_some(Answer::Held),
            ..Deed::ended(self.recorder.next_op(), kind, phase)
        };
        self.recorder.record_at(t_ns, deed);
    }
}
