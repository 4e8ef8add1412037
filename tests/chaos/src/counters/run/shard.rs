//! One shard, and its faults.
#![expect(
    clippy::unwrap_used,
    reason = "a server of ours that fails fails the run"
)]

use std::{fs, ops::Range, time::Duration};

use redis::FromRedisValue;
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Command, Deed, Flow, OnDisk, Proxy, Trap, Whose, ask};
use tokio::time::sleep;

/// How much longer things take to and from a server that is slow.
const DELAY: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(40);
/// Between two answers that are lost.
const LOSE_EVERY: Duration = Duration::from_millis(100);

/// From the begin of a rewrite to the kill, as a fraction of the time for which a shard suffers: short, so that some
/// kills come during the rewrite.
const REWRITE_LASTS: u32 = 8;

/// What can happen to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// It is killed, and starts again with its append-only file.
    Kill,
    /// Its answers are lost, now and then, of changes that were made.
    LoseAnswers,
    /// All its connections are cut.
    Cut,
    /// All takes longer.
    Delay,
    /// It is stopped, and goes on.
    Stop,
    /// It is killed while it rewrites its append-only file, or soon after, and starts again.
    Rewrite,
}

impl Trouble {
    pub(super) const ALL: [Self; 6] = [
        Self::Kill,
        Self::LoseAnswers,
        Self::Cut,
        Self::Delay,
        Self::Stop,
        Self::Rewrite,
    ];

    /// As the report says it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "shards killed and started again",
            Self::LoseAnswers => "times of answers lost",
            Self::Cut => "times all connections of a shard were cut",
            Self::Delay => "times a shard was slow",
            Self::Stop => "shards stopped for a while",
            Self::Rewrite => "shards killed at a rewrite of their log",
        }
    }
}

/// A server behind a proxy.
#[derive(Debug)]
pub(super) struct Shard {
    server: RedisServer,
    proxy: Proxy,
    /// Its log at earlier times, the oldest first.
    past: Vec<OnDisk>,
}

impl Shard {
    /// Starts both. One that is to lose something does not say that it syncs every write.
    pub(super) async fn start(seed: u64, loses: bool) -> Self {
        let synced = if loses { "no" } else { "always" };
        let builder = RedisServer::builder()
            .set("appendonly", "yes")
            .set("auto-aof-rewrite-percentage", "0")
            .set("appendfsync", synced);
        let server = builder.spawn().await.unwrap();
        let proxy = Proxy::seeded(server.port(), seed).await;
        let past = Vec::new();
        Self {
            server,
            proxy,
            past,
        }
    }

    /// Where clients find it.
    pub(super) fn url(&self) -> String {
        self.proxy.url()
    }

    /// Has it restart with nothing. Answers how much that could be spent was in its segments, each with its name.
    pub(super) async fn forget(&mut self) -> Vec<(String, i64)> {
        self.proxy.both(&Whose::All, Flow::Lose);
        let lost = self.in_segments("value").await;
        self.server.kill();
        self.proxy.cut(&Whose::All);
        self.past.clear();
        fs::remove_dir_all(self.server.dir().join("appendonlydir")).unwrap();
        self.server.restart().await.unwrap();
        self.proxy.heal();
        lost
    }

    /// Keeps a copy of its files, as they are now.
    pub(super) fn copy(&mut self) {
        let now = OnDisk::now(&self.server);
        if self.past.last() != Some(&now) {
            self.past.push(now);
        }
    }

    /// Has it restart from one of the last `among` copies of its files. Answers the commands that it forgot, and how many
    /// losses each of its segments has counted before anybody asks it.
    pub(super) async fn go_back(
        &mut self,
        among: usize,
        dice: u32,
    ) -> (Vec<Command>, Vec<(String, u64)>) {
        let among = among.min(self.past.len());
        if among == 0 {
            return (Vec::new(), Vec::new());
        }
        self.past.truncate(self.past.len() - dice as usize % among);
        let past = self.past.last().cloned().expect("there are so many");
        self.proxy.both(&Whose::All, Flow::Lose);
        self.server.kill();
        self.proxy.cut(&Whose::All);
        let forgotten = past.go_back();
        self.server.restart().await.unwrap();
        let losses = self.in_segments("losses").await;
        self.proxy.heal();
        (forgotten, losses)
    }

    /// What each of its segments has in that field.
    pub(super) async fn in_segments<T: FromRedisValue>(&self, field: &str) -> Vec<(String, T)> {
        let names: Vec<String> = ask(&self.server, &["KEYS", "*#*:seg"]).await;
        let mut found = Vec::new();
        for name in names {
            let value = ask(&self.server, &["HGET", &name, field]).await;
            found.push((name, value));
        }
        found
    }

    /// Has it suffer for so long.
    pub(super) async fn suffer(&mut self, trouble: Trouble, lasts: Duration) {
        match trouble {
            Trouble::Kill => {
                self.server.kill();
                sleep(lasts).await;
                self.server.restart().await.unwrap();
            }
            Trouble::Rewrite => {
                let _: String = ask(&self.server, &["BGREWRITEAOF"]).await;
                sleep(lasts / REWRITE_LASTS).await;
                self.server.restart().await.unwrap();
            }
            Trouble::LoseAnswers => self.lose_answers(lasts).await,
            Trouble::Cut => self.proxy.cut(&Whose::All),
            Trouble::Delay => {
                self.proxy.both(&Whose::All, Flow::Delay(DELAY));
                sleep(lasts).await;
                self.proxy.heal();
            }
            Trouble::Stop => {
                self.server.stop();
                sleep(lasts).await;
                self.server.cont();
            }
        }
    }

    /// Cuts one connection after another when a change was made, before that is answered.
    async fn lose_answers(&self, lasts: Duration) {
        for nth in 1..=1 + (lasts.as_millis() / LOSE_EVERY.as_millis()) as u64 {
            let cut = Deed::Cut { reply_bytes: 0 };
            let trap = Trap::new(Whose::lane("counters"), cut);
            self.proxy.trap(trap.command(&["FCALL"]).nth(nth));
            sleep(LOSE_EVERY).await;
        }
    }

    /// Ends its present fault.
    pub(super) async fn mend(&mut self) {
        self.server.cont();
        if self.server.pid().is_none() {
            self.server.restart().await.unwrap();
        }
        self.proxy.heal();
    }
}
