//! One shard, and its faults.
#![expect(
    clippy::unwrap_used,
    reason = "a server of ours that fails fails the run"
)]

use std::{fs, ops::Range, time::Duration};

use redis::FromRedisValue;
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Appended, Command, Deed, Flow, OnDisk, Trap, Whose, ask};
use tokio::time::sleep;

use crate::run::replicated::Replicated;

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
    /// It dies, and its replica, which was left behind, is the primary.
    Failover,
    /// Clients find its replica, which was left behind, and then the primary again, which knows nothing of that.
    Retarget,
    /// It follows its replica, which was left behind and is the primary.
    Switchover,
    /// It follows its replica, which was left behind, and is the primary again.
    ThereAndBack,
}

impl Trouble {
    pub(super) const ALL: [Self; 10] = [
        Self::Failover,
        Self::Retarget,
        Self::Switchover,
        Self::ThereAndBack,
        Self::Kill,
        Self::LoseAnswers,
        Self::Cut,
        Self::Delay,
        Self::Stop,
        Self::Rewrite,
    ];

    /// Those that leave the replica behind.
    pub(super) const OF_REPLICAS: [Self; 4] = [
        Self::Failover,
        Self::Retarget,
        Self::Switchover,
        Self::ThereAndBack,
    ];

    /// Whether it leaves the replica behind.
    pub(super) fn is_of_replicas(self) -> bool {
        Self::OF_REPLICAS.contains(&self)
    }

    /// As the report says it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "shards killed and started again",
            Self::LoseAnswers => "times of answers lost",
            Self::Cut => "times all connections of a shard were cut",
            Self::Delay => "times a shard was slow",
            Self::Stop => "shards stopped for a while",
            Self::Rewrite => "shards killed at a rewrite of their log",
            Self::Failover => "failovers to a replica that was left behind",
            Self::Retarget => "addresses that led to a replica for a while",
            Self::Switchover => "switchovers to a replica that was left behind",
            Self::ThereAndBack => "primaries that followed their replica for a while",
        }
    }
}

/// What a shard forgot.
#[derive(Debug)]
pub(super) struct LeftBehind {
    /// The commands.
    pub(super) commands: Vec<Command>,
    /// How many losses each of its segments had counted before, by its name.
    pub(super) losses: Vec<(String, u64)>,
}

/// A primary and its replica behind a proxy.
#[derive(Debug)]
pub(super) struct Shard {
    pair: Replicated,
    /// Its log at earlier times, the oldest first.
    past: Vec<OnDisk>,
}

impl Shard {
    /// Starts all three. One that is to lose something does not say that it syncs every write.
    pub(super) async fn start(seed: u64, loses: bool) -> Self {
        let synced = if loses { "no" } else { "always" };
        let builder = RedisServer::builder()
            .set("appendonly", "yes")
            .set("auto-aof-rewrite-percentage", "0")
            .set("appendfsync", synced);
        Self {
            pair: Replicated::start(&builder, seed).await,
            past: Vec::new(),
        }
    }

    /// Where clients find it.
    pub(super) fn url(&self) -> String {
        self.pair.proxy().url()
    }

    /// Has it restart with nothing. Answers how much that could be spent was in its segments, each with its name.
    pub(super) async fn forget(&mut self) -> Vec<(String, i64)> {
        self.pair.proxy().both(&Whose::All, Flow::Lose);
        let lost = self.in_segments("value").await;
        self.pair.primary_mut().kill();
        self.pair.proxy().cut(&Whose::All);
        self.past.clear();
        fs::remove_dir_all(self.pair.primary().dir().join("appendonlydir")).unwrap();
        self.pair.primary_mut().restart().await.unwrap();
        self.pair.proxy().heal();
        lost
    }

    /// Keeps a copy of its files, as they are now.
    pub(super) fn copy(&mut self) {
        let now = OnDisk::now(self.pair.primary());
        if self.past.last() != Some(&now) {
            self.past.push(now);
        }
    }

