//! Kinds of locks that are made of others: sets, elections and latches, held and waited for while their shard comes back, and
//! while their slots move.

use ringfence_client::{
    Client, Leadership, MultiGuard, Namespace, NewShard, ReleaseAnswer, Reshape, ShardId, Token,
    counter::{Durability, RequestId},
};
use ringfence_test_support::{Servers, end_recovery, eventually};
use tokio::{task::JoinSet, time::timeout};

use super::{
    DEADLINE,
    comeback::{MAX_LEASE, RECOVERY, Returning, Stage, recorded},
};

/// How many of each kind are there while slots move: enough that some of each kind are in them.
const COUNT: usize = 16;

/// A set that one client holds and another waits for a part of; and an election in which it leads, and the other stands.
struct Scene {
    set: MultiGuard,
    leader: Leadership,
    next_set: JoinSet<MultiGuard>,
    next_leader: JoinSet<Leadership>,
}

fn keys(number: usize) -> [String; 3] {
    ["a", "b", "c"].map(|name| format!("set/{number}/{name}"))
}

fn election(number: usize) -> String {
    format!("scheduler/{number}")
}

/// How many wait for any of the keys, and in the election.
async fn waiting(client: &Client, number: usize) -> usize {
    let mut waiting = 0;
    for key in keys(number) {
        let found = client.lock(key).inspect().await.unwrap();
        waiting += found.waiters.len();
    }
    let lock = client.lock(election(number)).namespace("election");
    waiting + lock.inspect().await.unwrap().waiters.len()
}

impl Scene {
    async fn of(number: usize, holder: &Client, other: &Client) -> Self {
        let set = holder.multi_lock(keys(number)).acquire().await.unwrap();
        let leader = holder.election(election(number)).campaign().await.unwrap();
        let [a, _, c] = keys(number);
        let (lock, stands) = (
            other.multi_lock([c, a]).wait(DEADLINE),
            other.election(election(number)).wait(DEADLINE),
        );
        let (mut next_set, mut next_leader) = (JoinSet::new(), JoinSet::new());
        next_set.spawn(async move { lock.acquire().await.unwrap() });
        next_leader.spawn(async move { stands.campaign().await.unwrap() });
        eventually("both wait", async || waiting(holder, number).await == 2).await;
        Self {
            set,
            leader,
            next_set,
            next_leader,
        }
    }

    fn is_unchanged(&mut self) -> bool {
        let is_held = self.set.is_held() && self.leader.is_held();
        let (set, leader) = (
            self.next_set.try_join_next(),
            self.next_leader.try_join_next(),
        );
        is_held && set.is_none() && leader.is_none()
    }

    /// The waiters have their turn, with greater tokens.
    async fn goes_on(mut self) {
        let tokens: Vec<Token> = self.set.tokens();
        assert_eq!(self.set.release().await, ReleaseAnswer::Held);
        let next = timeout(DEADLINE, self.next_set.join_next()).await;
        let next = next.expect("its turn").unwrap().unwrap();
        let [c, a] = next.tokens()[..] else {
            panic!("two keys")
        };
        assert!(a > tokens[0] && c > tokens[2]);
        assert_eq!(next.release().await, ReleaseAnswer::Held);

        let token = self.leader.token();
        assert_eq!(self.leader.resign().await, ReleaseAnswer::Held);
        let next = timeout(DEADLINE, self.next_leader.join_next()).await;
        let next = next.expect("its turn").unwrap().unwrap();
        assert!(next.token() > token);
        assert_eq!(next.resign().await, ReleaseAnswer::Held);
    }
}

