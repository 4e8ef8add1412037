//! Holders and newcomers at a shard that comes back in any way, with any of its data.

use std::{collections::BTreeMap, time::Duration};

use ringfence_client::{AcquireError, Builder, Client, Guard, ReleaseAnswer, Token};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::eventually;
use tokio::time::{Instant, sleep};

/// How long a shard that came back grants nothing new: a restart fits in well before a lock of this
/// length is lost, on a busy machine too.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(4);

/// A shard that can come back.
pub(crate) trait Returning {
    /// The address that clients know.
    fn url(&self) -> String;

    /// Has it forget, when it comes back, all that it is told from now on.
    async fn forget_from_now(&mut self);

    /// Ends its life and begins another.
    async fn come_back(&mut self);

    /// The longest lease at it, in which it must have come back.
    fn max_lease(&self) -> Duration {
        MAX_LEASE
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

/// Asks for `key` without a pause until it is granted. How often the answer was grace.
pub(crate) async fn ask_until_granted(client: &Client, key: &str) -> (Guard, usize) {
    let mut graces = 0;
    let (mut granted, patience) = (None, Instant::now() + 10 * MAX_LEASE);
    while granted.is_none() {
        assert!(Instant::now() < patience, "{key} is not granted");
        match client.lock(key).try_acquire().await {
            Ok(guard) => granted = Some(guard),
            Err(error) => {
                graces += usize::from(is_grace(&error));
                assert!(error.is_retryable(), "{error:?}");
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
    (granted.unwrap(), graces)
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

    /// The shard has a record of each again, with its own token.
    async fn are_put_back(&self, observer: &Client) {
        for (key, guard) in &self.0 {
            eventually(&format!("{key} is put back"), async || {
                recorded(observer, key).await == Some(guard.token())
            })
            .await;
        }
    }
}

/// No held lock is lost. No new lock is granted until every earlier lock must have ended. Tokens
/// rise. A released lock is free, even if the shard still remembers it.
pub(crate) async fn holders_keep_their_locks_and_newcomers_wait(shard: &mut impl Returning) {
    let max_lease = shard.max_lease();
    let mut stage = Stage::of(shard.url(), max_lease).await;
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

    let ended = Instant::now();
    shard.come_back().await;
    let newcomer = stage.client("newcomer").await;
    let in_grace = async {
        eventually("it says that it came back", async || {
            held.is_refused_to(&newcomer).await;
            let new = newcomer.lock("new").try_acquire().await;
            matches!(new, Err(refused) if is_grace(&refused))
        })
        .await;
        held.are_put_back(&newcomer).await;
    };
    let ((free, graces), ()) = tokio::join!(ask_until_granted(&newcomer, "given back"), in_grace);
    assert!(graces > 0, "nobody asked in grace");
    assert!(ended.elapsed() >= max_lease, "granted in grace");
    assert!(free.token() > greatest, "tokens rise");

    // Grace is over, and so is every lease that was not renewed since.
    held.is_refused_to(&newcomer).await;
    sleep(max_lease).await;
    held.is_refused_to(&newcomer).await;
    for (key, guard) in held.0 {
        let token = guard.token();
        assert_eq!(guard.release().await, ReleaseAnswer::Held, "{key}");
        assert!(take(&newcomer, key).await.token() > token, "{key}");
    }
}
