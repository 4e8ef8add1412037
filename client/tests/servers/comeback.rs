//! Holders and newcomers at a shard that comes back in any way, with any of its data.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{AcquireError, Builder, Client, Guard, ReleaseAnswer, Token};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{end_recovery, eventually, pause};
use tokio::time::{Instant, timeout};

use super::DEADLINE;

/// How long a shard that came back grants nothing new, unless a test ends that.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(30);

/// For a resize, which waits for the end of a recovery period that no test can end.
pub(crate) const RECOVERY: Duration = Duration::from_secs(6);

/// A shard that can come back.
pub(crate) trait Returning {
    /// The address that clients know.
    fn url(&self) -> String;

    /// Has it forget, when it comes back, all that it is told from now on.
    async fn forget_from_now(&mut self);

    /// Ends its life and begins another.
    async fn come_back(&mut self);

    /// Where its Redis server is once it came back, if it is one: its recovery period can be ended.
    fn redis(&self) -> Option<String> {
        Some(self.url())
    }

    /// Whether the topology's record is on it too.
    fn has_the_record(&self) -> bool {
        false
    }
}

/// A server for the topology's record alone, which stays, and clients of the one shard beside it.
pub(crate) struct Stage {
    pub(crate) home: RedisServer,
    url: String,
    record_at: String,
    max_lease: Duration,
}

impl Stage {
    pub(crate) async fn of(url: String, max_lease: Duration) -> Self {
        let home = RedisServer::spawn().await.unwrap();
        Self {
            url,
            record_at: home.url(),
            home,
            max_lease,
        }
    }

    pub(crate) async fn client(&self, label: &str) -> Client {
        let builder: Builder = Client::builder()
            .servers([self.url.clone()])
            .topology_at(&self.record_at)
            .max_lease(self.max_lease)
            .servers_are_new(true)
            .label(label);
        builder.build().await.unwrap()
    }
}

/// Whether a shard answered that it came back and waits.
pub(crate) fn is_grace(error: &AcquireError) -> bool {
    match error {
        AcquireError::Grace { .. } => true,
        AcquireError::TimedOut { because, .. } => is_grace(because),
        _ => false,
    }
}

/// The token of `key`'s record, as its shard has it now.
pub(crate) async fn recorded(client: &Client, key: &str) -> Option<Token> {
    let found = client.lock(key).inspect().await.ok()?.holder;
    found.map(|found| found.token)
}

/// Asks for `key` until it is granted. `refused` sees each refusal.
async fn ask_until(
    client: &Client,
    key: &str,
    mut refused: impl AsyncFnMut(&AcquireError),
) -> Guard {
    let asks = async {
        loop {
            match client.lock(key).try_acquire().await {
                Ok(guard) => return guard,
                Err(error) => {
                    assert!(error.is_retryable(), "{error:?}");
                    refused(&error).await;
                    pause().await;
                }
            }
        }
    };
    let granted = timeout(DEADLINE, asks).await;
    granted.unwrap_or_else(|_| panic!("{key} is not granted"))
}

/// Asks for `key` until it is granted.
pub(crate) async fn ask_until_granted(client: &Client, key: &str) -> Guard {
    ask_until(client, key, async |_| {}).await
}

/// The same at a shard whose life goes on.
pub(crate) async fn granted_without_recovery(client: &Client, key: &str) -> Guard {
    ask_until(client, key, async |refused| {
        assert!(!is_grace(refused), "{refused:?}");
    })
    .await
}

/// Asks for `key` until its shard, which is the Redis server at `url`, says that it recovers; ends that, and asks on.
pub(crate) async fn granted_after_recovery(client: &Client, key: &str, url: &str) -> Guard {
    let mut recovers = false;
    let guard = ask_until(client, key, async |refused| {
        if is_grace(refused) && !std::mem::replace(&mut recovers, true) {
            end_recovery(url).await;
        }
    })
    .await;
    assert!(recovers, "{key} was granted without a recovery period");
    guard
}

/// Asks for `key` until its shard says that it recovers. When that ends.
async fn recovery_ends(client: &Client, key: &str) -> Instant {
    let says = async {
        loop {
            let refused = client.lock(key).try_acquire().await;
            let refused = refused.expect_err("it may be held");
            if is_grace(&refused) {
                return Instant::now() + refused.retry_after().unwrap();
            }
            pause().await;
        }
    };
    let says = timeout(DEADLINE, says).await;
    says.expect("it says that it came back")
}

/// Locks that are held while a shard ends and comes back.
struct Held(BTreeMap<&'static str, Guard>);

impl Held {
    /// Nobody but its holder can have any of them.
    async fn is_refused_to(&self, other: &Client) {
        for (key, guard) in &self.0 {
            assert!(guard.is_held(), "{key} is lost");
            match other.lock(key).try_acquire().await {
                Err(refused) => assert!(refused.is_retryable(), "{key}: {refused:?}"),
                Ok(second) => panic!("{key} has two holders: {guard:?} and {second:?}"),
            }
        }
    }

    /// The shard has a record of each again, with its own token, and has renewed it.
    async fn are_put_back(&self, observer: &Client, former: &[ringfence_client::Instant]) {
        for ((key, guard), former) in std::iter::zip(&self.0, former) {
            eventually(&format!("{key} is put back"), async || {
                let is_there = recorded(observer, key).await == Some(guard.token());
                is_there && guard.deadline() > *former
            })
            .await;
        }
    }
}

/// No held lock is lost. No new lock is granted until every earlier lock must have ended. Tokens
/// rise. A released lock is free, even if the shard still remembers it.
pub(crate) async fn holders_keep_their_locks_and_newcomers_wait(shard: &mut impl Returning) {
    let mut stage = Stage::of(shard.url(), MAX_LEASE).await;
    if shard.has_the_record() {
        stage.record_at = shard.url();
    }
    let (holder, other) = (stage.client("holder").await, stage.client("other").await);
    let take = async |client: &Client, key| client.lock(key).try_acquire().await.unwrap();

    // What it may remember: `given back` and `passed on` as they were, and `early`.
    let early = take(&holder, "early").await;
    let given_back = take(&holder, "given back").await;
    let passed_on = take(&holder, "passed on").await;
    shard.forget_from_now().await;
    assert_eq!(given_back.release().await, ReleaseAnswer::Held);
    assert_eq!(passed_on.release().await, ReleaseAnswer::Held);
    let passed_on = take(&other, "passed on").await;
    let late = take(&holder, "late").await;
    let greatest = late.token();
    let held = Held(BTreeMap::from([
        ("early", early),
        ("passed on", passed_on),
        ("late", late),
    ]));

    let (ended, former) = (Instant::now(), held.0.values().map(Guard::deadline));
    let former: Vec<_> = former.collect();
    shard.come_back().await;
    let newcomer = stage.client("newcomer").await;
    let ends = recovery_ends(&newcomer, "new").await;
    assert!(ends >= ended + MAX_LEASE, "it grants too early");
    held.is_refused_to(&newcomer).await;
    held.are_put_back(&newcomer, &former).await;
    let free = match shard.redis() {
        Some(url) => granted_after_recovery(&newcomer, "given back", &url).await,
        None => ask_until_granted(&newcomer, "given back").await,
    };
    assert!(shard.redis().is_some() || ended.elapsed() >= MAX_LEASE);
    assert!(free.token() > greatest, "tokens rise");

    held.is_refused_to(&newcomer).await;
    for (key, guard) in held.0 {
        let token = guard.token();
        assert_eq!(guard.release().await, ReleaseAnswer::Held, "{key}");
        assert!(take(&newcomer, key).await.token() > token, "{key}");
    }
}
