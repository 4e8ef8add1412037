//! Segments that remember much: what they remember is at the next shard before their slots are sealed.

use std::{collections::BTreeMap, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    limits::{COPY_ROWS, MOVER_PAUSE},
    mover::{Observer, Phase},
    spawn::RedisServer,
    topology::{TopologyStore, shard_id},
};
use ringfence_segment_lock::{
    Durability,
    segment::{Reply, State},
};
use tokio::{
    runtime::{self, Runtime},
    sync::watch,
};

use super::{
    bank::{Desk, account_key},
    lockers::engine,
    servers::{PAUSE, Stage, mover, ring, topology},
};

/// Answers in one block.
const BLOCK: usize = 2_048;

/// Writes a block of that many answers, of a time of its own, as the scripts of a segment do.
const FILL: &str = "
local group, time, count = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local low, records = time % 65536, {}
for i = 1, count do
  records[i] = struct.pack('>I4I2I4I8c8c1', (time - low) / 65536, low, i * 40503 % 2^32, i, string.rep('c', 8), 'D')
end
local block = table.concat(records)
local name = redis.sha1hex(block)
redis.call('HSET', group .. ':blocks', name, block)
redis.call('ZADD', group .. ':times', string.format('%d', time * 2048 + 2047), name)
redis.call('HINCRBY', group .. ':seg', 'packed_count', count)
redis.call('HSET', group .. ':seg', 'packed', string.format('%d', time * 2048 + 2047))
if redis.call('ZCARD', group .. ':times') == 1 then redis.call('HSET', group .. ':seg', 'oldest', ARGV[1]) end
";

