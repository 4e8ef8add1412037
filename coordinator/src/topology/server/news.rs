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
use crate::shard::{ShardError, member::Announcements};

/// One connection on which the home is heard, for any number of waiters.
#[derive(Debug, Default)]
pub(super) struct News {
    feed: Mutex<Option<Feed>>,
    /// The number of reasons to look so far. Written by the task that has the feed.
    reasons: AtomicU64,
}

#[derive(Debug)]
struct Feed {
    home: Arc<Member>,
    versions: Announcements,
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
    pub(super) async fn since(&self, reasons: u64, home: &Arc<Member>) {
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

async fn listen(feed: &mut Option<Feed>, home: &Arc<Member>) -> Result<(), ShardError> {
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
