//! An account's manifest goes back in time, and its segments do not.

use futures_util::future::join_all;
use redis::Value;
use ringfence_client::{
    Client, Counter,
    counter::{Amount, CounterError, LostSegments, RequestId, Terms, segment::Refusal},
};
use ringfence_test_support::{Servers, eventually};

fn one() -> Amount {
    Amount::new(1).unwrap()
}

/// The index of the server with the account's manifest, and the name of the manifest there.
async fn manifest_of(servers: &Servers) -> (usize, String) {
    for (index, _) in servers.urls().iter().enumerate() {
        let manifests: Vec<String> = servers.ask(index, &["KEYS", "*coins:manifest"]).await;
        if let Some(manifest) = manifests.into_iter().next() {
            return (index, manifest);
        }
    }
    panic!("no server has a manifest");
}

/// The account `coins`: two segments, 100 inside, and a layout of four planned after `before`.
/// Answers with the ids of 24 deductions that were made by that layout.
async fn resegmented(client: &Client, before: impl AsyncFnOnce()) -> (Counter, Vec<RequestId>) {
    let counters = client.counters();
    let terms = Terms {
        skew_ms: 1,
        ..Terms::in_memory()
    };
    let coins = counters.create("coins", terms, 2).await.unwrap();
    let given = counters.request("given").unwrap();
    coins
        .deposit(&given, Amount::new(100).unwrap())
        .await
        .unwrap();
    before().await;
    coins.resegment(4).await.unwrap();
    let manifest = coins.at_shards().unwrap().read_manifest().await.unwrap();
    let from_ms = manifest.layouts().last().unwrap().from_ms;
    let begins = async || counters.new_request().time_ms() >= from_ms;
    eventually("the layout begins", begins).await;
    let mut ids = Vec::new();
    for name in 0..24 {
        let id = counters.request(&name.to_string()).unwrap();
        coins.deduct(&id, one()).await.unwrap();
        ids.push(id);
    }
    (coins, ids)
}

/// Sends every deduction again: each is known, or too old to be done.
async fn repeat(coins: &Counter, ids: &[RequestId]) -> usize {
    let mut known = 0;
    for id in ids {
        match coins.deduct(id, one()).await {
            Ok(_) => known += 1,
            Err(CounterError::Refused(Refusal::TooOld { .. })) => {}
            Err(error) => panic!("{id:?}: {error}"),
        }
    }
    known
}

#[tokio::test]
async fn an_account_whose_manifest_went_back_alone_goes_on_and_repeats_no_effect() {
    let servers = Servers::spawn(2).await;
    let client = servers.client().await;
    let mut older = Value::Nil;
    let dump = async || {
        let (server, manifest) = manifest_of(&servers).await;
        older = servers.ask(server, &["DUMP", &manifest]).await;
    };
    let (coins, ids) = resegmented(&client, dump).await;
    assert_eq!(coins.exact_balance().await.unwrap().available, 76);

    let (server, manifest) = manifest_of(&servers).await;
    let Value::BulkString(older) = older else {
        panic!("{older:?}");
    };
    let mut raw = ringfence_test_support::connection(&servers.servers[server]).await;
    let mut restore = redis::cmd("RESTORE");
    restore.arg(&manifest).arg(0).arg(older).arg("REPLACE");
    restore.exec_async(&mut raw).await.unwrap();

    let other = servers.client().await;
    let found = other.counters().open("coins").unwrap();
    assert_eq!(repeat(&found, &ids).await, ids.len());
    assert_eq!(found.exact_balance().await.unwrap().available, 76);
    found.resegment(3).await.unwrap();
    assert_eq!(repeat(&coins, &ids).await, ids.len());
    assert_eq!(coins.exact_balance().await.unwrap().available, 76);
    client.close().await;
    other.close().await;
}

#[tokio::test]
async fn an_account_whose_manifests_server_started_from_a_snapshot_goes_on() {
    let mut servers = Servers::spawn(2).await;
    let client = servers.client().await;
    let save = async || {
        let (server, _) = manifest_of(&servers).await;
        let _: Value = servers.ask(server, &["SAVE"]).await;
    };
    let (_, mut ids) = resegmented(&client, save).await;
    let (server, _) = manifest_of(&servers).await;
    client.close().await;
    servers.servers[server].restart().await.unwrap();

    let client = servers.client().await;
    let coins = client.counters().open("coins").unwrap();
    let before = coins.exact_balance().await.unwrap().available;
    let views = coins.inspect().await.unwrap().views;
    assert_eq!(views.len(), 4, "every segment is found: {views:?}");
    // A segment that went back as well has forgotten requests: nothing is promised about those.
    let manifest = coins.at_shards().unwrap().read_manifest().await.unwrap();
    let is_sure = |id: &RequestId| views[&manifest.home_of(id).unwrap()].losses == 0;
    ids.retain(is_sure);
    assert_eq!(repeat(&coins, &ids).await, ids.len());
    coins.resegment(3).await.unwrap();
    assert_eq!(coins.exact_balance().await.unwrap().available, before);
    client.close().await;
}