    /// Has it restart from one of the last `among` copies of its files. None if there is no copy.
    pub(super) async fn go_back(&mut self, among: usize, dice: u32) -> Option<LeftBehind> {
        let among = among.min(self.past.len());
        if among == 0 {
            return None;
        }
        self.past.truncate(self.past.len() - dice as usize % among);
        let past = self.past.last().cloned().expect("there are so many");
        self.pair.proxy().both(&Whose::All, Flow::Lose);
        self.pair.primary_mut().kill();
        self.pair.proxy().cut(&Whose::All);
        let commands = past.go_back();
        self.pair.primary_mut().restart().await.unwrap();
        let losses = self.in_segments("losses").await;
        self.pair.proxy().heal();
        Some(LeftBehind { commands, losses })
    }

    /// Its replica is left behind. For so long the shard goes on without it, or with it alone; then it is the other way.
    pub(super) async fn leave_behind(&mut self, trouble: Trouble, lasts: Duration) -> LeftBehind {
        self.pair.in_step().await;
        self.pair.proxy().requests(&Whose::All, Flow::Hold);
        self.pair.leave_replica_behind().await;
        let losses = self.in_segments("losses").await;
        if trouble == Trouble::Retarget {
            self.pair.lead_to_other();
        }
        let appended = Appended::from_now_on(self.pair.primary());
        self.pair.proxy().heal();
        sleep(lasts).await;
        match trouble {
            Trouble::Failover => self.pair.fail_over().await,
            Trouble::Retarget => self.pair.lead_back().await,
            Trouble::Switchover => self.pair.switch_over().await,
            _ => self.pair.go_there_and_back().await,
        }
        self.past.clear();
        let commands = appended.commands();
        LeftBehind { commands, losses }
    }

    /// What each of its segments has in that field.
    pub(super) async fn in_segments<T: FromRedisValue>(&self, field: &str) -> Vec<(String, T)> {
        let names: Vec<String> = ask(self.pair.primary(), &["KEYS", "*#*:seg"]).await;
        let mut found = Vec::new();
        for name in names {
            let value = ask(self.pair.primary(), &["HGET", &name, field]).await;
            found.push((name, value));
        }
        found
    }

    /// Has it suffer for so long.
    pub(super) async fn suffer(&mut self, trouble: Trouble, lasts: Duration) {
        match trouble {
            Trouble::Kill => {
                self.pair.primary_mut().kill();
                sleep(lasts).await;
                self.pair.primary_mut().restart().await.unwrap();
            }
            Trouble::Rewrite => {
                let _: String = ask(self.pair.primary(), &["BGREWRITEAOF"]).await;
                sleep(lasts / REWRITE_LASTS).await;
                self.pair.primary_mut().restart().await.unwrap();
            }
            Trouble::LoseAnswers => self.lose_answers(lasts).await,
            Trouble::Cut => self.pair.proxy().cut(&Whose::All),
            Trouble::Delay => {
                self.pair.proxy().both(&Whose::All, Flow::Delay(DELAY));
                sleep(lasts).await;
                self.pair.proxy().heal();
            }
            Trouble::Stop => {
                self.pair.primary().stop();
                sleep(lasts).await;
                self.pair.primary().cont();
            }
            Trouble::Failover | Trouble::Retarget | Trouble::Switchover | Trouble::ThereAndBack => {
                drop(self.leave_behind(trouble, lasts).await)
            }
        }
    }

    /// Cuts one connection after another when a change was made, before that is answered.
    async fn lose_answers(&self, lasts: Duration) {
        for nth in 1..=1 + (lasts.as_millis() / LOSE_EVERY.as_millis()) as u64 {
            let cut = Deed::Cut { reply_bytes: 0 };
            let trap = Trap::new(Whose::lane("counters"), cut);
            self.pair.proxy().trap(trap.command(&["FCALL"]).nth(nth));
            sleep(LOSE_EVERY).await;
        }
    }

    /// Ends its present fault.
    pub(super) async fn mend(&mut self) {
        self.pair.primary().cont();
        if self.pair.primary().pid().is_none() {
            self.pair.primary_mut().restart().await.unwrap();
        }
        self.pair.proxy().heal();
    }
}
