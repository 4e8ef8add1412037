//! What a change has survived once it is acknowledged, and what a server that came back may have lost.

use std::time::Duration;

use ringfence_coordinator::{
    ids::ClientId,
    name::LockKey,
    shard::{
        CounterOp, CounterReply,
        redis::{RedisOptions, RedisShard},
    },
    spawn::{RedisServer, RedisServerBuilder},
};
use ringfence_segment_lock::{
    Durability, Terms,
    segment::{Accept, Create, Expire, Money, Refusal, Reply, Request, State},
};

use ringfence_test_support::Proxy;

use super::desk::{Desk, create, deduct, deposit, eventually, id, key, without_money};

fn terms(durability: Durability) -> Terms {
    Terms::new(durability)
}

fn done() -> CounterReply {
    CounterReply::Segment(Ok(Reply::Recorded(State::Done, Money::default())))
}

/// A server that syncs every write.
pub(crate) fn synced() -> RedisServerBuilder {
    RedisServer::builder()
        .set("appendonly", "yes")
        .set("appendfsync", "always")
}

pub(crate) async fn raw(server: &RedisServer, command: &[&str]) -> redis::Value {
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let mut asked = redis::cmd(command[0]);
    asked
        .arg(&command[1..])
        .query_async(&mut raw)
        .await
        .unwrap()
}

/// A desk at the server, armed with `epoch` if it is in a new life.
pub(crate) async fn desk(server: &RedisServer, epoch: u64) -> Desk {
    desk_by(&server.url(), server, epoch).await
}

/// The same, by an address that leads to the server.
async fn desk_by(url: &str, server: &RedisServer, epoch: u64) -> Desk {
    Desk::open(&shard(url, server).await, epoch).await
}

/// The server as a shard of the tests' topology.
pub(crate) async fn shard(url: &str, server: &RedisServer) -> RedisShard {
    let pointer = "00112233445566778899aabbccddeeff redis://127.0.0.1";
    raw(server, &["SET", "ringfence:pointer", pointer]).await;
    let mut options = RedisOptions::new(url.parse().unwrap(), ClientId(7));
    options.settings_every = Duration::from_millis(20);
    RedisShard::new(options)
}

#[tokio::test]
async fn changes_acknowledged_by_a_server_that_syncs_outlast_its_kill_and_are_certain() {
    let mut server = synced().spawn().await.unwrap();
    let hot = key("hot");
    let mut first = desk(&server, 1).await;
    first
        .ask(&hot, create(terms(Durability::Disk)))
        .await
        .unwrap();
    for at in 0..50 {
        let op = deposit(&id(&at.to_string()), 2);
        assert_eq!(first.one(&hot, CounterOp::Segment(op.into())).await, done());
    }
    server.restart().await.unwrap();
    let mut second = desk(&server, 2).await;
    let view = second.view(&hot).await;
    assert_eq!((view.value, view.version), (100, 50));
    assert_eq!((view.doubtful, view.losses), (false, 0));
    let repeat = second.ask(&hot, deposit(&id("7"), 2)).await;
    assert_eq!(repeat, Ok(Reply::Recorded(State::Done, Money::default())));
    assert_eq!(second.view(&hot).await.value, 100);
}

#[tokio::test]
async fn a_server_that_does_not_sync_every_write_is_refused_by_accounts_that_need_it() {
    let synced_but = |directive: &str, value: &str| synced().set(directive, value);
    for server in [
        synced_but("appendonly", "no"),
        synced_but("appendfsync", "everysec"),
        synced_but("appendfsync", "no"),
        synced_but("no-appendfsync-on-rewrite", "yes"),
        // Nobody can tell.
        synced().without("CONFIG"),
    ] {
        let settings = format!("{server:?}");
        let server = server.spawn().await.unwrap();
        let mut desk = desk(&server, 1).await;
        let (disk, memory) = (key("disk"), key("memory"));
        let not = |reply| assert_eq!(reply, CounterReply::NotOnDisk, "{settings}");
        let created = create(terms(Durability::Disk));
        not(desk.one(&disk, CounterOp::Segment(created.into())).await);
        let swap = CounterOp::SwapManifest {
            expected: 0,
            manifest: "layout".into(),
            durability: Durability::Disk,
        };
        not(desk.one(&disk, swap).await);
        let left = raw(&server, &["KEYS", "ringfence:#*"]).await;
        assert_eq!(left, redis::Value::Array(Vec::new()));
        desk.ask(&memory, create(terms(Durability::Memory)))
            .await
            .unwrap();
        desk.ask(&memory, deposit(&id("a"), 1)).await.unwrap();
    }
}