#[tokio::test]
async fn an_account_whose_manifests_server_came_back_empty_is_found_and_made_no_second_time() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let counters = client.counters();
    let terms = Terms {
        skew_ms: 1,
        ..Terms::in_memory()
    };
    let coins = counters.create("coins", terms, 2).await.unwrap();
    let mut ids = Vec::new();
    for name in 0..24 {
        let id = counters.request(&name.to_string()).unwrap();
        coins.deposit(&id, one()).await.unwrap();
        ids.push(id);
    }
    let (server, _) = manifest_of(&servers).await;
    client.close().await;
    servers.servers[server].restart().await.unwrap();

    let client = servers.client().await;
    let coins = client.counters().open("coins").unwrap();
    let found = coins.inspect().await.unwrap();
    assert_eq!(found.views.len() + found.lost.0.len(), 2, "{found:?}");
    let left: i64 = found.views.values().map(|view| view.value).sum();
    match client.counters().create("coins", terms, 2).await {
        Ok(_) => assert!(found.is_sound(), "{found:?}"),
        Err(CounterError::Lost { segments, .. }) => {
            let indices = |lost: &LostSegments| lost.0.iter().map(|lost| lost.index).collect();
            let [told, seen]: [Vec<u32>; 2] = [&segments, &found.lost].map(indices);
            assert_eq!(told, seen);
        }
        Err(error) => panic!("{error}"),
    }
    coins.accept().await.unwrap();
    repeat_deposits(&coins, &ids).await;
    assert_eq!(coins.exact_balance().await.unwrap().available, left.into());
    client.close().await;
}

/// Sends every deposit again: each is known, or too old to be done.
async fn repeat_deposits(coins: &Counter, ids: &[RequestId]) {
    for id in ids {
        let repeated = coins.deposit(id, one()).await;
        let too_old = matches!(repeated, Err(CounterError::Refused(Refusal::TooOld { .. })));
        assert!(repeated.is_ok() || too_old, "{id:?}: {repeated:?}");
    }
}

/// Creates the accounts with these names, as far as that can be done now.
async fn create_all(client: &Client, names: &[String], terms: Terms) -> Vec<Option<Counter>> {
    let counters = client.counters();
    let created = names
        .iter()
        .map(async |name| counters.create(name, terms, 3).await.ok());
    join_all(created).await
}

#[tokio::test]
async fn accounts_are_created_while_a_shard_is_down() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let names: Vec<String> = (0..24).map(|nth| format!("coins/{nth}")).collect();
    servers.servers[2].kill();
    let created = create_all(&client, &names, Terms::in_memory()).await;
    let created: Vec<Counter> = created.into_iter().flatten().collect();
    // A third of the manifests would be at the shard that is down.
    assert!(created.len() >= 8, "{} of 24", created.len());
    for coins in &created {
        let id = client.counters().request("given").unwrap();
        coins.deposit(&id, one()).await.unwrap();
        assert_eq!(coins.exact_balance().await.unwrap().available, 1);
    }
    let again = create_all(&client, &names, Terms::in_memory()).await;
    assert_eq!(again.iter().flatten().count(), created.len());
    for coins in again.iter().flatten() {
        assert_eq!(coins.exact_balance().await.unwrap().available, 1);
    }
    client.close().await;
}

#[tokio::test]
async fn no_account_is_created_again_while_its_copy_may_be_at_a_shard_that_is_down() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let names: Vec<String> = (0..24).map(|nth| format!("coins/{nth}")).collect();
    let terms = Terms::in_memory();
    let created = create_all(&client, &names, terms).await;
    assert!(created.iter().all(Option::is_some));
    client.close().await;
    servers.servers[2].kill();
    servers.servers[1].restart().await.unwrap();

    let client = servers.client().await;
    let other = Terms {
        skew_ms: 2,
        ..terms
    };
    let created = create_all(&client, &names, other).await;
    let created: Vec<Counter> = created.into_iter().flatten().collect();
    assert!(created.is_empty(), "{created:?}");
    client.close().await;
}

/// Ids are hashed with a key of the account: what a caller asks by the key of an earlier account is not recorded for others.
#[tokio::test]
async fn a_caller_that_knows_an_earlier_account_of_that_name_asks_the_new_one_by_its_own_manifest()
{
    let servers = Servers::spawn(1).await;
    let client = servers.client().await;
    let counters = client.counters();
    let create = || counters.create("coins", Terms::in_memory(), 1);
    let of_before = create().await.unwrap();
    let gift = counters.request("gift").unwrap();
    of_before.deposit(&gift, one()).await.unwrap();
    let keys: Vec<String> = servers.ask(0, &["KEYS", "*coins*"]).await;
    for key in keys {
        let _: Value = servers.ask(0, &["DEL", &key]).await;
    }
    // Entries of the groups in the index of their slots.
    let indices: Vec<String> = servers.ask(0, &["KEYS", "*:#{*}"]).await;
    for index in indices {
        let _: Value = servers.ask(0, &["DEL", &index]).await;
    }

    let new = create().await.unwrap();
    let order = counters.request("order").unwrap();
    for counter in [&of_before, &new, &of_before] {
        counter.deposit(&order, one()).await.unwrap();
    }
    assert_eq!(new.exact_balance().await.unwrap().available, 1);
    client.close().await;
}
