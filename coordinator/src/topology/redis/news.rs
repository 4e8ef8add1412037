//! Announcements of a home: each version of its record, as it comes into force.

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
    shard::{
        ShardError,
        docs::Inbox,
        redis::{Channel, RedisOptions},
    },
    topology::Version,
};

/// The word in the connection's name.
const LANE: &str = "watch";

/// One connection on which the home is heard, for any number of waiters.
#[derive(Debug, Default)]
pub(super) struct News {
    feed: Mutex<Option<Feed>>,
    /// The number of reasons to look so far. Written by the task that has the feed.
    reasons: AtomicU64,
}

#[derive(Debug)]
struct Feed {
    home: Arc<dyn Member>,
    versions: Announcements,
}

/// A connection on which a home announces versions: `n version` each.
#[derive(Debug)]
pub(super) enum Announcements {
    Redis(Box<Channel<Version>>),
    Docs(Box<dyn Inbox>),
}

impl Announcements {
    async fn next(&mut self) -> Result<(), ShardError> {
        match self {
            Self::Redis(versions) => versions.next().await.map(drop),
            Self::Docs(messages) => messages.next().await.map(drop),
        }
    }
}

impl News {
    /// The number of reasons to look until now: read it before a look, and pass it to
    /// [`since`](Self::since) after the look.
    pub(super) fn reasons(&self) -> u64 {
        self.reasons.load(Relaxed)
    }

    /// Waits for a reason to look at `home` beyond the first `reasons`: the home announces a record
    /// in force, or there was no listener until now.
    ///
    /// It may wait for ever: messages get lost, and some homes cannot be heard. So a caller must
    /// also look again after some time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the connection to the next waiter.
    pub(super) async fn since(&self, reasons: u64, home: &Arc<dyn Member>) {
        // The task that has the feed receives the messages for all waiters.
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

async fn listen(feed: &mut Option<Feed>, home: &Arc<dyn Member>) -> Result<(), ShardError> {
    match feed {
        Some(feed) if Arc::ptr_eq(&feed.home, home) => feed.versions.next().await,
        _ => {
            // A record put in force before this is not announced: the caller looks.
            let versions = home.announcements().await?;
            let home = home.clone();
            *feed = Some(Feed { home, versions });
            Ok(())
        }
    }
}

/// Receives messages that the scripts of a home on Redis publish, on a channel with the name of the
/// record's key.
pub(super) async fn of(options: &RedisOptions) -> Result<Channel<Version>, ShardError> {
    let channel = format!("{}:topology", options.prefix);
    Channel::open(options, LANE, &channel, parse).await
}

/// Reads a message: `n version`.
fn parse(text: &[u8]) -> Option<Version> {
    let (n, version) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    Some((n.parse().ok()?, version.parse().ok()?))
}
