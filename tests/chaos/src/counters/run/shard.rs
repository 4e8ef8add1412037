//! One shard that syncs every write, and its faults.
#![expect(
    clippy::unwrap_used,
    reason = "a server of ours that fails fails the run"
)]

use std::{ops::Range, time::Duration};

use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Deed, Flow, Proxy, Trap, Whose, ask};
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
}

impl Shard {
    /// Starts both.
    pub(super) async fn start(seed: u64, loses: bool) -> Self {
        let kept = if loses { "no" } else { "yes" };
        let builder = RedisServer::builder()
            .set("appendonly", kept)
            .set("appendfsync", "always");
        let server = builder.spawn().await.unwrap();
        let proxy = Proxy::seeded(server.port(), seed).await;
        Self { server, proxy }
    }

    /// Where clients find it.
    pub(super) fn url(&self) -> String {
        self.proxy.url()
    }

    /// Has it restart with nothing. Answers how much that could be spent was in its segments, each with its name.
    pub(super) async fn forget(&mut self) -> Vec<(String, i64)> {
        self.proxy.both(&Whose::All, Flow::Lose);
        let names: Vec<String> = ask(&self.server, &["KEYS", "*#*:seg"]).await;
        let mut lost = Vec::new();
        for name in names {
            let value = ask(&self.server, &["HGET", &name, "value"]).await;
            lost.push((name, value));
        }
        self.server.kill();
        self.proxy.cut(&Whose::All);
        self.server.restart().await.unwrap();
        self.proxy.heal();
        lost
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
