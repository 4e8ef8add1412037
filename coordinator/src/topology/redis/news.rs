//! What a home says by itself: each version of its record, as it is put in force.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::sync::Mutex;

use super::member::Member;
use crate::{
    shard::{ShardError, redis::Subscription},
    topology::Version,
};

/// The word in the connection's name.
const LANE: &str = "watch";

/// One connection on which the home is listened to, however many wait for it.
#[derive(Debug, Default)]
pub(super) struct News {
    feed: Mutex<Option<Feed>>,
    /// How many reasons to look there were. Written by whoever has the feed.
    reasons: AtomicU64,
}

#[derive(Debug)]
struct Feed {
    home: Arc<Member>,
    versions: Subscription<Version>,
}

impl News {
    /// How many reasons to look there were until now: to be asked before a look, and given to
    /// [`since`](Self::since) behind it.
    pub(super) fn reasons(&self) -> u64 {
        self.reasons.load(Relaxed)
    }

    /// Waits for a reason to look at `home` beyond the first `reasons`: it says that a record is in force, or
    /// nobody listened until now.
    ///
    /// It may wait for ever: messages are lost, and there are homes that nothing can be heard from. So
    /// whoever waits looks again after some time all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the connection to whoever waits next.
    pub(super) async fn since(&self, reasons: u64, home: &Arc<Member>) {
        // Whoever has the feed hears what the others wait for too.
        let mut feed = self.feed.lock().await;
        if self.reasons() != reasons {
            return;
        }
        if let Err(error) = listen(&mut feed, home).await {
            tracing::debug!(%error, "the topology's home is not heard; it is looked at");
            *feed = None;
            drop(feed);
            pending::<()>().await;
        }
        self.reasons.fetch_add(1, Relaxed);
    }
}

async fn listen(feed: &mut Option<Feed>, home: &Arc<Member>) -> Result<(), ShardError> {
    match feed {
        Some(feed) if Arc::ptr_eq(&feed.home, home) => feed.versions.next().await.map(drop),
        _ => {
            // What was put in force before this is not heard: the caller looks.
            let versions = subscribe(home).await?;
            let home = home.clone();
            *feed = Some(Feed { home, versions });
            Ok(())
        }
    }
}

/// Hears what the home's scripts publish, on a channel called like the record's key.
async fn subscribe(home: &Member) -> Result<Subscription<Version>, ShardError> {
    let options = home.options();
    let channel = format!("{}:topology", options.prefix);
    Subscription::open(options, LANE, &channel, parse).await
}

/// Reads a message: `n version`.
fn parse(text: &[u8]) -> Option<Version> {
    let (n, version) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    Some((n.parse().ok()?, version.parse().ok()?))
}
