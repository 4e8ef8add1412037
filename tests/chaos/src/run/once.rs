//! Processes that ask once, and are gone: what dead holders had must come free for them too.

use std::{collections::BTreeSet, io, time::Duration};

use tokio::time::{Instant, sleep};

use super::onlooker;
use crate::{
    checker::{LIVENESS_WITHIN, Rule, Violation},
    election, ledger, shares,
};

/// Between two tries for all that is left.
const AGAIN: Duration = Duration::from_millis(200);

/// Tries to get each of `keys`, each time as a client of its own, once all holders are dead: nobody waits, and nobody renews
/// anything at the servers at `urls`.
///
/// # Errors
///
/// A client cannot join.
pub(super) async fn free_for_one_shots(
    urls: &[String],
    keys: &[String],
) -> io::Result<Vec<Violation>> {
    let until = Instant::now() + LIVENESS_WITHIN;
    // A share of one has terms of its own.
    let keys = keys
        .iter()
        .filter(|key| !shares::has(key) && !election::has(key));
    let mut left: BTreeSet<_> = keys.collect();
    while !left.is_empty() && Instant::now() < until {
        for key in left.clone() {
            let client = onlooker(urls).await?;
            let lock = client.lock(key);
            let lock = lock.namespace(ledger::namespace_of(key).as_str());
            if let Ok(guard) = lock.try_acquire().await {
                guard.release().await;
                left.remove(key);
            }
            client.close().await;
        }
        sleep(AGAIN).await;
    }
    let violation = |key: &String| {
        let what = format!("all holders are dead, and no try got it within {LIVENESS_WITHIN:?}");
        Violation::new(Rule::Liveness, key, what, [])
    };
    Ok(left.into_iter().map(violation).collect())
}
