//! An account's manifest goes back in time, and its segments do not.

use std::time::Duration;

use futures_util::{StreamExt as _, future::join_all, stream};
use redis::Value;
use ringfence_client::{
    Client, Counter, NewShard, Reshape,
    counter::{Amount, CounterError, LostSegments, RequestId, Terms, segment::Refusal},
};
use ringfence_test_support::{Servers, eventually};

/// Of shards that come back.
const RECOVERY: Duration = Duration::from_secs(5);

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

/// Of one segment, which is not at the shard that has the manifest.
async fn account(client: &Client, name: &str) -> Counter {
    let created = client
        .counters()
        .create(name, Terms::in_memory(), 1)
        .await
        .unwrap();
    let id = client.counters().new_request();
    created.deposit(&id, one()).await.unwrap();
    created
}

/// Restarts the server with the manifest of `coins`, which comes back empty, and connects anew.
async fn lose_manifest(servers: &mut Servers, client: Client) -> Client {
    let (server, _) = manifest_of(servers).await;
    client.close().await;
    servers.servers[server].restart().await.unwrap();
    servers.client().await
}

#[tokio::test]
async fn an_account_of_one_segment_is_found_by_its_segment() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let coins = account(&client, "coins").await;
    coins.close().await.unwrap();
    for server in 0..3 {
        let copies: Vec<String> = servers.ask(server, &["KEYS", "*coins#copy*"]).await;
        assert!(copies.is_empty(), "{copies:?}");
    }
    let client = lose_manifest(&mut servers, client).await;
    let mut pages = client.counters().list("");
    let mut listed = Vec::new();
    while let Some(page) = pages.next().await {
        listed.extend(page.accounts.unwrap());
    }
    let [listed] = &listed[..] else {
        panic!("{listed:?}");
    };
    assert_eq!(listed.account.as_str(), "coins");
    let coins = client.counters().open("coins").unwrap();
    assert_eq!(coins.exact_balance().await.unwrap().available, 1);
    let gift = client.counters().new_request();
    let refused = coins.deposit(&gift, one()).await;
    assert!(
        matches!(refused, Err(CounterError::Refused(Refusal::Closed))),
        "{refused:?}"
    );
    coins.deduct(&gift, one()).await.unwrap();
    client.close().await;
}

/// The manifest and segment 0 were made where there was one shard. Then nobody but a copy knows what both forgot.
#[tokio::test]
async fn an_account_goes_on_whose_manifest_and_segment_went_back_together() {
    let mut servers = Servers::spawn(2).await;
    let urls = servers.urls();
    let founder = Client::builder()
        .redis(&urls[..1])
        .servers_are_new(true)
        .max_lease(RECOVERY);
    let client = founder.build().await.unwrap();
    for nth in 0..16 {
        account(&client, &format!("coins{nth}")).await;
    }
    let shape = Reshape::new().add_shard(NewShard::redis(&urls[1]));
    client
        .ring()
        .reshape(shape)
        .await
        .unwrap()
        .run()
        .await
        .unwrap();
    let mut together = Vec::new();
    for nth in 0..16 {
        let name = format!("coins{nth}");
        let pattern = format!("*:{name}[:#]*");
        let keys: Vec<String> = servers.ask(0, &["KEYS", &pattern]).await;
        let has = |end: &str| keys.iter().any(|key| key.ends_with(end));
        if has(":manifest") && has(":seg") {
            together.push(name);
        }
    }
    let name = together.first().expect("one account in four");
    let _: Value = servers.ask(0, &["SAVE"]).await;
    let coins = client.counters().open(name).unwrap();
    coins.resegment(4).await.unwrap();
    client.close().await;
    servers.servers[0].restart().await.unwrap();

    let client = servers.client().await;
    let coins = client.counters().open(name).unwrap();
    let found = coins.inspect().await.unwrap();
    assert_eq!(found.views.len() + found.lost.0.len(), 4, "{found:?}");
    coins.accept().await.unwrap();
    assert_eq!(coins.exact_balance().await.unwrap().available, 1);
    client.close().await;
}

#[tokio::test]
async fn labels_and_later_changes_of_them_outlast_the_manifest() {
    let mut servers = Servers::spawn(3).await;
    let mut client = servers.client().await;
    account(&client, "coins").await;
    for value in [Some("gold"), Some("silver"), None] {
        let labels = [("tier".to_owned(), value.map(str::to_owned))].into();
        let coins = client.counters().open("coins").unwrap();
        coins.label(&labels).await.unwrap();
        client = lose_manifest(&mut servers, client).await;
        let coins = client.counters().open("coins").unwrap();
        let labels = coins.inspect().await.unwrap().details.labels;
        assert_eq!(labels.get("tier").map(String::as_str), value);
        assert_eq!(coins.exact_balance().await.unwrap().available, 1);
    }
    client.close().await;
}

#[tokio::test]
async fn what_a_deleted_account_decided_outlasts_its_manifest() {
    let mut servers = Servers::spawn(3).await;
    let client = servers.client().await;
    let coins = account(&client, "coins").await;
    let spent = client.counters().new_request();
    coins.deduct(&spent, one()).await.unwrap();
    coins.close().await.unwrap();
    // Its segment remains for a minute.
    coins.delete().await.unwrap();
    let client = lose_manifest(&mut servers, client).await;
    let found = client
        .counters()
        .open("coins")
        .unwrap()
        .exact_balance()
        .await;
    assert!(
        matches!(found, Err(CounterError::NoAccount { .. })),
        "{found:?}"
    );
    client.close().await;
}

/// The memory that the servers use for their keys, in bytes.
async fn used_memory(servers: &Servers) -> u64 {
    let mut used = 0;
    for server in 0..servers.servers.len() {
        let keys: Vec<Vec<u8>> = servers.ask(server, &["KEYS", "*"]).await;
        let mut usages = redis::pipe();
        for key in keys {
            usages.cmd("MEMORY").arg("USAGE").arg(key);
        }
        let mut raw = ringfence_test_support::connection(&servers.servers[server]).await;
        let usages: Vec<u64> = usages.query_async(&mut raw).await.unwrap();
        used += usages.iter().sum::<u64>();
    }
    used
}

#[tokio::test]
async fn an_idle_account_of_one_segment_takes_a_kilobyte_of_memory() {
    const ACCOUNTS: u64 = 4096;
    let servers = Servers::spawn(2).await;
    let client = servers.client().await;
    let counters = client.counters();
    let create = async |name: String| {
        let created = counters.create(&name, Terms::in_memory(), 1).await;
        created.unwrap();
    };
    create("first".into()).await;
    let before = used_memory(&servers).await;
    let names = (0..ACCOUNTS).map(|nth| create(format!("account:{nth:06}")));
    stream::iter(names).buffer_unordered(64).count().await;
    let each = (used_memory(&servers).await - before) / ACCOUNTS;
    println!("{each} bytes");
    assert!(each <= 1024, "{each} bytes");
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