#[tokio::test]
async fn an_account_is_refused_once_its_server_syncs_no_more() {
    let server = synced().spawn().await.unwrap();
    let hot = key("hot");
    let mut before = desk(&server, 1).await;
    before
        .ask(&hot, create(terms(Durability::Disk)))
        .await
        .unwrap();
    raw(&server, &["CONFIG", "SET", "appendfsync", "everysec"]).await;
    let mut after = desk(&server, 1).await;
    let reply = after
        .one(&hot, CounterOp::Segment(deposit(&id("a"), 1).into()))
        .await;
    assert_eq!(reply, CounterReply::NotOnDisk);
    raw(&server, &["CONFIG", "SET", "appendfsync", "always"]).await;
    assert_eq!(desk(&server, 1).await.view(&hot).await.value, 0);
}

#[tokio::test]
async fn settings_that_change_are_noticed_by_connections_that_are_open() {
    let server = synced().spawn().await.unwrap();
    let hot = key("hot");
    let mut desk = desk(&server, 1).await;
    let created = create(terms(Durability::Disk));
    desk.ask(&hot, created).await.unwrap();
    let mut number = 0;
    let mut deposits = async |desk: &mut Desk| {
        number += 1;
        let op = deposit(&id(&number.to_string()), 1);
        desk.one(&hot, CounterOp::Segment(op.into())).await
    };
    for (setting, bad, good) in [
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("appendfsync", "everysec", "always"),
        ("appendonly", "no", "yes"),
    ] {
        raw(&server, &["CONFIG", "SET", setting, bad]).await;
        eventually(async || deposits(&mut desk).await == CounterReply::NotOnDisk).await;
        raw(&server, &["CONFIG", "SET", setting, good]).await;
        eventually(async || deposits(&mut desk).await == done()).await;
    }
}

/// Whether the server rewrites its log, or is about to.
async fn rewrites(server: &RedisServer) -> bool {
    let info = format!("{:?}", raw(server, &["INFO", "persistence"]).await);
    info.contains("aof_rewrite_in_progress:1") || info.contains("aof_rewrite_scheduled:1")
}

/// A server that syncs every write, and rewrites its log slowly: a minute per key, in a process that ends when the log is
/// switched off.
fn slow_to_rewrite() -> RedisServerBuilder {
    synced().set("rdb-key-save-delay", "60000000")
}

#[tokio::test]
async fn nothing_is_acknowledged_as_on_the_disk_before_a_log_that_was_switched_on_is_begun() {
    let mut server = slow_to_rewrite().spawn().await.unwrap();
    let (hot, other) = (key("hot"), key("other"));
    let mut open = desk(&server, 1).await;
    let created = create(terms(Durability::Disk));
    open.ask(&hot, created).await.unwrap();
    let op = |name: &str| CounterOp::Segment(deposit(&id(name), 5).into());
    assert_eq!(open.one(&hot, op("kept")).await, done());
    raw(&server, &["CONFIG", "SET", "appendonly", "no"]).await;
    let expire = || CounterOp::Segment(Expire.into());
    eventually(async || open.one(&hot, expire()).await == CounterReply::NotOnDisk).await;

    raw(&server, &["CONFIG", "SET", "appendonly", "yes"]).await;
    assert!(rewrites(&server).await);
    let mut new = desk(&server, 1).await;
    for desk in [&mut open, &mut new] {
        assert_eq!(desk.one(&hot, op("begun")).await, CounterReply::NotOnDisk);
        let swap = CounterOp::SwapManifest {
            expected: 0,
            manifest: "layout".into(),
            durability: Durability::Disk,
        };
        assert_eq!(desk.one(&other, swap).await, CounterReply::NotOnDisk);
    }
    // All that was acknowledged is there after a kill.
    raw(&server, &["CONFIG", "SET", "appendonly", "no"]).await;
    server.restart().await.unwrap();
    assert_eq!(desk(&server, 2).await.view(&hot).await.value, 5);
}

#[tokio::test]
async fn a_log_that_is_rewritten_stays_on_the_disk() {
    let server = slow_to_rewrite().spawn().await.unwrap();
    let hot = key("hot");
    let created = create(terms(Durability::Disk));
    desk(&server, 1).await.ask(&hot, created).await.unwrap();
    raw(&server, &["BGREWRITEAOF"]).await;
    assert!(rewrites(&server).await);
    let op = CounterOp::Segment(deposit(&id("a"), 5).into());
    assert_eq!(desk(&server, 1).await.one(&hot, op).await, done());
    assert!(rewrites(&server).await);
    raw(&server, &["CONFIG", "SET", "appendonly", "no"]).await;
}

