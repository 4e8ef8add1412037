//! The held locks: every shard is walked to its end, regardless of the other shards and walks.

use std::{collections::BTreeSet, time::Duration};

use ringfence_client::{Client, Guard, Locks, LocksPage, ShardId, limits::LIST_PAGE};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use tokio::time::sleep;

use super::{client_of, held};

/// A few pages on each of two shards.
const MANY: usize = 5 * LIST_PAGE;

async fn hold_many(client: &Client) -> Vec<Guard> {
    let mut guards = Vec::new();
    for index in 0..MANY {
        guards.push(held(client, &format!("key/{index}")).await);
    }
    guards
}

/// The shards that could not be walked to their end, and the keys that were found.
async fn walked(locks: &mut Locks) -> (Vec<ShardId>, BTreeSet<String>) {
    let (mut failed, mut found) = (Vec::new(), BTreeSet::new());
    while let Some(page) = locks.next().await {
        take(page, &mut failed, &mut found);
    }
    (failed, found)
}

fn take(page: LocksPage, failed: &mut Vec<ShardId>, found: &mut BTreeSet<String>) {
    match page.locks {
        Ok(locks) => found.extend(locks.iter().map(|lock| lock.key.to_string())),
        Err(_) => failed.push(page.shard),
    }
}

#[tokio::test(start_paused = true)]
async fn every_lock_is_listed_page_by_page() {
    let client = client_of(2).await;
    let guards = hold_many(&client).await;
    let (mut locks, mut pages) = (client.locks(None).unwrap(), 0);
    while let Some(page) = locks.next().await {
        assert!(page.locks.unwrap().len() <= LIST_PAGE);
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    let (failed, found) = walked(&mut client.locks(None).unwrap()).await;
    assert_eq!((failed.len(), found.len()), (0, MANY));
    let (_, found) = walked(&mut client.locks(Some("other")).unwrap()).await;
    assert!(found.is_empty(), "{found:?}");
    assert!(client.locks(Some("No")).is_err());
    drop(guards);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_ends_midway_is_told_once_and_the_others_are_listed() {
    let client = client_of(3).await;
    let guards = hold_many(&client).await;
    let mut locks = client.locks(None).unwrap();
    let (mut failed, mut found) = (Vec::new(), BTreeSet::new());
    let first = locks.next().await.unwrap();
    let gone = first.shard.clone();
    take(first, &mut failed, &mut found);
    client.faults()[&gone].restart(false);
    while let Some(page) = locks.next().await {
        take(page, &mut failed, &mut found);
    }
    assert_eq!(failed, std::slice::from_ref(&gone));
    for key in (0..MANY).map(|index| format!("key/{index}")) {
        let is_gone = client.shard_of(&Default::default(), &key).unwrap() == gone;
        assert!(is_gone || found.contains(&key), "{key}");
    }
    drop(guards);
}

#[tokio::test(start_paused = true)]
async fn a_page_dropped_after_any_turn_is_asked_for_again() {
    let client = client_of(2).await;
    let guards = hold_many(&client).await;
    for shard in client.faults().values() {
        shard.latency(Duration::from_millis(5)..Duration::from_millis(9));
    }
    let turn = async || sleep(Duration::from_millis(1)).await;
    after_every_turn("a page", async |turns| {
        let mut locks = client.locks(None).unwrap();
        let (mut failed, mut found) = (Vec::new(), BTreeSet::new());
        // The second one goes on where the first one ended.
        take(locks.next().await.unwrap(), &mut failed, &mut found);
        let page = dropped_after(turns, turn, locks.next()).await;
        let done = page.is_some();
        if let Some(page) = page.flatten() {
            take(page, &mut failed, &mut found);
        }
        let (more_failed, rest) = walked(&mut locks).await;
        found.extend(rest);
        assert_eq!((failed.len() + more_failed.len(), found.len()), (0, MANY));
        done
    })
    .await;
    drop(guards);
}
