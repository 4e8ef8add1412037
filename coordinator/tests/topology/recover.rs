//! A home that died is put right from what the members have, once and for all.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use ringfence_coordinator::topology::{
    Swap, Topology, TopologyError, TopologyStore,
    server::{Founding, Joined, Observer, ServerTopology, Step},
};
use tokio::{task::JoinSet, time::timeout};

use super::servers::{
    LOST_VERSIONS, POINTER, RECORD, Servers, founding, join, join_with, recover_needed, successor,
};

/// The number of concurrent recoveries.
const RACERS: usize = 8;

/// How long a process that is held up may take to get there.
const SOON: Duration = Duration::from_secs(120);

impl Servers {
    /// Has the server at `place` look as one that is armed with `epoch`, and then was raised to `raised`.
    async fn arm(&self, place: usize, epoch: u64, raised: u64) {
        let key = self.key_of_life(place, "state").await;
        let arm = redis::Cmd::hset_multiple(&key, &[("arm", epoch), ("te", raised)]);
        arm.exec_async(&mut self.raw(place).await).await.unwrap();
    }

    /// That `recovered` follows `before`, is in force, and is pointed to by everybody.
    async fn assert_recovered(&self, recovered: &Topology, before: &Topology) {
        assert_eq!(recovered.id, before.id);
        assert!(recovered.version() > before.version());
        assert!(recovered.incarnation > before.incarnation);
        assert!(recovered.last_epoch > before.last_epoch);
        let home = self.place(&recovered.home.address);
        assert_eq!(recovered.home.life, self.life(home).await);
        let there = self.get(home, RECORD).await.unwrap();
        assert!(there.ends_with(&recovered.encode()), "{there}");
        for place in 0..self.0.len() {
            let pointer = self.get(place, POINTER).await;
            let home = format!("{} {}", recovered.id, recovered.home.address);
            assert_eq!(pointer, Some(home), "server {place}");
        }
    }
}

/// A process that recovers, held up at a step.
struct HeldUp {
    reached: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl HeldUp {
    /// A store with recoveries that stop, the first time, at a step for which `at` is true.
    async fn join(
        servers: &Servers,
        at: impl Fn(&Step) -> bool + Send + Sync + 'static,
    ) -> (Arc<ServerTopology>, Self) {
        let (reach, reached) = mpsc::channel();
        let (go_on, gone_on) = mpsc::channel();
        let held = std::sync::Mutex::new(Some((reach, gone_on)));
        let observer = Observer::new(move |step| {
            if at(step)
                && let Some((reach, gone_on)) = held.lock().unwrap().take()
            {
                reach.send(()).unwrap();
                gone_on.recv().unwrap();
            }
        });
        let founding = Founding {
            observer,
            ..founding()
        };
        let joined = join_with(servers.seeds(), founding).await.unwrap();
        (joined.store, Self { reached, go_on })
    }

    fn wait(&self) {
        self.reached.recv_timeout(SOON).unwrap();
    }
}

/// A load that may be held up.
struct Loading(mpsc::Receiver<Result<Arc<Topology>, TopologyError>>);

impl Loading {
    /// On a thread of its own, which nobody waits for once the test has failed.
    fn start(store: &Arc<ServerTopology>) -> Self {
        let (loaded, loading) = mpsc::channel();
        let (store, runtime) = (store.clone(), tokio::runtime::Handle::current());
        std::thread::spawn(move || loaded.send(runtime.block_on(store.load())));
        Self(loading)
    }