#[tokio::test]
async fn an_account_in_memory_is_marked_when_its_server_came_back_and_goes_on() {
    let mut server = RedisServer::spawn().await.unwrap();
    let hot = key("hot");
    let mut first = desk(&server, 1).await;
    first
        .ask(&hot, create(terms(Durability::Memory)))
        .await
        .unwrap();
    first.ask(&hot, deposit(&id("kept"), 100)).await.unwrap();
    raw(&server, &["SAVE"]).await;
    first.ask(&hot, deposit(&id("lost"), 5)).await.unwrap();
    server.restart().await.unwrap();

    let mut second = desk(&server, 2).await;
    let view = second.view(&hot).await;
    assert_eq!((view.value, view.losses, view.doubtful), (100, 1, false));
    assert!(
        view.version > 1 << 32,
        "no version of before is seen again: {view:?}"
    );
    second.ask(&hot, deduct(&id("a"), 1)).await.unwrap();
    // Once for a life, whoever looks, and by whichever connection.
    assert_eq!(desk(&server, 2).await.view(&hot).await.losses, 1);
}

#[tokio::test]
async fn an_account_that_asked_for_durability_is_in_doubt_if_an_older_state_came_back() {
    let mut server = synced().set("save", "900 1").spawn().await.unwrap();
    let hot = key("hot");
    let mut first = desk(&server, 1).await;
    first
        .ask(&hot, create(terms(Durability::Disk)))
        .await
        .unwrap();
    first.ask(&hot, deposit(&id("kept"), 100)).await.unwrap();
    raw(&server, &["SAVE"]).await;
    first.ask(&hot, deposit(&id("lost"), 5)).await.unwrap();
    // Its log is gone: it begins with the snapshot, which says of itself that it was synced.
    server.kill();
    std::fs::remove_dir_all(server.dir().join("appendonlydir")).unwrap();
    let older = std::fs::read(server.dir().join("dump.rdb")).unwrap();
    let mut stale = RedisServer::builder().spawn().await.unwrap();
    stale.kill();
    std::fs::write(stale.dir().join("dump.rdb"), older).unwrap();
    stale.restart().await.unwrap();

    let mut second = desk(&stale, 2).await;
    let doubtful = CounterReply::NotOnDisk;
    let reply = second
        .one(&hot, CounterOp::Segment(deduct(&id("a"), 1).into()))
        .await;
    assert_eq!(reply, doubtful);
    // A recorded answer goes before every refusal, also in a batch.
    let kept = || CounterOp::Segment(deposit(&id("kept"), 100).into());
    assert_eq!(second.one(&hot, kept()).await, done());
    let batch = [
        (hot.clone(), kept()),
        (
            hot.clone(),
            CounterOp::Segment(deposit(&id("lost"), 5).into()),
        ),
    ];
    let replies = second.batch(&batch).await.into_iter();
    let replies: Vec<_> = replies.map(without_money).collect();
    assert_eq!(replies, [done(), CounterReply::NotOnDisk]);
    raw(&stale, &["CONFIG", "SET", "appendonly", "yes"]).await;
    raw(&stale, &["CONFIG", "SET", "appendfsync", "always"]).await;
    eventually(async || !rewrites(&stale).await).await;
    let mut third = desk(&stale, 2).await;
    assert_eq!(
        third.ask(&hot, deduct(&id("a"), 1)).await,
        Err(Refusal::Doubtful)
    );
    assert_eq!(third.one(&hot, kept()).await, done());
    let refused = CounterReply::Segment(Err(Refusal::Doubtful));
    let replies = third.batch(&batch).await.into_iter();
    let replies: Vec<_> = replies.map(without_money).collect();
    assert_eq!(replies, [done(), refused]);
    let both = ["b", "c"].map(|name| {
        let op = CounterOp::Segment(deduct(&id(name), 1).into());
        (hot.clone(), op)
    });
    let refused = CounterReply::Segment(Err(Refusal::Doubtful));
    assert_eq!(third.batch(&both).await, [refused.clone(), refused]);
    let Create { prepare, .. } = create(terms(Durability::Disk));
    let read = third.view(&hot).await;
    let accept = Accept {
        version: read.version,
        others: [].into(),
        in_force: prepare,
        at_ms: id("now").time_ms(),
    };
    third.ask(&hot, accept).await.unwrap();
    // It may have been decided by what the copy lacks.
    let old = third.ask(&hot, deduct(&id("a"), 1)).await;
    assert!(matches!(old, Err(Refusal::TooOld { .. })), "{old:?}");
    assert_eq!(third.one(&hot, kept()).await, done());
    let view = third.view(&hot).await;
    assert_eq!((view.value, view.losses, view.doubtful), (100, 1, false));
}

