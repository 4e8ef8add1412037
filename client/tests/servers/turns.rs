//! The meaning of a turn, and its duration, however late it is, and after any other request or
//! answer.

use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value, aio::MultiplexedConnection};
use ringfence_client::{
    BootClock, Client, Clock, Guard, Nonce, ReleaseAnswer,
    limits::{CLAIM_MAX, TICKET_KEEP},
};
use ringfence_test_support::{Flow, Proxy, Servers, Whose, eventually};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    DEADLINE, SECOND,
    queue::{KEY, Waiter, queue, recorded},
    scene::Proxied,
};

/// Ten claims.
const LEASE: Duration = Duration::from_secs(30);

/// A held lock, and the next in its queue, which reaches the server through a proxy.
struct Stage {
    scene: Proxied,
    next: Client,
    waiter: Waiter,
    nonce: Nonce,
}

impl Stage {
    async fn set(lease: Duration) -> (Self, Guard) {
        let scene = Proxied::new(lease).await;
        let guard = scene.client.lock(KEY).acquire().await.unwrap();
        let next = scene.rival().await;
        let (waiter, nonce) = Waiter::queued(&next, lease).await;
        let stage = Self {
            scene,
            next,
            waiter,
            nonce,
        };
        (stage, guard)
    }

    fn proxy(&self) -> &Proxy {
        &self.scene.proxy
    }

    /// The next one's connections of a kind.
    fn its(&self, lane: &str) -> Whose {
        Whose::Named(format!("rf:{}:{lane}", self.nonce.client))
    }

    /// When it last asked, as the server has it.
    async fn sent(&self) -> String {
        let [tickets]: [String; 1] = self.ask(&["KEYS", "ringfence:tickets:*"]).await;
        let ticket: String = self.ask(&["HGET", &tickets, &self.nonce.to_string()]).await;
        ticket.split('|').nth(1).unwrap().to_owned()
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.scene.servers.ask(0, words).await
    }
}

/// Counted from the request that it answers: not from when it came, nor from a later one; and no full lease.
#[tokio::test]
async fn a_turn_is_believed_for_its_claim_from_when_it_was_asked_for() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    stage.proxy().requests(&stage.its("work"), Flow::Hold);
    stage.proxy().requests(&stage.its("renew"), Flow::Hold);
    let asked = BootClock.now();
    let read = async || stage.proxy().counts(&stage.its("work")).requests_read;
    let before = read().await;
    eventually("it asks once more, and is not heard", async || {
        read().await > before
    })
    .await;
    guard.release().await;
    let turn = stage.waiter.turn().await;
    assert!(turn.deadline() < asked + CLAIM_MAX, "{turn:?}");
    let (nonce, left) = recorded(&stage.scene.client).await.unwrap();
    assert_eq!(nonce, stage.nonce);
    assert!(left > turn.remaining(), "it ends at the shard no earlier");
}

/// Its grant has ended at the shard, and somebody else has it.
#[tokio::test]
async fn a_turn_that_comes_after_its_claim_is_no_grant() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    let third = stage.scene.rival().await;
    let (mut behind, _) = Waiter::queued(&third, LEASE).await;
    stage.proxy().requests(&stage.its("work"), Flow::Hold);
    stage.proxy().replies(&stage.its("notify"), Flow::Hold);
    guard.release().await;
    let held = behind.turn().await;
    stage.proxy().heal();
    assert!(stage.waiter.waits_for(SECOND / 2).await);
    assert!(held.is_held());
    assert_eq!(held.release().await, ReleaseAnswer::Held);
    drop(stage.waiter.turn().await);
}

#[tokio::test]
async fn a_turn_that_was_missed_is_found_by_asking_and_is_a_full_lease_then() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    stage.proxy().replies(&stage.its("notify"), Flow::Hold);
    let token = guard.token();
    guard.release().await;
    let turn = stage.waiter.turn().await;
    assert!(turn.token() > token);
    assert!(turn.remaining() > LEASE - CLAIM_MAX);
    let (nonce, left) = recorded(&stage.next).await.unwrap();
    assert_eq!(nonce, stage.nonce);
    assert!(left > turn.remaining(), "at the shard too: {left:?}");
}

/// What the server tells one client, as it is.
struct Overheard {
    channel: String,
    messages: mpsc::UnboundedReceiver<PushInfo>,
    /// Ends with its last handle.
    _connection: MultiplexedConnection,
}

impl Overheard {
    async fn listen(scene: &Proxied, nonce: Nonce) -> Self {
        let url = format!("{}/?protocol=resp3", scene.servers.servers[0].url());
        let (heard, messages) = mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(heard);
        let client = redis::Client::open(url).unwrap();
        let connected = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connected.await.unwrap();
        let channel = format!("ringfence:turn:{}", nonce.client);
        connection.subscribe(&channel).await.unwrap();
        Self {
            channel,
            messages,
            _connection: connection,
        }
    }

    async fn next(&mut self) -> String {
        loop {
            let push = timeout(DEADLINE, self.messages.recv())
                .await
                .unwrap()
                .unwrap();
            if let (PushKind::Message, [_, Value::BulkString(text)]) = (&push.kind, &push.data[..])
            {
                return String::from_utf8(text.clone()).unwrap();
            }
        }
    }
}