    fn done(self) -> Arc<Topology> {
        self.0.recv_timeout(SOON).unwrap().unwrap()
    }
}

#[tokio::test]
async fn an_empty_home_gets_its_record_back_from_the_next_client() {
    let (
        mut servers,
        Joined {
            store, topology, ..
        },
        home,
    ) = Servers::spawn(3).await.founded().await;
    servers.0[home].restart().await.unwrap();
    let loaded = store.load().await.unwrap();
    servers.assert_recovered(&loaded, &topology).await;

    servers.0[home].restart().await.unwrap();
    let watched = timeout(SOON, store.watch(loaded.version())).await.unwrap();
    let watched = watched.unwrap();
    servers.assert_recovered(&watched, &loaded).await;

    servers.0[home].restart().await.unwrap();
    let mut backwards = servers.seeds();
    backwards.reverse();
    let joined = join(backwards).await.unwrap();
    assert!(!joined.founded_now);
    servers.assert_recovered(&joined.topology, &watched).await;
}

#[tokio::test]
async fn an_older_record_gives_way_to_the_newest_copy() {
    let (mut servers, joined, home) = Servers::spawn_saving(3).await.founded().await;
    let older = servers.get(home, RECORD).await.unwrap();
    let mut newest = joined.topology;
    for _ in 0..3 {
        let mut next = successor(&newest);
        next.last_epoch.0 += 1;
        let swapped = joined.store.swap(newest.version(), &next).await;
        assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
        newest = Arc::new(next);
    }
    servers.set(home, RECORD, &older).await;
    servers.0[home].restart().await.unwrap();

    // No process that saw the newest record is left.
    drop(joined.store);
    let joined = join(servers.seeds()).await.unwrap();
    assert_eq!(joined.topology.version, newest.version + LOST_VERSIONS);
    servers.assert_recovered(&joined.topology, &newest).await;
}

#[tokio::test]
async fn a_record_left_only_in_the_own_view_counts() {
    let (mut servers, joined, home) = Servers::spawn(2).await.founded().await;
    let older = joined.topology;
    let newest = successor(&older);
    let swapped = joined.store.swap(older.version(), &newest).await;
    assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
    servers.copy_to(1 - home, &older).await;
    servers.0[home].restart().await.unwrap();
    let recovered = joined.store.load().await.unwrap();
    assert_eq!(recovered.version, newest.version + LOST_VERSIONS);
    servers.assert_recovered(&recovered, &newest).await;
}

#[tokio::test]
async fn members_that_are_not_as_named_are_to_be_armed_anew_and_above_every_epoch_seen() {
    let (mut servers, joined, home) = Servers::spawn(4).await.founded().await;
    let [armed, unarmed, lost] = servers.others(home)[..] else {
        unreachable!("there are four")
    };
    let named = joined.topology.last_epoch.0;
    let far = named + 1000;
    servers.arm(armed, named, far).await;
    servers.arm(lost, named + 1, named + 1).await;
    servers.0[home].restart().await.unwrap();
    let recovered = joined.store.load().await.unwrap();
    let entry = |place| {
        let address = &servers.addresses()[place];
        let mut entries = recovered.shards.values();
        entries.find(|entry| entry.address == *address).unwrap()
    };
    assert_eq!(recovered.last_epoch.0, far + 1);
    assert_eq!(entry(home).epoch, recovered.last_epoch);
    assert_eq!(entry(home).life, servers.life(home).await);
    assert_eq!(entry(unarmed).epoch, recovered.last_epoch);
    assert_eq!(entry(lost).epoch, recovered.last_epoch);
    assert_eq!(entry(armed).epoch.0, named);
}

#[tokio::test]
async fn nothing_begins_while_a_member_is_silent() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let [other, silent] = servers.others(home)[..] else {
        unreachable!("there are three")
    };
    servers.0[home].restart().await.unwrap();
    servers.0[silent].stop();
    let fence = servers.fence(other).await;

    let error = recover_needed(joined.store.load().await);
    let command = format!(
        "ringfence ring recover --attest-dead {}",
        servers.shard(&joined.topology, silent)
    );
    assert!(error.contains(&command), "{error}");
    assert_eq!(servers.fence(home).await, None);
    assert_eq!(servers.get(home, RECORD).await, None);
    assert_eq!(servers.fence(other).await, fence);

    servers.0[silent].cont();
    let recovered = joined.store.load().await.unwrap();
    servers.assert_recovered(&recovered, &joined.topology).await;
}

#[tokio::test]
async fn a_process_learns_of_the_record_by_copies_while_its_home_is_silent() {
    for is_one_silent in [false, true] {
        let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
        let follower = join(servers.seeds()).await.unwrap();
        if is_one_silent {
            servers.0[servers.others(home)[0]].stop();
        }
        let next = successor(&joined.topology);
        let swapped = joined.store.swap(joined.topology.version(), &next).await;
        assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
        servers.0[home].kill();

        let copies = follower.store.copies().await;
        assert_eq!(copies.newest.as_deref(), Some(&next));
        // The silent one may have a newer copy.
        assert_eq!(copies.of_all_at.is_none(), is_one_silent);
    }
}

#[tokio::test]
async fn a_record_that_moved_to_another_home_is_found_beside_the_copies() {
    let (mut servers, joined, home) = Servers::spawn(2).await.founded().await;
    let follower = join(servers.seeds()).await.unwrap();
    let dead = servers.shard(&joined.topology, home);
    servers.0[home].kill();
    let recovered = joined.store.recover(&[dead]).await.unwrap();

    let copies = follower.store.copies().await;
    assert_eq!(copies.newest, Some(recovered));
    assert!(copies.of_all_at.is_none(), "its home is another one");
}