#[tokio::test]
async fn a_copy_at_another_place_is_in_doubt_however_it_syncs() {
    let mut server = synced().spawn().await.unwrap();
    let hot = key("hot");
    let created = create(terms(Durability::Disk));
    desk(&server, 1).await.ask(&hot, created).await.unwrap();
    server.kill();
    let mut copy = synced().spawn().await.unwrap();
    copy.kill();
    let [from, to] = [&server, &copy].map(|server| server.dir().join("appendonlydir"));
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    copy.restart().await.unwrap();
    let refused = desk(&copy, 2).await.ask(&hot, deposit(&id("a"), 1)).await;
    assert_eq!(refused, Err(Refusal::Doubtful));
}

#[tokio::test]
async fn whether_a_restart_is_a_loss_is_a_matter_of_how_its_server_synced() {
    for (fsync, losses) in [("always", 0), ("everysec", 1)] {
        let server = RedisServer::builder().set("appendonly", "yes");
        let mut server = server.set("appendfsync", fsync).spawn().await.unwrap();
        let hot = key("hot");
        let created = create(terms(Durability::Memory));
        desk(&server, 1).await.ask(&hot, created).await.unwrap();
        // What has this on the disk has all before.
        raw(&server, &["BGREWRITEAOF"]).await;
        eventually(async || !rewrites(&server).await).await;
        server.restart().await.unwrap();
        assert_eq!(
            desk(&server, 2).await.view(&hot).await.losses,
            losses,
            "{fsync}"
        );
    }
}

/// Waits until a replica has what is written.
async fn followed(server: &RedisServer) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    eventually(async || {
        redis::Cmd::set("followed", 1)
            .exec_async(&mut raw)
            .await
            .unwrap();
        let wait = redis::cmd("WAIT").arg(1).arg(100).to_owned();
        wait.query_async::<u64>(&mut raw).await.unwrap() == 1
    })
    .await;
}

/// A server, its replica, and a desk at the first.
async fn with_replica() -> (RedisServer, RedisServer, Desk) {
    let server = RedisServer::spawn().await.unwrap();
    let replica = RedisServer::builder()
        .replica_of(server.port())
        .spawn()
        .await
        .unwrap();
    followed(&server).await;
    let desk = desk(&server, 1).await;
    (server, replica, desk)
}

/// A replica that is late for the answer has it soon.
async fn acknowledged(desk: &mut Desk, key: &LockKey, request: impl Into<Request>) {
    let op = CounterOp::Segment(request.into());
    eventually(async || match desk.one(key, op.clone()).await {
        CounterReply::Segment(answer) => answer.is_ok(),
        CounterReply::TooFewReplicas { .. } => false,
        other => panic!("{other:?}"),
    })
    .await;
}

#[tokio::test]
async fn a_change_is_acknowledged_once_its_replicas_have_it_and_a_repeat_waits_too() {
    let (server, replica, mut first) = with_replica().await;
    let hot = key("hot");
    acknowledged(&mut first, &hot, create(terms(Durability::Replicas(1)))).await;
    acknowledged(&mut first, &hot, deposit(&id("a"), 5)).await;

    replica.stop();
    let too_few = CounterReply::TooFewReplicas {
        replicas: 0,
        required: 1,
    };
    let op = || CounterOp::Segment(deposit(&id("b"), 5).into());
    assert_eq!(first.one(&hot, op()).await, too_few);
    // By its own connection, and by one that wrote nothing before.
    assert_eq!(first.one(&hot, op()).await, too_few);
    let mut second = desk(&server, 1).await;
    assert_eq!(second.one(&hot, op()).await, too_few);
    let find = ringfence_segment_lock::segment::Find {
        id: id("b"),
        generation: 1,
    };
    let mut third = desk(&server, 1).await;
    assert_eq!(
        third.one(&hot, CounterOp::Segment(find.into())).await,
        too_few
    );
    // Another account does not wait.
    let other = key("other");
    first
        .ask(&other, create(terms(Durability::Memory)))
        .await
        .unwrap();

    replica.cont();
    eventually(async || second.one(&hot, op()).await == done()).await;
    assert_eq!(first.view(&hot).await.value, 10);
}