/// A message that comes twice, when its process waits for the same lock again.
#[tokio::test]
async fn a_turn_is_for_the_acquisition_it_names_and_no_other_of_its_process() {
    let (stage, guard) = Stage::set(LEASE).await;
    let Stage {
        scene,
        next,
        mut waiter,
        nonce,
    } = stage;
    let mut overheard = Overheard::listen(&scene, nonce).await;
    guard.release().await;
    drop(waiter.turn().await);
    let turn = overheard.next().await;
    assert!(turn.starts_with(&format!("turn|{nonce}|")), "{turn}");

    let guard = scene.client.lock(KEY).acquire().await.unwrap();
    let (mut again, anew) = Waiter::queued(&next, LEASE).await;
    let said: u64 = scene
        .servers
        .ask(0, &["PUBLISH", &overheard.channel, &turn])
        .await;
    assert_eq!(said, 2, "to it, and to us who overhear it");
    assert!(again.waits_for(SECOND / 2).await);
    assert!(guard.is_held());
    // Had it been for this one, it would have been believed.
    let its_own = turn.replace(&nonce.to_string(), &anew.to_string());
    scene
        .servers
        .ask::<u64>(0, &["PUBLISH", &overheard.channel, &its_own])
        .await;
    drop(again.turn().await);
}

#[tokio::test]
async fn a_refusal_that_comes_after_the_turn_ends_no_guard() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    let before = stage.sent().await;
    let replies = stage.proxy().counts(&stage.its("work")).replies;
    stage.proxy().replies(&stage.its("work"), Flow::Hold);
    eventually("it has asked again", async || stage.sent().await != before).await;
    guard.release().await;
    let turn = stage.waiter.turn().await;
    stage.proxy().heal();
    eventually("the refusal came", async || {
        stage.proxy().counts(&stage.its("work")).replies > replies
    })
    .await;
    sleep(SECOND / 10).await;
    assert!(turn.is_held() && turn.remaining() > LEASE - CLAIM_MAX);
    assert_eq!(turn.release().await, ReleaseAnswer::Held);
}

/// Counted from when that request left.
#[tokio::test]
async fn a_grant_that_comes_after_its_turn_extends_it() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    stage.proxy().requests(&stage.its("renew"), Flow::Hold);
    stage.proxy().replies(&stage.its("notify"), Flow::Hold);
    stage.proxy().replies(&stage.its("work"), Flow::Hold);
    guard.release().await;
    eventually("it has asked, and found it", async || {
        recorded(&stage.scene.client)
            .await
            .is_some_and(|(_, left)| left > CLAIM_MAX)
    })
    .await;
    let found = BootClock.now();
    stage.proxy().replies(&stage.its("notify"), Flow::Pass);
    let turn = stage.waiter.turn().await;
    assert!(turn.remaining() < CLAIM_MAX, "not renewed, nor answered");
    stage.proxy().replies(&stage.its("work"), Flow::Pass);
    eventually("extended", async || turn.remaining() > CLAIM_MAX).await;
    assert!(turn.deadline() < found + LEASE);
}

#[tokio::test]
async fn in_grace_nobody_has_its_turn_and_everybody_keeps_its_place() {
    let (mut stage, guard) = Stage::set(LEASE).await;
    let third = stage.scene.rival().await;
    let (mut behind, its) = Waiter::queued(&third, LEASE).await;
    stage.scene.begin_grace().await;
    guard.release().await;
    // Longer than the place of a silent waiter is kept.
    assert!(stage.waiter.waits_for(TICKET_KEEP + SECOND).await);
    assert_eq!(recorded(&third).await, None);
    assert_eq!(queue(&third).await, [stage.nonce, its]);
    stage.scene.end_grace().await;
    drop(stage.waiter.turn().await);
    drop(behind.turn().await);
}

/// As one that is stopped, or swapped out: it comes back past its deadline, before it has looked at the time.
#[tokio::test]
async fn a_process_that_was_paused_past_its_deadline_hands_nothing_on() {
    const LEASE: Duration = Duration::from_secs(3);
    let scene = Proxied::new(LEASE).await;
    let client = &scene.client;
    let first = client.lock(KEY).acquire().await.unwrap();
    let mut second = Waiter::start(client, LEASE);
    let mut third = Waiter::start(client, LEASE);
    assert!(second.waits_for(SECOND / 20).await);
    first.release().await;
    // This record has tokens for those behind it.
    let guard = second.turn().await;
    let (nonce, _) = recorded(client).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "the whole process is paused")]
    std::thread::sleep(guard.remaining() + SECOND / 2);
    drop(guard);
    let next = third.turn().await;
    assert!(next.is_held());
    assert_ne!(recorded(client).await.unwrap().0, nonce);
}

#[tokio::test]
async fn a_lock_that_lingers_goes_to_another_process_at_once() {
    let servers = Servers::spawn(1).await;
    // It would linger for longer than anything is waited for.
    let lingers = servers.builder().linger("default", 2 * DEADLINE);
    let (keeps, other) = (lingers.build().await.unwrap(), servers.client().await);
    let guard = keeps.lock(KEY).acquire().await.unwrap();
    let token = guard.token();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    assert!(recorded(&other).await.is_some());
    let mut waiter = Waiter::start(&other, LEASE);
    let guard = waiter.turn().await;
    assert!(guard.token() > token);
    assert!(queue(&other).await.is_empty());
}