#[tokio::test]
async fn a_member_attested_dead_is_left_out() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let silent = servers.others(home)[0];
    servers.0[home].restart().await.unwrap();
    servers.0[silent].stop();
    let dead = servers.shard(&joined.topology, silent);
    let another = servers.shard(&joined.topology, home);
    recover_needed(joined.store.recover(&[another]).await);
    let recovered = joined.store.recover(&[dead]).await.unwrap();
    assert!(recovered.incarnation > joined.topology.incarnation);
    servers.0[silent].cont();
    // It has not heard of it, and is told with the next look of a process that has not told it yet.
    let joined = join(servers.seeds()).await.unwrap();
    assert_eq!(joined.topology, recovered);
}

#[tokio::test]
async fn a_home_that_is_attested_dead_is_replaced_and_everybody_finds_the_new_one() {
    for saving in [false, true] {
        let servers = if saving {
            Servers::spawn_saving(3).await
        } else {
            Servers::spawn(3).await
        };
        let (mut servers, joined, home) = servers.founded().await;
        let follower = join(servers.seeds()).await.unwrap();
        let seeds = servers.seeds();
        let before = joined.topology;
        let dead = servers.shard(&before, home);
        servers.0[home].kill();

        let error = joined.store.load().await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("--attest-dead {dead}")),
            "{error}"
        );
        let recovered = joined.store.recover(&[dead]).await.unwrap();
        assert_ne!(recovered.home.address, before.home.address);
        assert_eq!(*follower.store.load().await.unwrap(), *recovered);
        let newcomer = join(seeds.clone()).await.unwrap();
        assert_eq!(newcomer.topology, recovered);

        // Come back, with its old record or without, it is a member like any other.
        servers.0[home].restart().await.unwrap();
        let mut backwards = seeds.clone();
        backwards.rotate_left(home);
        let joined = join(backwards).await.unwrap();
        assert_eq!((joined.founded_now, &joined.topology), (false, &recovered));
        if saving {
            let joined = join(vec![seeds[home].clone()]).await.unwrap();
            assert_eq!(joined.topology, recovered);
        }
    }
}

#[tokio::test]
async fn a_home_that_is_no_shard_is_attested_by_its_address() {
    let (servers, mut home) = (Servers::spawn(2).await, Servers::spawn(1).await);
    let address = home.seeds()[0].address.clone();
    let founding = Founding {
        home: Some(address.clone().into()),
        ..founding()
    };
    let joined = join_with(servers.seeds(), founding).await.unwrap();
    home.0[0].kill();
    let error = joined.store.load().await.unwrap_err().to_string();
    let dead = address.to_string();
    assert!(error.contains(&format!("--attest-dead {dead}")), "{error}");
    let recovered = joined.store.recover(&[dead]).await.unwrap();
    servers.assert_recovered(&recovered, &joined.topology).await;
}

#[tokio::test]
async fn a_home_that_comes_back_again_and_again_keeps_no_trace_of_former_lives() {
    let (servers, mut home) = (Servers::spawn(1).await, Servers::spawn_saving(1).await);
    let founding = Founding {
        home: Some(home.seeds()[0].address.clone().into()),
        ..founding()
    };
    let joined = join_with(servers.seeds(), founding).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..5 {
        home.0[0].restart().await.unwrap();
        joined.store.load().await.unwrap();
        let size = redis::cmd("DBSIZE");
        let size: u64 = size.query_async(&mut home.raw(0).await).await.unwrap();
        sizes.push(size);
    }
    assert_eq!(sizes, [sizes[0]; 5]);
}

#[tokio::test]
async fn of_many_that_recover_at_once_one_record_comes_out() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let mut stores = vec![joined.store];
    for _ in 1..RACERS {
        stores.push(join(servers.seeds()).await.unwrap().store);
    }
    servers.0[home].restart().await.unwrap();
    let mut racing = JoinSet::new();
    for store in &stores {
        let store = store.clone();
        racing.spawn(async move { store.load().await });
    }
    for raced in racing.join_all().await {
        raced.unwrap();
    }
    let last = stores[0].load().await.unwrap();
    for store in &stores {
        assert_eq!(store.load().await.unwrap(), last);
    }
    servers.assert_recovered(&last, &joined.topology).await;
}