/// No lock of a set is lost, and no leadership; waiters wait on, and have their turn.
pub(crate) async fn sets_and_leaders_outlast_it(shard: &mut impl Returning) {
    let stage = Stage::of(shard.url(), MAX_LEASE).await;
    let (holder, other) = (stage.client("holder").await, stage.client("other").await);
    shard.forget_from_now().await;
    let mut scene = Scene::of(0, &holder, &other).await;
    shard.come_back().await;
    for (key, token) in std::iter::zip(keys(0), scene.set.tokens()) {
        eventually("a lock of the set is put back", async || {
            recorded(&other, &key).await == Some(token)
        })
        .await;
    }
    let observed = other.election(election(0));
    eventually("the leader is known again", async || {
        let leader = observed.leader().await.ok().flatten();
        leader.is_some_and(|leader| leader.token == scene.leader.token())
    })
    .await;
    eventually("both wait again", async || waiting(&holder, 0).await == 2).await;
    assert!(scene.is_unchanged());
    if let Some(url) = shard.redis() {
        end_recovery(&url).await;
    }
    scene.goes_on().await;
}

/// Counts down until it is answered that it counts.
async fn count_down(client: &Client, latch: &str, request: &RequestId) {
    let latch = client.latch(latch).unwrap();
    eventually("counted", async || latch.count_down(request).await.is_ok()).await;
}

/// A third server joins two, of which one dies on the way, and comes back with what it has on its disk.
#[tokio::test]
#[ignore = "long: a resize and a recovery period"]
async fn sets_leaders_and_latches_go_through_a_resize_amid_which_a_server_dies() {
    let mut servers = Servers::spawn_with(3, |server| {
        server.set("appendonly", "yes").set("appendfsync", "always")
    })
    .await;
    let urls = servers.urls();
    let client = async || {
        let builder = Client::builder().redis(&urls[..2]).max_lease(RECOVERY);
        builder.servers_are_new(true).build().await.unwrap()
    };
    let (holder, other) = (client().await, client().await);
    let mut scenes = Vec::new();
    let (first, second) = (
        holder.counters().request("1").unwrap(),
        holder.counters().request("2").unwrap(),
    );
    let names: Vec<_> = (0..COUNT).map(|number| format!("latch/{number}")).collect();
    let mut opened = JoinSet::new();
    for (number, name) in names.iter().enumerate() {
        scenes.push(Scene::of(number, &holder, &other).await);
        let latch = holder.latch(name).unwrap();
        latch.set(2, Durability::Disk).await.unwrap();
        let waiting = other.latch(name).unwrap();
        opened.spawn(async move { waiting.opened_within(DEADLINE).await });
    }
    let at_first = shards(&holder);

    let shape = Reshape::new().add_shard(NewShard::redis(&urls[2]));
    let resize = holder.ring().reshape(shape).await.unwrap();
    let mut progress = resize.progress();
    let dies = async {
        progress.wait_for(|now| now.migrating > 0).await.unwrap();
        servers.servers[1].kill();
        servers.servers[1].restart().await.unwrap();
    };
    let counts = async {
        for name in names.iter().cycle() {
            // What is not answered now is asked again.
            let _ = holder.latch(name).unwrap().count_down(&first).await;
        }
    };
    let resized = async { tokio::join!(resize.run(), dies).0 };
    let resized = tokio::select! {
        resized = resized => resized.unwrap(),
        () = counts => unreachable!("it counts until then"),
    };
    assert!(resized.slots_moved > 0);
    for (before, after) in std::iter::zip(at_first, shards(&holder)) {
        assert_ne!(before, after, "none has moved");
    }
    assert!(scenes.iter_mut().all(Scene::is_unchanged));
    assert!(opened.try_join_next().is_none());
    for scene in scenes {
        scene.goes_on().await;
    }
    for name in &names {
        count_down(&holder, name, &first).await;
        assert_eq!(holder.latch(name).unwrap().remaining().await.unwrap(), 1);
        count_down(&other, name, &second).await;
    }
    for opened in opened.join_all().await {
        opened.unwrap();
    }
}

/// The shard of each key of the sets, and of each election.
fn shards(client: &Client) -> [Vec<ShardId>; 2] {
    let of_sets = (0..COUNT)
        .flat_map(keys)
        .map(|key| client.shard_of(&Namespace::default(), &key).unwrap());
    let elections = Namespace::new("election").unwrap();
    let of_elections =
        (0..COUNT).map(|number| client.shard_of(&elections, election(number)).unwrap());
    [of_sets.collect(), of_elections.collect()]
}