/// Writes a page of that many effects of 1 of that time, as the scripts of a segment do, behind those that are there.
const LOG: &str = "
local group, time, count = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local field, effects = redis.call('HGET', group .. ':seg', 'log'), {}
local most, last, newest, packed = string.match(field, '^(%d+ %d+) (%d+) %d+ (%d+) (%d+)$')
local first = last + 1
for i = 1, count do
  local effect = string.format('+1:%016d:%d', time, i) .. string.char(0)
  effects[i] = struct.pack('>I2', #effect) .. effect
end
effects = table.concat(effects)
local page = string.format('%d %d\\n%d %d %d %d 0 0\\n', count, time, #effects, first, count, time) .. effects
local name = redis.sha1hex(page)
redis.call('HSET', group .. ':blocks', name, page)
redis.call('ZADD', group .. ':pages', first, name)
field = string.format('%s %d %d %d %d', most, last + count, time, newest, packed + count)
redis.call('HSET', group .. ':seg', 'log', field)
";

/// Adds answers to the newest ones, as batches of one request each do.
const ADD: &str = "
local group, count, low = KEYS[1], tonumber(ARGV[2]), ARGV[1] % 65536
local time, value = struct.pack('>I4I2', (ARGV[1] - low) / 65536, low), string.rep('c', 8) .. 'D'
for i = 1, count do
  local key = time .. struct.pack('>I4I8', i * 40503 % 2^32, i)
  redis.call('HSET', group .. ':ids', key, value)
  redis.call('RPUSH', group .. ':order', time .. time .. key .. value)
end
redis.call('HINCRBY', group .. ':seg', 'newest_count', count)
";

/// Adds reservations of 1, as requests do whose deadlines are an hour away.
const RESERVE: &str = "
local group, now, count = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 1, count do
  local deadline, low = string.format('%d', now + 3600000 + i), now % 65536
  local key = struct.pack('>I4I2I4I8', (now - low) / 65536, low, i * 40503 % 2^32, i)
  redis.call('HSET', group .. ':open', key, string.rep('c', 8) .. 'H1:' .. deadline)
  redis.call('ZADD', group .. ':due', deadline, string.format('%016d:%d', now, i) .. string.char(0) .. key)
end
redis.call('HINCRBY', group .. ':seg', 'open', count)
redis.call('HINCRBY', group .. ':seg', 'held', count)
";

/// Takes away the first block, as a request does that comes when the block is old.
const FORGET: &str = "
local name = redis.call('ZPOPMIN', KEYS[1] .. ':times')[1]
redis.call('HDEL', KEYS[1] .. ':blocks', name)
redis.call('HINCRBY', KEYS[1] .. ':seg', 'packed_count', -tonumber(ARGV[1]))
";

/// Blocks by their names.
type Blocks = BTreeMap<Vec<u8>, Vec<u8>>;
/// Open requests by their keys, and their keys and deadlines in the order of these.
type Open = (Blocks, Vec<Vec<u8>>);

/// A ring of four servers, and an account at the fourth.
struct Big {
    stage: Stage,
    account: usize,
    group: Vec<u8>,
}

impl Big {
    /// An account that remembers `packed` answers in blocks and `newest` others.
    async fn new(packed: usize, newest: usize) -> Self {
        let stage = Stage::new().await;
        // It arms the shards.
        let _engine = engine(&ring(&stage.store), 1).await;
        stage.begin(true).await;
        stage.resize().await;
        let table = stage.store.load().await.unwrap().table.clone();
        let here = |account: &usize| {
            let slot = account_key(*account, table.slots()).slot();
            *table.owner(slot) == shard_id(3)
        };
        let account = (0..).find(here).unwrap();
        let mut desk = Desk::new(&ring(&stage.store), 0);
        desk.open(account, Durability::Memory).await;
        let key = account_key(account, table.slots());
        let group = [b"ringfence:#", key.text()].concat();
        let big = Self {
            stage,
            account,
            group,
        };
        let an_hour_ago = BootClock.unix().as_millis() as usize - 3_600_000;
        for nth in 0..packed.div_ceil(BLOCK) {
            let count = BLOCK.min(packed - nth * BLOCK);
            big.run(FILL, &[an_hour_ago + nth, count]);
        }
        big.run(ADD, &[an_hour_ago + packed / BLOCK, newest]);
        big
    }

    /// Runs a script about the group at the fourth server.
    fn run(&self, script: &str, arguments: &[usize]) {
        run(&self.urls()[3], script, &self.group, arguments);
    }

    /// Adds reservations.
    fn reserves(&self, count: usize) {
        let now_ms = BootClock.unix().as_millis() as usize;
        self.run(RESERVE, &[now_ms, count]);
    }

    /// Moves it away after one reservation was given back and another was made: both after the open ones were copied
    /// ahead. Then does `more` there. Returns how many pieces were copied under the seal.
    async fn moves_while_reservations_change(&self, more: impl FnOnce() + Send + 'static) -> usize {
        let mut desk = Desk::new(&ring(&self.stage.store), 2);
        let account = self.account;
        let (deposit, first) = (desk.deposits_one(), desk.reserves_one());
        desk.change(account, deposit).await.unwrap();
        desk.change(account, first.clone()).await.unwrap();
        self.reserves(3 * COPY_ROWS);
        let (urls, group) = (self.urls(), self.group.clone());
        let after = Arc::new(Mutex::new(None));
        let found = after.clone();
        let ahead = self.when_ahead(move || {
            // An observer cannot wait for a request, and what waits here may share no connection with the mover.
            let change = async {
                let store = topology(&urls[..3]).await;
                let mut desk = Desk::new(&ring(&store), 3);
                desk.cancel(account, &first).await;
                let second = desk.reserves_one();
                desk.change(account, second).await.unwrap();
            };
            thread::scope(|scope| scope.spawn(|| runtime().block_on(change)).join().unwrap());
            *found.lock() = Some(open_at(&urls[3], &group));
            more();
        });
        let sealed = Sealed::default();
        let counted = sealed.clone();
        let observer = Observer::new(move |phase| {
            ahead(phase);
            counted.count(phase);
        });
        self.stage.begin(false).await;
        self.stage.resize_with(observer).await;
        let after: Open = after.lock().take().unwrap();
        assert_eq!(after.0.len(), 3 * COPY_ROWS + 1);
        let urls = self.urls().into_iter();
        let mut now: Vec<_> = urls.map(|url| open_at(&url, &self.group)).collect();
        now.retain(|open| !open.0.is_empty());
        assert!(now == [after]);
        *sealed.pieces.lock()
    }

    fn urls(&self) -> Vec<String> {
        self.stage.servers.iter().map(RedisServer::url).collect()
    }

    /// The blocks at the one server that has any.
    fn blocks(&self) -> Blocks {
        let urls = self.urls().into_iter();
        let mut found: Vec<_> = urls.map(|url| blocks_at(&url, &self.group)).collect();
        found.retain(|blocks| !blocks.is_empty());
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Moves it away while it is asked all the time. Answers how many pieces were copied while its slot was sealed, and
    /// the longest wait for an answer.
    async fn moves(&self, pause: Duration) -> (usize, Duration) {
        self.stage.begin(false).await;
        let (stop, stopped) = watch::channel(false);
        let asking = async {
            let mut desk = Desk::new(&ring(&self.stage.store), 1);
            while !*stopped.borrow() {
                let op = desk.deposits_one();
                let reply = desk.change(self.account, op).await;
                assert!(
                    matches!(reply, Some(Reply::Recorded(State::Done, _))),
                    "{reply:?}"
                );
            }
            desk.longest_wait
        };
        let sealed = Sealed::default();
        let counted = sealed.clone();
        let moving = async {
            let observer = Observer::new(move |phase| counted.count(phase));
            self.stage.resize_at(pause, observer).await;
            stop.send_replace(true);
        };
        let (longest_wait, ()) = tokio::join!(asking, moving);
        (*sealed.pieces.lock(), longest_wait)
    }

    /// Goes on with the move. Answers how many pieces were copied while its slot was sealed.
    async fn goes_on(&self) -> usize {
        let sealed = Sealed::default();
        let counted = sealed.clone();
        let observer = Observer::new(move |phase| counted.count(phase));
        self.stage.resize_with(observer).await;
        *sealed.pieces.lock()
    }

    /// Does `deed` when the next shard has put its blocks aside, before its slot is sealed.
    fn when_ahead<F: FnOnce() + Send>(&self, deed: F) -> impl Fn(Phase) + use<F> {
        let (urls, deed) = (self.urls(), Mutex::new(Some(deed)));
        move |phase| {
            if phase == Phase::CopiedAhead
                && urls.iter().any(|url| !asides(url).is_empty())
                && let Some(deed) = deed.lock().take()
            {
                deed();
            }
        }
    }

    /// Begins to move it away; the mover is gone when the next shard has put its blocks aside. Answers which server that is.
    async fn begins(&self) -> usize {
        self.stage.begin(false).await;
        let (reach, mut reached) = watch::channel(());
        let observer = self.when_ahead(move || reach.send_replace(()));
        tokio::select! {
            _ = self.stage.resize_with(Observer::new(observer)) => panic!("it was not told"),
            told = reached.changed() => told.unwrap(),
        }
        let mut urls = self.urls().into_iter();
        urls.position(|url| !asides(&url).is_empty()).unwrap()
    }

    fn nothing_is_put_aside(&self) {
        for url in self.urls() {
            assert_eq!(asides(&url), [""; 0]);
        }
    }
}

fn raw(url: &str) -> redis::Connection {
    let client = redis::Client::open(url).unwrap();
    client.get_connection().unwrap()
}

/// Runs a script about a group at a server.
fn run(url: &str, script: &str, group: &[u8], arguments: &[usize]) {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(group).arg(arguments);
    command.exec(&mut raw(url)).unwrap();
}

fn blocks_at(url: &str, group: &[u8]) -> Blocks {
    let mut all = redis::cmd("HGETALL");
    all.arg([group, b":blocks"].concat());
    all.query(&mut raw(url)).unwrap()
}

/// The open requests of a group at a server, and their deadlines.
fn open_at(url: &str, group: &[u8]) -> Open {
    let mut connection = raw(url);
    let mut open = redis::cmd("HGETALL");
    open.arg([group, b":open"].concat());
    let mut due = redis::cmd("ZRANGE");
    due.arg([group, b":due"].concat())
        .arg(0)
        .arg(-1)
        .arg("WITHSCORES");
    (
        open.query(&mut connection).unwrap(),
        due.query(&mut connection).unwrap(),
    )
}

fn runtime() -> Runtime {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Names of all that is put aside at a server.
fn asides(url: &str) -> Vec<String> {
    let mut keys = redis::cmd("KEYS");
    keys.arg("ringfence:aside:*").query(&mut raw(url)).unwrap()
}

/// Counts the pieces that are copied while slots are sealed and not admitted yet.
#[derive(Clone, Default)]
struct Sealed {
    is_sealed: Arc<Mutex<bool>>,
    pieces: Arc<Mutex<usize>>,
}

impl Sealed {
    fn count(&self, phase: Phase) {
        match phase {
            Phase::Sealed => *self.is_sealed.lock() = true,
            Phase::Admitted => *self.is_sealed.lock() = false,
            Phase::Copied if *self.is_sealed.lock() => *self.pieces.lock() += 1,
            _ => {}
        }
    }
}

/// How long a call waits while a segment of many answers moves.
#[tokio::test]
#[ignore = "it measures"]
async fn a_million_answers() {
    for (packed, newest, open) in [
        (0, 0, 0),
        (0, 0, 130_000),
        (0, 10_000, 0),
        (1_000_000, 10_000, 0),
        (4_000_000, 10_000, 0),
        (8_000_000, 10_000, 0),
    ] {
        let big = Big::new(packed, newest).await;
        big.reserves(open);
        let (pieces, longest_wait) = big.moves(MOVER_PAUSE).await;
        println!(
            "{packed} + {newest} answers, {open} open: {pieces} pieces while sealed; a call waited {longest_wait:?} at most"
        );
    }
}

#[tokio::test]
async fn the_copy_under_a_seal_does_not_grow_with_the_remembered_answers() {
    let mut pieces = Vec::new();
    for blocks in [1, 64] {
        let big = Big::new(blocks * BLOCK, 1).await;
        let before = big.blocks();
        pieces.push(big.moves(PAUSE).await.0);
        assert!(big.blocks() == before);
        big.nothing_is_put_aside();
    }
    assert!(pieces[1] <= pieces[0] + 1, "{pieces:?}");
}

#[tokio::test]
async fn the_copy_under_a_seal_does_not_grow_with_the_log() {
    let mut pieces = Vec::new();
    for pages in [1, 64] {
        let big = Big::new(0, 1).await;
        let an_hour_ago = BootClock.unix().as_millis() as usize - 3_600_000;
        (0..pages).for_each(|nth| big.run(LOG, &[an_hour_ago + nth, 1_024]));
        let before = big.blocks();
        assert_eq!(before.len(), pages);
        pieces.push(big.moves(PAUSE).await.0);
        assert!(before.iter().all(|page| big.blocks().contains_key(page.0)));
        big.nothing_is_put_aside();
        let mut desk = Desk::new(&ring(&big.stage.store), 3);
        let effects = desk.effects(big.account).await;
        assert!(effects.len() > pages * 1_024);
        let mut pairs = effects.windows(2);
        assert!(pairs.all(|pair| pair[0].number + 1 == pair[1].number));
    }
    assert!(pieces[1] <= pieces[0] + 1, "{pieces:?}");
}

#[tokio::test]
async fn the_copy_under_a_seal_does_not_grow_with_the_open_requests() {
    let mut pieces = Vec::new();
    for full in [2, 8] {
        let big = Big::new(0, 1).await;
        big.reserves(full * COPY_ROWS);
        pieces.push(big.moves(PAUSE).await.0);
        big.nothing_is_put_aside();
    }
    assert!(pieces[1] <= pieces[0] + 1, "{pieces:?}");
}

#[tokio::test]
async fn requests_that_change_after_they_were_copied_ahead_arrive_as_they_are() {
    let big = Big::new(0, 1).await;
    let pieces = big.moves_while_reservations_change(|| {}).await;
    assert!(pieces <= 3, "{pieces}");
}

#[tokio::test]
async fn requests_whose_changes_were_not_noted_are_copied_anew() {
    let big = Big::new(0, 1).await;
    let (server, changes) = (
        big.urls()[3].clone(),
        [&big.group[..], b":changes"].concat(),
    );
    let forget = move || {
        let gone: usize = redis::cmd("UNLINK")
            .arg(changes)
            .query(&mut raw(&server))
            .unwrap();
        assert_eq!(gone, 1);
    };
    assert!(big.moves_while_reservations_change(forget).await > 3);
    big.nothing_is_put_aside();
}

/// What is forgotten at the former shard meanwhile is forgotten; what came is there.
#[tokio::test]
async fn blocks_that_change_after_they_were_copied_ahead_arrive_as_they_are() {
    let big = Big::new(24 * BLOCK, 1).await;
    let (server, group) = (big.stage.servers[3].url(), big.group.clone());
    let before = big.blocks();
    let after = Arc::new(Mutex::new(Blocks::new()));
    let (found, now_ms) = (after.clone(), BootClock.unix().as_millis() as usize);
    let observer = big.when_ahead(move || {
        run(&server, FORGET, &group, &[BLOCK]);
        run(&server, FILL, &group, &[now_ms, BLOCK]);
        *found.lock() = blocks_at(&server, &group);
    });
    big.stage.begin(false).await;
    big.stage.resize_with(Observer::new(observer)).await;
    let after = after.lock();
    assert!(after.len() == before.len() && *after != before);
    assert!(big.blocks() == *after);
}

#[tokio::test]
async fn another_mover_does_not_copy_again_what_was_copied_ahead() {
    let big = Big::new(64 * BLOCK, 1).await;
    let before = big.blocks();
    big.begins().await;
    assert!(big.goes_on().await <= 2);
    assert!(big.blocks() == before);
    big.nothing_is_put_aside();
}

#[tokio::test]
async fn a_move_that_is_turned_back_drops_what_was_copied_ahead() {
    let big = Big::new(24 * BLOCK, 1).await;
    let before = big.blocks();
    big.begins().await;
    mover(&ring(&big.stage.store)).abort().await.unwrap();
    big.goes_on().await;
    assert!(blocks_at(&big.urls()[3], &big.group) == before);
    big.nothing_is_put_aside();
}

#[tokio::test]
#[ignore = "long: a large account"]
async fn the_next_shard_may_lose_what_was_copied_ahead() {
    let mut big = Big::new(24 * BLOCK, 1).await;
    let before = big.blocks();
    let next = big.begins().await;
    big.stage.servers[next].kill();
    big.stage.servers[next].restart().await.unwrap();
    assert_eq!(asides(&big.urls()[next]), [""; 0]);
    big.goes_on().await;
    assert!(big.blocks() == before);
}

#[tokio::test]
#[ignore = "long: a large account"]
async fn the_former_shard_may_lose_what_was_copied_ahead() {
    let mut big = Big::new(24 * BLOCK, 1).await;
    let before = big.blocks();
    redis::cmd("SAVE").exec(&mut raw(&big.urls()[3])).unwrap();
    big.run(FILL, &[BootClock.unix().as_millis() as usize, BLOCK]);
    assert!(big.blocks() != before);
    big.begins().await;
    big.stage.servers[3].kill();
    big.stage.servers[3].restart().await.unwrap();
    big.goes_on().await;
    assert!(big.blocks() == before);
}
