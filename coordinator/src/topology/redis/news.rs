//! What a home says by itself: each version of its record, as it is put in force.

use std::{future::pending, sync::Arc};

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
pub(super) struct News(Mutex<Option<Feed>>);

#[derive(Debug)]
struct Feed {
    home: Arc<Member>,
    versions: Subscription<Version>,
}

impl News {
    /// Waits for a reason to look at `home`: it says that a record newer than `known` is in force, or
    /// nobody listened until now.
    ///
    /// It may wait for ever: messages are lost, and there are homes that nothing can be heard from. So
    /// whoever waits looks again after some time all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the connection to whoever waits next.
    pub(super) async fn of(&self, home: &Arc<Member>, known: Version) {
        let Ok(mut feed) = self.0.try_lock() else {
            // Whoever listens has heard what others wait for too.
            drop(self.0.lock().await);
            return;
        };
        if let Err(error) = listen(&mut feed, home, known).await {
            tracing::debug!(%error, "the topology's home is not heard; it is looked at");
            *feed = None;
            drop(feed);
            pending::<()>().await;
        }
    }
}

async fn listen(
    feed: &mut Option<Feed>,
    home: &Arc<Member>,
    known: Version,
) -> Result<(), ShardError> {
    match feed {
        Some(feed) if Arc::ptr_eq(&feed.home, home) => {
            while feed.versions.next().await? <= known {}
        }
        _ => {
            // What was put in force before this is not heard: the caller looks.
            *feed = Some(Feed {
                home: home.clone(),
                versions: subscribe(home).await?,
            });
        }
    }
    Ok(())
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