#[tokio::test]
async fn a_manifest_is_acknowledged_once_its_replicas_have_it() {
    let (server, replica, mut first) = with_replica().await;
    let hot = key("hot");
    let swap = |expected| CounterOp::SwapManifest {
        expected,
        manifest: "layout".into(),
        durability: Durability::Replicas(1),
    };
    let too_few = CounterReply::TooFewReplicas {
        replicas: 0,
        required: 1,
    };
    // A replica that is late for the answer has it soon.
    let swapped = first.one(&hot, swap(0)).await;
    assert!(swapped == CounterReply::Swapped(true) || swapped == too_few);
    let stored = CounterReply::Manifest(Some((1, "layout".into())));
    eventually(async || first.one(&hot, CounterOp::ReadManifest).await == stored).await;
    replica.stop();
    assert_eq!(first.one(&hot, swap(1)).await, too_few);
    let mut second = desk(&server, 1).await;
    assert_eq!(second.one(&hot, swap(1)).await, too_few);
    let mut third = desk(&server, 1).await;
    assert_eq!(third.one(&hot, CounterOp::ReadManifest).await, too_few);
    replica.cont();
    let manifest = CounterReply::Manifest(Some((2, "layout".into())));
    eventually(async || third.one(&hot, CounterOp::ReadManifest).await == manifest).await;
}

#[tokio::test]
async fn a_first_replica_casts_no_doubt_and_a_failover_does() {
    let server = RedisServer::spawn().await.unwrap();
    let hot = key("hot");
    desk(&server, 1)
        .await
        .ask(&hot, create(terms(Durability::Memory)))
        .await
        .unwrap();
    let replica = RedisServer::builder()
        .replica_of(server.port())
        .spawn()
        .await
        .unwrap();
    followed(&server).await;
    assert_eq!(desk(&server, 2).await.view(&hot).await.losses, 0);

    drop(server);
    raw(&replica, &["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(desk(&replica, 3).await.view(&hot).await.losses, 1);
}

#[tokio::test]
async fn a_failover_casts_doubt_also_on_accounts_that_nobody_uses_before_the_next_restart() {
    let server = synced().spawn().await.unwrap();
    let mut replica = synced().spawn().await.unwrap();
    let port = server.port().to_string();
    raw(&replica, &["REPLICAOF", "127.0.0.1", &port]).await;
    followed(&server).await;
    let proxy = Proxy::start(server.port()).await;
    let (idle, new) = (key("idle"), key("new"));
    let mut first = desk_by(&proxy.url(), &server, 1).await;
    let created = || create(terms(Durability::Disk));
    first.ask(&idle, created()).await.unwrap();
    followed(&server).await;
    // Its replica does not get this.
    raw(&replica, &["REPLICAOF", "NO", "ONE"]).await;
    first.ask(&idle, deposit(&id("lost"), 5)).await.unwrap();
    drop(server);

    proxy.point_at(replica.port());
    eventually(async || !rewrites(&replica).await).await;
    let mut second = desk_by(&proxy.url(), &replica, 2).await;
    second.ask(&new, created()).await.unwrap();
    for epoch in [3, 4] {
        replica.restart().await.unwrap();
        let mut later = desk_by(&proxy.url(), &replica, epoch).await;
        assert!(later.view(&idle).await.doubtful);
        assert!(!later.view(&new).await.doubtful, "of a later life");
    }
}

#[tokio::test]
async fn a_former_primary_that_the_address_leads_back_to_marks_what_its_replica_did() {
    let (server, replica, mut first) = with_replica().await;
    let (hot, safe) = (key("hot"), key("safe"));
    let swap = |expected| CounterOp::SwapManifest {
        expected,
        manifest: "head".into(),
        durability: Durability::Memory,
    };
    for (key, durability) in [(&hot, Durability::Memory), (&safe, Durability::Replicas(1))] {
        acknowledged(&mut first, key, create(terms(durability))).await;
        acknowledged(&mut first, key, deposit(&id("a"), 5)).await;
    }
    first.one(&key("account"), swap(0)).await;
    followed(&server).await;

    raw(&replica, &["REPLICAOF", "NO", "ONE"]).await;
    let mut second = desk(&replica, 2).await;
    second.ask(&hot, deposit(&id("b"), 3)).await.unwrap();

    // It was neither restarted nor demoted.
    let mut third = desk(&server, 3).await;
    let view = third.view(&hot).await;
    assert_eq!((view.value, view.losses), (5, 1));
    assert_eq!(third.view(&hot).await.losses, 1);
    // Nothing that its replica did alone was acknowledged.
    let view = third.view(&safe).await;
    assert_eq!((view.doubtful, view.losses), (false, 0));
    let manifest = third.one(&key("account"), CounterOp::ReadManifest).await;
    assert_eq!(manifest, CounterReply::ManifestInDoubt(1, "head".into()));
}
