//! Processes that ask once, and are gone: what dead holders had must come free for them too.

use std::{collections::BTreeMap, io, time::Duration};

use tokio::time::{Instant, sleep};

use super::onlooker;
use crate::{
    checker::{LIVENESS_WITHIN, Rule, Violation},
    election, ledger, shares,
};

/// Between two tries for all that is left.
const AGAIN: Duration = Duration::from_millis(200);

/// At etcd and ZooKeeper time passes only while a process stays, and a try stays for 2 s at most: so many see the end of a
/// lease, of the turns of dead waiters behind it, and of their tickets.
const TRIES: usize = 8;

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
    // On a busy machine a pass over the keys takes long: one that begins late, after enough others, decides.
    let until = Instant::now() + LIVENESS_WITHIN;
    // A share of one has terms of its own.
    let keys = keys
        .iter()
        .filter(|key| !shares::has(key) && !election::has(key));
    let mut left: BTreeMap<&String, String> = keys.map(|key| (key, String::new())).collect();
    for tries in 1.. {
        let is_last = tries >= TRIES && Instant::now() >= until;
        let mut refused = BTreeMap::new();
        for key in left.into_keys() {
            let client = onlooker(urls).await?;
            let lock = client.lock(key);
            let lock = lock.namespace(ledger::namespace_of(key).as_str());
            match lock.try_acquire().await {
                Ok(guard) => {
                    guard.release().await;
                }
                Err(error) => {
                    refused.insert(key, error.to_string());
                }
            }
            client.close().await;
        }
        left = refused;
        if left.is_empty() || is_last {
            break;
        }
        sleep(AGAIN).await;
    }
    let violation = |(key, error): (&String, String)| {
        let what = format!(
            "all holders are dead for {LIVENESS_WITHIN:?}, and after {TRIES} tries one is refused: {error}"
        );
        Violation::new(Rule::Liveness, key, what, [])
    };
    Ok(left.into_iter().map(violation).collect())
}