#[tokio::test]
async fn a_recovery_that_was_left_half_way_is_no_obstacle() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    servers.0[home].restart().await.unwrap();
    Servers::end_at(servers.seeds(), |step| matches!(step, Step::Fenced { .. })).await;
    let left = servers.fence(home).await.unwrap();
    Servers::end_at(servers.seeds(), |step| {
        matches!(step, Step::Restoring { .. })
    })
    .await;
    for place in 0..3 {
        assert!(servers.fence(place).await.unwrap() > left);
    }
    let recovered = joined.store.load().await.unwrap();
    servers.assert_recovered(&recovered, &joined.topology).await;
    assert!(recovered.incarnation.to_string() > left);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_recovery_undoes_nothing_of_a_faster_one() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let (slow, held) = HeldUp::join(&servers, |step| matches!(step, Step::Restoring { .. })).await;
    servers.0[home].restart().await.unwrap();
    let loading = Loading::start(&slow);
    held.wait();

    let recovered = joined.store.load().await.unwrap();
    let next = successor(&recovered);
    let swapped = joined.store.swap(recovered.version(), &next).await;
    assert!(matches!(swapped, Ok(Swap::Done)), "{swapped:?}");
    held.go_on.send(()).unwrap();
    assert_eq!(*loading.done(), next);
    assert_eq!(*joined.store.load().await.unwrap(), next);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_begun_in_an_earlier_life_of_its_home_puts_nothing_in_force() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let (slow, held) = HeldUp::join(&servers, |step| matches!(step, Step::Restoring { .. })).await;
    servers.0[home].restart().await.unwrap();
    let loading = Loading::start(&slow);
    held.wait();
    let begun = servers.fence(home).await.unwrap();

    servers.0[home].restart().await.unwrap();
    held.go_on.send(()).unwrap();
    let recovered = loading.done();
    assert!(recovered.incarnation.to_string() > begun);
    servers.assert_recovered(&recovered, &joined.topology).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_it_is_fenced_a_home_takes_no_change_that_the_recovery_would_not_see() {
    let (servers, joined, home) = Servers::spawn(3).await.founded().await;
    let (slow, held) = HeldUp::join(&servers, |step| matches!(step, Step::Restoring { .. })).await;
    let mut fence = joined.topology.incarnation;
    fence.number += 1;
    // The record is fine, but a member has seen a later incarnation: so one begins all the same.
    let other = servers.others(home)[0];
    let key = servers.key_of_life(other, "fence").await;
    servers.set(other, &key, &fence.to_string()).await;
    slow.outrun(fence);
    let loading = Loading::start(&slow);
    held.wait();
    let next = successor(&joined.topology);
    recover_needed(joined.store.swap(joined.topology.version(), &next).await);
    held.go_on.send(()).unwrap();
    let recovered = loading.done();
    servers.assert_recovered(&recovered, &joined.topology).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_reaches_a_member_before_its_fence_counts() {
    let (mut servers, joined, home) = Servers::spawn(3).await.founded().await;
    let address = servers.addresses()[home].clone();
    let at_home = move |step: &Step| matches!(step, Step::Fenced { address: at } if *at == address);
    let (slow, held) = HeldUp::join(&servers, at_home).await;
    servers.0[home].restart().await.unwrap();
    let loading = Loading::start(&slow);
    held.wait();

    // The copy of a swap that was done before the home ended, by a process that ended with it.
    let mut late = successor(&joined.topology);
    late.last_epoch.0 += 500;
    let other = servers.others(home)[1];
    servers.copy_to(other, &late).await;
    held.go_on.send(()).unwrap();
    let recovered = loading.done();
    assert_eq!(recovered.version, late.version + LOST_VERSIONS);
    servers.assert_recovered(&recovered, &late).await;
}

#[tokio::test]
async fn a_server_that_belongs_to_another_topology_by_now_is_no_member() {
    let (mut servers, joined, home) = Servers::spawn(2).await.founded().await;
    let other = servers.others(home)[0];
    servers.0[other].restart().await.unwrap();
    let pointer = format!("{:032x} {}", 7, servers.addresses()[other]);
    servers.set(other, POINTER, &pointer).await;
    servers.0[home].restart().await.unwrap();
    let error = joined.store.load().await.unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
    assert!(
        error.to_string().contains(&servers.addresses()[other]),
        "{error}"
    );
    assert_eq!(servers.fence(other).await, None);
    assert_eq!(servers.get(home, RECORD).await, None);
}
